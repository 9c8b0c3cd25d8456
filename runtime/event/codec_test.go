package event_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

func orNil[T any](g *rapid.Generator[[]T]) *rapid.Generator[[]T] {
	return rapid.Map(g, func(v []T) []T {
		if len(v) == 0 {
			return nil
		}
		return v
	})
}

var (
	genTokens = orNil(rapid.SliceOfN(rapid.Int32(), 0, 12))
	genBytes  = orNil(rapid.SliceOfN(rapid.Byte(), 0, 12))
	genInts   = orNil(rapid.SliceOfN(rapid.Int(), 0, 4))
	genFloat  = rapid.Float32()
	genText   = rapid.String()
	genReq    = rapid.Map(rapid.Uint64(), func(v uint64) event.ReqID { return event.ReqID(v) })
	genPeer   = rapid.Map(rapid.Int16(), func(v int16) event.Peer { return event.Peer(v) })
)

func genSampling(t *rapid.T) event.Sampling {
	return event.Sampling{
		Temperature: genFloat.Draw(t, "temperature"), TopK: rapid.Int().Draw(t, "topk"),
		TopP: genFloat.Draw(t, "topp"), Seed: rapid.Uint64().Draw(t, "seed"),
	}
}

func genPeerReq(t *rapid.T) *event.PeerReq {
	m := &event.PeerReq{
		ID: genReq.Draw(t, "id"), From: genPeer.Draw(t, "from"), Hop: rapid.Uint32().Draw(t, "hop"),
		Loc: rapid.Int().Draw(t, "loc"), Suffix: genTokens.Draw(t, "suffix"), Seen: genInts.Draw(t, "seen"),
		Status: event.Status(rapid.IntRange(0, int(event.Resend)).Draw(t, "status")),
		Budget: rapid.Int().Draw(t, "budget"),
		Limits: event.Limits{
			PromptLen: rapid.Int().Draw(t, "promptlen"), MaxLen: rapid.Int().Draw(t, "maxlen"), EOS: genTokens.Draw(t, "eos"),
		},
		Sampling: genSampling(t), State: genBytes.Draw(t, "state"), Fields: genBytes.Draw(t, "fields"),
		Router: genText.Draw(t, "router"), Err: genText.Draw(t, "err"),
	}
	if rapid.Bool().Draw(t, "held") {
		m.Hold, m.Emitted = rapid.Int().Draw(t, "hold"), rapid.Int().Draw(t, "emitted")
		m.Writers, m.Cut = orNil(rapid.SliceOfN(genPeer, 0, 4)).Draw(t, "writers"), rapid.Bool().Draw(t, "cut")
	}
	return m
}

func genRowResult(t *rapid.T) event.RowResult {
	r := event.RowResult{
		Req: genReq.Draw(t, "req"),
		Output: event.Output{
			Token: rapid.Int32().Draw(t, "token"), Entropy: genFloat.Draw(t, "entropy"),
			EntropyNorm: genFloat.Draw(t, "norm"), Top1: genFloat.Draw(t, "top1"), Top2: genFloat.Draw(t, "top2"),
			LogSumExp: genFloat.Draw(t, "lse"),
			TopK: orNil(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.TokenProb {
				return event.TokenProb{Token: rapid.Int32().Draw(t, "token"), Logprob: genFloat.Draw(t, "logprob")}
			}), 0, 5)).Draw(t, "topk"),
		},
		Dest: genPeer.Draw(t, "dest"), Action: event.Action(rapid.IntRange(0, 1).Draw(t, "action")),
		Budget: rapid.Int().Draw(t, "budget"), State: genBytes.Draw(t, "state"), Fields: genBytes.Draw(t, "fields"),
		Fault: genText.Draw(t, "fault"), Router: genText.Draw(t, "router"),
	}
	if rapid.Bool().Draw(t, "held") {
		r.Action = event.Action(rapid.IntRange(0, int(event.Truncate)).Draw(t, "action"))
		r.At, r.Hold, r.Stop = rapid.Int().Draw(t, "position"), rapid.Int().Draw(t, "hold"), rapid.Int().Draw(t, "stop")
		if r.Scored = rapid.Bool().Draw(t, "scored"); r.Scored {
			r.Score = genFloat.Draw(t, "score")
		}
	}
	return r
}

func genEvent(t *rapid.T, kind event.Kind) event.Event {
	ev := event.Event{Kind: kind, At: rapid.Int64().Draw(t, "at")}
	present := rapid.IntRange(0, 9).Draw(t, "present") < 9
	switch ev.Kind {
	case event.Arrive:
		ev.Req = genReq.Draw(t, "req")
		if present {
			ev.Arrival = &event.Arrival{
				Prompt: genTokens.Draw(t, "prompt"), MaxTokens: rapid.Int().Draw(t, "max"),
				EOS: genTokens.Draw(t, "eos"), Sampling: genSampling(t),
			}
		}
	case event.StepDone:
		if present {
			ev.Step = &event.StepResult{
				Batch: rapid.Uint64().Draw(t, "batch"), Rows: orNil(rapid.SliceOfN(rapid.Custom(genRowResult), 0, 3)).Draw(t, "rows"),
				ExecNs: rapid.Int64().Draw(t, "exec"), RouteNs: rapid.Int64().Draw(t, "route"), Err: genText.Draw(t, "err"),
			}
		}
	case event.PeerIn:
		if present {
			ev.Peer = genPeerReq(t)
		}
		ev.Verdict = event.Verdict{
			Kind: event.VerdictKind(rapid.IntRange(0, 1).Draw(t, "verdict")),
			Ids:  genTokens.Draw(t, "ids"), Fault: genText.Draw(t, "fault"),
			Stop: rapid.IntRange(0, 40).Draw(t, "stop") / 20 * 7,
		}
	case event.Active:
		ev.N = rapid.Int().Draw(t, "n")
	case event.Wake:
		ev.Gen = rapid.Uint64().Draw(t, "gen")
	case event.Stop:
		ev.Req, ev.Pos = genReq.Draw(t, "req"), rapid.Int().Draw(t, "pos")
	case event.Cancel:
		ev.Req, ev.Pos = genReq.Draw(t, "req"), rapid.IntRange(0, 1<<40).Draw(t, "pos")
	case event.SetPolicy:
		if present {
			ev.Policy = &event.Policy{
				Kind: event.PolicyKind(rapid.IntRange(0, int(event.LockStep)).Draw(t, "policy")),
				B:    genInts.Draw(t, "b"), W: rapid.Int64().Draw(t, "w"),
			}
			switch ev.Policy.Kind {
			case event.Table:
				ev.Policy.Table = genVectors.Draw(t, "table")
			case event.LookAhead:
				ev.Policy.Forecast = genForecast.Draw(t, "forecast")
			}
		}
	case event.Busy:
		ev.From, ev.N, ev.Until = genPeer.Draw(t, "from"), rapid.Int().Draw(t, "n"), rapid.Int64().Draw(t, "until")
	}
	return ev
}

var genVectors = orNil(rapid.SliceOfN(genInts, 0, 3))

var genForecast = rapid.Ptr(rapid.Custom(func(t *rapid.T) event.Forecast {
	return event.Forecast{
		Step: orNil(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.StepTime {
			return event.StepTime{Base: rapid.Int64().Draw(t, "base"), PerRow: rapid.Int64().Draw(t, "row")}
		}), 0, 3)).Draw(t, "step"),
		Share: genVectors.Draw(t, "share"), Latency: rapid.Int64().Draw(t, "latency"),
	}
}), true)

func genBatch(t *rapid.T) *event.Batch {
	return &event.Batch{
		ID: rapid.Uint64().Draw(t, "id"), Rule: event.Rule(rapid.IntRange(0, int(event.RuleAhead)).Draw(t, "rule")),
		Ready: rapid.Int().Draw(t, "ready"), B: rapid.Int().Draw(t, "b"),
		Rows: orNil(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.Row {
			return event.Row{
				Req: genReq.Draw(t, "req"), Start: rapid.Int().Draw(t, "start"), Tokens: genTokens.Draw(t, "tokens"),
				Sample: rapid.Bool().Draw(t, "sample"), Prefill: rapid.Bool().Draw(t, "prefill"),
				Recomputed: rapid.Int().Draw(t, "recomputed"), WaitedNs: rapid.Int64().Draw(t, "waited"),
				PromptLen: rapid.Int().Draw(t, "promptlen"), Sampling: genSampling(t),
				Cached: rapid.Int().Draw(t, "cached"), Blocks: genTokens.Draw(t, "blocks"),
			}
		}), 0, 3)).Draw(t, "rows"),
	}
}

func genCommand(t *rapid.T, kind event.CmdKind) event.Command {
	cmd := event.Command{Kind: kind}
	if k := cmd.Kind; k != event.TellActive && k != event.TellBusy && k != event.RunBatch && k != event.WakeAt {
		cmd.Req = genReq.Draw(t, "req")
	}
	present := rapid.IntRange(0, 9).Draw(t, "present") < 9
	switch cmd.Kind {
	case event.Admit, event.TellActive:
		cmd.N = rapid.Int().Draw(t, "n")
	case event.Reject:
		cmd.Text = genText.Draw(t, "text")
	case event.RunBatch:
		if present {
			cmd.Batch = genBatch(t)
		}
	case event.SendPeer:
		cmd.To = genPeer.Draw(t, "to")
		if present {
			cmd.Peer = genPeerReq(t)
		}
	case event.Emit:
		cmd.Pos, cmd.Token = rapid.Int().Draw(t, "pos"), rapid.Int32().Draw(t, "token")
		if rapid.Bool().Draw(t, "held") {
			cmd.Wrote = genPeer.Draw(t, "wrote")
		}
	case event.Finish:
		cmd.Reason = event.Reason(rapid.IntRange(0, int(event.ReasonError)).Draw(t, "reason"))
		cmd.N, cmd.Text = rapid.Int().Draw(t, "n"), genText.Draw(t, "text")
	case event.WakeAt:
		cmd.At, cmd.Gen = rapid.Int64().Draw(t, "at"), rapid.Uint64().Draw(t, "gen")
	case event.TellBusy:
		cmd.N, cmd.At = rapid.Int().Draw(t, "n"), rapid.Int64().Draw(t, "at")
	case event.Preempt:
		cmd.N = rapid.Int().Draw(t, "n")
	case event.Note:
		cmd.Note = event.NoteKind(rapid.IntRange(0, int(event.NoteTimeout)).Draw(t, "note"))
		cmd.N, cmd.Text = rapid.Int().Draw(t, "n"), genText.Draw(t, "text")
	}
	return cmd
}

// What is written is read back as it was, with whatever stands behind it left
// alone, and a shorter prefix is refused as too short.
func TestEventRoundTrip(t *testing.T) {
	for kind := event.Arrive; kind <= event.Busy; kind++ {
		t.Run(kind.String(), rapid.MakeCheck(func(t *rapid.T) {
			want := genEvent(t, kind)
			b := event.AppendEvent([]byte("head"), &want)[4:]
			got, n, err := event.DecodeEvent(append(bytes.Clone(b), 0xff))
			if err != nil || n != len(b) || !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\n became %v\n (%d of %d bytes, %v)", want, got, n, len(b), err)
			}
			cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
			if _, _, err := event.DecodeEvent(b[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes: %v", cut, len(b), err)
			}
			if line := want.String(); !strings.HasPrefix(line, kind.String()+" @") {
				t.Fatal(line)
			}
		}))
	}
}

func TestCommandRoundTrip(t *testing.T) {
	for kind := event.Admit; kind <= event.Preempt; kind++ {
		t.Run(kind.String(), rapid.MakeCheck(func(t *rapid.T) {
			want := genCommand(t, kind)
			b := event.AppendCommand([]byte("head"), &want)[4:]
			got, n, err := event.DecodeCommand(append(bytes.Clone(b), 0xff))
			if err != nil || n != len(b) || !reflect.DeepEqual(got, want) {
				t.Fatalf("%v\n became %v\n (%d of %d bytes, %v)", want, got, n, len(b), err)
			}
			cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
			if _, _, err := event.DecodeCommand(b[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes: %v", cut, len(b), err)
			}
			word, _, _ := strings.Cut(kind.String(), "-")
			if line := want.String(); !strings.HasPrefix(line, word+" ") {
				t.Fatal(line)
			}
		}))
	}
}

// What no version has written is refused with the place and the reason, never
// read as something else.
func TestRefuses(t *testing.T) {
	step := func(change func(r *event.RowResult)) []byte {
		r := event.RowResult{Req: 1}
		change(&r)
		return event.AppendEvent(nil, &event.Event{Kind: event.StepDone, Step: &event.StepResult{Rows: []event.RowResult{r}}})
	}
	peer := func(m event.PeerReq) []byte {
		return event.AppendEvent(nil, &event.Event{Kind: event.PeerIn, Peer: &m})
	}
	early := step(func(r *event.RowResult) { r.Action = event.Drop })
	early[bytes.LastIndexByte(early, 1)] = byte(event.Truncate) // a step as the first sessions have it knows two
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"no kind":         {[]byte{0, 0}, "no event of kind 0"},
		"unknown kind":    {[]byte{14, 0}, "no event of kind 14"},
		"unknown action":  {step(func(r *event.RowResult) { r.Action = 3 }), "no action 3"},
		"action before 4": {early, "no action 2"},
		"unknown status":  {peer(event.PeerReq{Status: 6}), "no status 6"},
		"unknown verdict": {event.AppendEvent(nil, &event.Event{Kind: event.PeerIn, Verdict: event.Verdict{Kind: 2}}), "no verdict 2"},
		"unknown policy":  {event.AppendEvent(nil, &event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: 5}}), "no policy 5"},
		"bool of 2":       {[]byte{9, 0, 2}, "in place of yes (1) or no (0)"},
		"wide token":      {[]byte{1, 0, 1, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0}, "more than 32 bits"},
		"wide subserver":  {[]byte{4, 0, 1, 1, 0x80, 0x80, 0x80, 1}, "more than 16 bits"},
		"wide hop":        {[]byte{4, 0, 1, 1, 2, 0xff, 0xff, 0xff, 0xff, 0x7f}, "the hop is"},
		"wide number":     {[]byte{8, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "more than 64 bits"},
	} {
		if ev, _, err := event.DecodeEvent(tc.b); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%s: %v, %v, want %q", name, ev, err, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		cmd  event.Command
		want string
	}{
		"no kind":        {event.Command{}, "no command of kind 0"},
		"unknown kind":   {event.Command{Kind: 16}, "no command of kind 16"},
		"unknown reason": {event.Command{Kind: event.Finish, Reason: 4}, "no reason 4"},
		"unknown note":   {event.Command{Kind: event.Note, Note: 10}, "no note 10"},
		"unknown rule":   {event.Command{Kind: event.RunBatch, Batch: &event.Batch{Rule: 4}}, "no rule 4"},
	} {
		if cmd, _, err := event.DecodeCommand(event.AppendCommand(nil, &tc.cmd)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want %q", name, cmd, err, tc.want)
		}
	}
}

// The numbers on disk never change: these bytes were written by the first
// version of the format.
func TestStableBytes(t *testing.T) {
	for _, tc := range []struct {
		ev   event.Event
		want []byte
	}{
		{event.Event{Kind: event.Dispatch, At: 300}, []byte{2, 0xd8, 4}},
		{event.Event{Kind: event.Active, At: 1, N: 3}, []byte{5, 2, 6}},
		{event.Event{Kind: event.Wake, Gen: 200}, []byte{6, 0, 0xc8, 1}},
		{event.Event{Kind: event.Stop, Req: 5, Pos: 7}, []byte{7, 0, 5, 14}},
		{event.Event{Kind: event.Cancel, Req: 5}, []byte{8, 0, 5}},
		{event.Event{Kind: event.Cancel, Req: 5, Pos: 7}, []byte{11, 0, 5, 14}},
		{event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}, W: 5}}, []byte{9, 0, 1, 1, 2, 2, 6, 10}},
		{event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.LockStep, W: 5}}, []byte{9, 0, 1, 4, 0, 10}},
		{
			event.Event{Kind: event.Arrive, Req: 1, Arrival: &event.Arrival{Prompt: []event.Token{4, -1}, MaxTokens: 2, Sampling: event.Sampling{Temperature: 1}}},
			[]byte{1, 0, 1, 1, 2, 8, 1, 4, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0},
		},
	} {
		if got := event.AppendEvent(nil, &tc.ev); !bytes.Equal(got, tc.want) {
			t.Errorf("%v: % x, want % x", tc.ev, got, tc.want)
		}
	}
	for _, tc := range []struct {
		cmd  event.Command
		want []byte
	}{
		{event.Command{Kind: event.Emit, Req: 2, Pos: 9, Token: 70}, []byte{6, 2, 18, 0x8c, 1}},
		{event.Command{Kind: event.Emit, Req: 2, Pos: 9, Token: 70, Wrote: 1}, []byte{14, 2, 18, 0x8c, 1, 2}},
	} {
		if got := event.AppendCommand(nil, &tc.cmd); !bytes.Equal(got, tc.want) {
			t.Errorf("%v: % x, want % x", tc.cmd, got, tc.want)
		}
	}
}

// What a router that holds nothing back does is stored as it always was, so the
// sessions of before and those of now are the same bytes: the new kinds are for
// what they tell and for nothing else.
func TestNewKindsAreForNewFields(t *testing.T) {
	row := event.RowResult{Req: 1, Dest: 1, Action: event.Drop}
	step := func(r event.RowResult) event.Event {
		return event.Event{Kind: event.StepDone, Step: &event.StepResult{Rows: []event.RowResult{row, r}}}
	}
	message := func(change func(m *event.PeerReq)) event.PeerReq {
		m := event.PeerReq{ID: 1, Hop: 2, Suffix: []event.Token{5}, Seen: []int{3, 4}, Status: event.Alive}
		change(&m)
		return m
	}
	kindOf := func(ev event.Event) byte { return event.AppendEvent(nil, &ev)[0] }
	if k := kindOf(step(row)); k != byte(event.StepDone) {
		t.Errorf("a plain step is stored as kind %d", k)
	}
	for _, r := range []event.RowResult{{Action: event.Truncate}, {At: 1}, {Hold: 3}, {Stop: 3}, {Scored: true}} {
		if k := kindOf(step(r)); k != 12 {
			t.Errorf("%+v is stored as kind %d", r, k)
		}
	}
	for i, change := range []func(*event.PeerReq){
		func(*event.PeerReq) {},
		func(m *event.PeerReq) { m.Hold = 2 },
		func(m *event.PeerReq) { m.Emitted = 4 },
		func(m *event.PeerReq) { m.Writers = []event.Peer{1} },
		func(m *event.PeerReq) { m.Cut = true },
	} {
		m := message(change)
		want, wantSend := byte(13), byte(15)
		if i == 0 {
			want, wantSend = byte(event.PeerIn), byte(event.SendPeer)
		}
		cmd := event.Command{Kind: event.SendPeer, Peer: &m}
		if k, s := kindOf(event.Event{Kind: event.PeerIn, Peer: &m}), event.AppendCommand(nil, &cmd)[0]; k != want || s != wantSend {
			t.Errorf("%v is stored as kinds %d and %d", &m, k, s)
		}
	}
	plain := message(func(*event.PeerReq) {})
	if k := kindOf(event.Event{Kind: event.PeerIn, Peer: &plain, Verdict: event.Verdict{Stop: 4}}); k != 13 {
		t.Errorf("a message whose ids end the answer at a stop string is stored as kind %d", k)
	}
}

// A length that the data cannot hold is refused before anything is allocated.
func TestLyingLength(t *testing.T) {
	lie := []byte{1, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	allocs := testing.AllocsPerRun(100, func() {
		if _, _, err := event.DecodeEvent(lie); err == nil {
			t.Fatal("accepted")
		}
	})
	if allocs > 20 {
		t.Fatalf("%v allocations", allocs)
	}
}

func TestNaNSurvives(t *testing.T) {
	nan := math.Float32frombits(0x7fc01234)
	ev := event.Event{Kind: event.StepDone, Step: &event.StepResult{Rows: []event.RowResult{{Output: event.Output{Entropy: nan}}}}}
	got, _, err := event.DecodeEvent(event.AppendEvent(nil, &ev))
	if err != nil || math.Float32bits(got.Step.Rows[0].Output.Entropy) != 0x7fc01234 {
		t.Fatalf("%v %v", got, err)
	}
}

// Foreign bytes never panic, and what is accepted is written back as something
// that reads the same.
func FuzzDecode(f *testing.F) {
	f.Add(event.AppendEvent(nil, &event.Event{Kind: event.SetPolicy, At: 7, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}, W: 9}}))
	f.Add(event.AppendEvent(nil, &event.Event{Kind: event.SetPolicy, At: 7, Policy: &event.Policy{Kind: event.LockStep, W: 9}}))
	f.Add(event.AppendEvent(nil, &event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 1, From: 1, Hop: 2, Suffix: []event.Token{5}, Seen: []int{3, 4}, Status: event.Alive}}))
	f.Add(event.AppendEvent(nil, &event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: 1, Rows: []event.RowResult{{Req: 1, Dest: 1}}}}))
	f.Add(event.AppendEvent(nil, &event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: 1, Rows: []event.RowResult{{Req: 1, Dest: 1, Action: event.Truncate, At: 9, Hold: 4, Stop: 7, Scored: true, Score: 0.5}}}}))
	f.Add(event.AppendEvent(nil, &event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 1, Hop: 2, Seen: []int{3, 4}, Hold: 2, Emitted: 3, Writers: []event.Peer{1}, Cut: true}, Verdict: event.Verdict{Stop: 7}}))
	f.Add(event.AppendCommand(nil, &event.Command{Kind: event.Emit, Req: 1, Pos: 4, Wrote: 2}))
	f.Add(event.AppendCommand(nil, &event.Command{Kind: event.Preempt, Req: 1, N: 12}))
	f.Add(event.AppendCommand(nil, &event.Command{Kind: event.RunBatch, Batch: &event.Batch{ID: 1, Rows: []event.Row{{Req: 1, Tokens: []event.Token{1, 2}}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if ev, n, err := event.DecodeEvent(b); err == nil {
			if n < 1 || n > len(b) {
				t.Fatalf("took %d of %d bytes", n, len(b))
			}
			once := event.AppendEvent(nil, &ev)
			again, _, err := event.DecodeEvent(once)
			if err != nil || !bytes.Equal(event.AppendEvent(nil, &again), once) {
				t.Fatalf("%v is not read back: %v", ev, err)
			}
			_ = ev.String()
		}
		if cmd, n, err := event.DecodeCommand(b); err == nil {
			if n < 1 || n > len(b) {
				t.Fatalf("took %d of %d bytes", n, len(b))
			}
			once := event.AppendCommand(nil, &cmd)
			again, _, err := event.DecodeCommand(once)
			if err != nil || !bytes.Equal(event.AppendCommand(nil, &again), once) {
				t.Fatalf("%v is not read back: %v", cmd, err)
			}
			_ = cmd.String()
		}
	})
}
