package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/rows"
	"tokenrouter/sessions/tapetest"
)

// traceEvent is an event of the Chrome trace format as another tool reads it.
type traceEvent struct {
	Ph   string         `json:"ph"`
	Pid  *int           `json:"pid"`
	Tid  *int           `json:"tid"`
	Name *string        `json:"name"`
	Cat  string         `json:"cat"`
	Ts   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	ID   *int           `json:"id"`
	Bp   string         `json:"bp"`
	S    string         `json:"s"`
	Args map[string]any `json:"args"`
}

type traceFile struct {
	Unit   string         `json:"displayTimeUnit"`
	Other  map[string]any `json:"otherData"`
	Events []traceEvent   `json:"traceEvents"`
}

func traceOf(t *testing.T, s *Session) (traceFile, TraceCounts, []byte) {
	t.Helper()
	var b bytes.Buffer
	n, err := s.Perfetto(&b)
	if err != nil {
		t.Fatal(err)
	}
	var f traceFile
	d := json.NewDecoder(bytes.NewReader(b.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f, n, b.Bytes()
}

type track struct{ pid, tid int }

type counterKey struct {
	pid  int
	name string
}

// ns is a time of the file in whole nanoseconds.
func ns(t *testing.T, us *float64) int64 {
	t.Helper()
	if us == nil {
		t.Fatal("an event without a time")
	}
	v := *us * 1000
	if r := math.Round(v); math.Abs(v-r) < 0.01 {
		return int64(r)
	}
	t.Fatalf("%v µs is no whole number of ns", *us)
	return 0
}

type slice struct {
	start, end int64
	e          traceEvent
}

// checkRules holds a trace to the rules of the format: every event complete,
// slices of a track nested or apart and in order, both ends of a flow within
// slices, counters numeric and in order, every track named.
func checkRules(t *testing.T, f traceFile) (slices map[track][]slice, flows map[int][2]traceEvent, counters map[counterKey]int) {
	t.Helper()
	slices, flows, counters = map[track][]slice{}, map[int][2]traceEvent{}, map[counterKey]int{}
	open := map[track][]float64{}
	last := map[counterKey]int64{}
	processes, tracks := map[int]bool{}, map[track]bool{}
	for i, e := range f.Events {
		if e.Pid == nil || e.Tid == nil || e.Name == nil || *e.Name == "" {
			t.Fatalf("event %d is incomplete: %+v", i, e)
		}
		tr := track{*e.Pid, *e.Tid}
		switch e.Ph {
		case "M":
			switch *e.Name {
			case "process_name":
				processes[tr.pid] = true
			case "thread_name":
				tracks[tr] = true
			case "process_sort_index", "thread_sort_index":
			default:
				t.Fatalf("event %d: metadata %q", i, *e.Name)
			}
		case "X":
			s := slice{start: ns(t, e.Ts), e: e}
			dur := ns(t, e.Dur)
			s.end = s.start + dur
			if dur < 0 {
				t.Fatalf("event %d: a slice of %d ns", i, dur)
			}
			if l := slices[tr]; len(l) > 0 && s.start < l[len(l)-1].start {
				t.Fatalf("event %d: track %v goes back to %d", i, tr, s.start)
			}
			stack := open[tr] // ends as a reader that counts in floating point sees them
			for len(stack) > 0 && stack[len(stack)-1] <= *e.Ts {
				stack = stack[:len(stack)-1]
			}
			if pen := e.Cat == "pen"; len(stack) > 1 || pen != (len(stack) == 1) {
				t.Fatalf("event %d: %q lies %d deep on track %v", i, *e.Name, len(stack), tr)
			}
			end := *e.Ts + *e.Dur
			if len(stack) > 0 && end > stack[len(stack)-1] {
				t.Fatalf("event %d: %q overlaps the slice around it on track %v", i, *e.Name, tr)
			}
			open[tr] = append(stack, end)
			slices[tr] = append(slices[tr], s)
		case "s", "f":
			if e.ID == nil || e.Ph == "f" && e.Bp != "e" {
				t.Fatalf("event %d: flow %+v", i, e)
			}
			p := flows[*e.ID]
			p[strings.Index("sf", e.Ph)] = e
			flows[*e.ID] = p
		case "C":
			k := counterKey{tr.pid, *e.Name}
			if at := ns(t, e.Ts); at < last[k] {
				t.Fatalf("event %d: counter %v goes back to %d", i, k, at)
			} else {
				last[k] = at
			}
			if len(e.Args) != 1 {
				t.Fatalf("event %d: counter with %v", i, e.Args)
			}
			for _, v := range e.Args {
				if _, ok := v.(float64); !ok {
					t.Fatalf("event %d: counter with %v", i, e.Args)
				}
			}
			counters[k]++
		case "i":
			ns(t, e.Ts)
			if !strings.Contains("gpt", e.S) || e.S == "" {
				t.Fatalf("event %d: scope %q", i, e.S)
			}
		default:
			t.Fatalf("event %d: phase %q", i, e.Ph)
		}
		if e.Ph != "M" && !processes[tr.pid] {
			t.Fatalf("event %d: process %d has no name", i, tr.pid)
		}
		if e.Ph != "M" && e.Ph != "C" && !tracks[tr] {
			t.Fatalf("event %d: track %v has no name", i, tr)
		}
	}
	for id, p := range flows {
		if p[0].Ph != "s" || p[1].Ph != "f" {
			t.Fatalf("flow %d has one end: %+v", id, p)
		}
		if ns(t, p[0].Ts) > ns(t, p[1].Ts) || *p[0].Name != *p[1].Name || p[0].Cat != p[1].Cat || *p[0].Pid == *p[1].Pid {
			t.Fatalf("flow %d: %+v", id, p)
		}
		for _, e := range p {
			at := ns(t, e.Ts)
			in := false
			for _, s := range slices[track{*e.Pid, *e.Tid}] {
				in = in || s.start == at && at < s.end && s.e.Cat == e.Cat
			}
			if !in {
				t.Fatalf("flow %d: its end at %d on process %d is at no slice", id, at, *e.Pid)
			}
		}
	}
	return slices, flows, counters
}

func TestTraceFollowsTheRules(t *testing.T) {
	for _, c := range []tapetest.Config{
		{Requests: 60, Seed: 1},
		{Requests: 60, Seed: 2, Models: 3, Concurrency: 7, Cancel: 0.3},
		{Requests: 30, Seed: 3, Concurrency: 6, Policy: &event.Policy{Kind: event.Fixed, B: []int{2, 3}, W: 50e6}},
		{Requests: 10, Seed: 4, Models: 1},
		{Requests: 60, Seed: 5, Hold: 4},
	} {
		s, want := session(t, c)
		f, n, raw := traceOf(t, s)
		cuts := 0
		for _, e := range f.Events {
			if e.Ph == "i" && *e.Name == "TRUNCATE" {
				cuts++
			}
		}
		if cuts < want.Truncated || cuts > 0 != (c.Hold > 0) { // some lie behind the end of a text
			t.Errorf("seed %d: %d marks of %d truncations", c.Seed, cuts, want.Truncated)
		}
		slices, flows, counters := checkRules(t, f)
		if _, _, again := traceOf(t, s); !bytes.Equal(raw, again) {
			t.Errorf("seed %d: two exports of one tape differ", c.Seed)
		}
		if n.Flows != len(flows) || n.Flows > want.HandOffs || want.HandOffs > 0 && n.Flows < want.HandOffs*8/10 {
			t.Errorf("seed %d: %d flows, %d hand-offs", c.Seed, n.Flows, want.HandOffs)
		}
		if n.Requests != c.Requests {
			t.Errorf("seed %d: %d requests", c.Seed, n.Requests)
		}
		checkBatches(t, s, slices, n)
		checkPens(t, s, slices)
		for p := range len(s.Roles) {
			for _, name := range []string{"ready", "running", "pending", "active", "KV", "B"} {
				if counters[counterKey{p + 1, name}] == 0 && (p == 0 || want.HandOffs > 0) {
					t.Errorf("seed %d: subserver %d has no counter %q", c.Seed, p, name)
				}
			}
		}
		if f.Unit != "ms" || f.Other["session"] != "test" {
			t.Errorf("seed %d: unit %q, %v", c.Seed, f.Unit, f.Other)
		}
	}
}

// meets says whether a slice that ends at end reaches next: rounding may have
// made it a little shorter, never longer.
func meets(end, next int64) bool { return end <= next && next-end <= 2 }

// Each batch of the tape is one slice of its subserver, at its times and with
// its figures; batches of one subserver never overlap.
func checkBatches(t *testing.T, s *Session, slices map[track][]slice, n TraceCounts) {
	t.Helper()
	type span struct{ start, end int64 }
	want := map[string]span{}
	running := map[event.Peer]int64{}
	for _, r := range s.Source.(rows.Memory) {
		switch {
		case r.Command != nil && r.Command.Kind == event.RunBatch:
			running[r.Core] = r.At
		case r.Event != nil && r.Event.Step != nil:
			want[fmt.Sprintf("%d/%d", r.Core, r.Event.Step.Batch)] = span{running[r.Core], r.At}
		}
	}
	got := 0
	for p := range s.Roles {
		var end int64
		for _, sl := range slices[track{p + 1, p + 1}] {
			if sl.start < end {
				t.Fatalf("batches of subserver %d overlap at %d", p, sl.start)
			}
			end = sl.end
			key := fmt.Sprintf("%d/%v", p, sl.e.Args["batch"])
			if w := want[key]; w.start != sl.start || !meets(sl.end, w.end) {
				t.Fatalf("batch %s is at %v, want %v", key, sl, w)
			}
			if reqs := sl.e.Args["requests"].([]any); float64(len(reqs)) != sl.e.Args["rows"] || len(reqs) == 0 {
				t.Fatalf("batch %s: %v", key, sl.e.Args)
			}
			for _, arg := range []string{"rule", "ready", "B", "tokens", "exec_us", "route_us", "drops"} {
				if _, ok := sl.e.Args[arg]; !ok {
					t.Fatalf("batch %s has no %s", key, arg)
				}
			}
			got++
		}
	}
	if got != len(want) || got != n.Batches {
		t.Errorf("%d batch slices, %d counted, %d batches on the tape", got, n.Batches, len(want))
	}
}

// The pen of a request is somewhere at every moment of its life: its slices
// fill the request's slice without gaps.
func checkPens(t *testing.T, s *Session, byTrack map[track][]slice) {
	t.Helper()
	names := map[string]int{}
	requests := 0
	pid := len(s.Roles) + 1
	for tr, l := range byTrack {
		if tr.pid != pid {
			continue
		}
		var outer slice
		at := int64(-1)
		for _, sl := range l {
			if sl.e.Cat == "request" {
				if at >= 0 && !meets(at, outer.end) {
					t.Fatalf("%s ends at %d, its pen at %d", *outer.e.Name, outer.end, at)
				}
				outer, at = sl, sl.start
				requests++
				continue
			}
			if sl.e.Cat != "pen" || !meets(at, sl.start) || sl.end > outer.end {
				t.Fatalf("%s: pen %s from %d to %d, the last ended at %d", *outer.e.Name, *sl.e.Name, sl.start, sl.end, at)
			}
			at = sl.end
			names[*sl.e.Name]++
		}
		if !meets(at, outer.end) {
			t.Fatalf("%s ends at %d, its pen at %d", *outer.e.Name, outer.end, at)
		}
	}
	want := slices.Clone(s.Roles)
	if len(s.Roles) > 1 {
		want = append(want, penFlight)
	}
	for _, w := range want {
		if names[w] == 0 {
			t.Errorf("no pen is %q: %v", w, names)
		}
		delete(names, w)
	}
	if len(names) > 0 || requests == 0 {
		t.Errorf("%d requests, other pens %v", requests, names)
	}
}

func TestInstants(t *testing.T) {
	s, _ := session(t, tapetest.Config{Requests: 60, Seed: 1, Models: 3, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 1, 2}, W: 50e6}})
	recs := s.Source.(rows.Memory)
	at := recs[len(recs)-1].At
	recs = append(recs[:len(recs)-1:len(recs)-1],
		tape.Record{Core: event.None, At: at, Kind: tape.KindHost, Host: &tape.Setting{Setting: "clock", Old: "live", New: "paced"}},
		tape.Record{Core: event.None, At: at, Kind: tape.KindHost, Host: &tape.Message{Level: tape.Info, Text: "not shown"}},
		tape.Record{Core: event.None, At: at, Kind: tape.KindHost, Host: &tape.Message{Level: tape.Error, Text: "disk full"}},
		tape.Record{Core: event.None, At: at, Kind: tape.KindHost, Host: &tape.Telemetry{CPU: -1, RSS: 5, GPUs: []tape.GPU{{Util: 50, Used: 9, Watts: -1}}}},
		recs[len(recs)-1])
	s.Source = recs
	f, _, _ := traceOf(t, s)
	_, _, counters := checkRules(t, f)
	got := map[string]string{}
	for _, e := range f.Events {
		if e.Ph == "i" {
			got[*e.Name] = e.Cat + e.S
		}
	}
	for name, want := range map[string]string{
		"router r2r.lua@" + tapetest.HashAfter + " live": "routerg",
		"threshold 0.5 > 0.25":                           "knobg",
		"policy fixed:1,1,2":                             "policyg",
		"clock live > paced":                             "settingg",
		"disk full":                                      "errorg",
		"closed: done":                                   "closedg",
		"fault":                                          "notep",
	} {
		if got[name] != want {
			t.Errorf("instant %q is %q, want %q", name, got[name], want)
		}
	}
	if _, ok := got["not shown"]; ok {
		t.Error("an info message is an instant")
	}
	machine := len(s.Roles) + 3
	for name, want := range map[string]int{"CPU of this process": 1, "memory of this process": 2, "GPU 0 load": 1, "GPU 0 power": 0} {
		if n := counters[counterKey{machine, name}]; n != want {
			t.Errorf("counter %q has %d values, want %d", name, n, want)
		}
	}
}

// A tape that ends anywhere still gives a trace that follows the rules: running
// batches and open requests end where the tape does.
func TestTraceOfAnyBeginning(t *testing.T) {
	s, _ := session(t, tapetest.Config{Requests: 4, Seed: 5, Cancel: 0.5})
	recs := s.Source.(rows.Memory)
	unfinished := 0
	for n := 0; n < len(recs); n += 7 {
		s.Source = recs[:n]
		f, _, _ := traceOf(t, s)
		sl, _, _ := checkRules(t, f)
		for _, l := range sl {
			unfinished += slicesUnfinished(l)
		}
		s.Source = recs[n:]
		f, _, _ = traceOf(t, s)
		checkRules(t, f)
	}
	if unfinished == 0 {
		t.Error("nothing is ever unfinished")
	}
}

func slicesUnfinished(l []slice) (n int) {
	for _, s := range l {
		if s.e.Args["end"] == "unfinished" {
			n++
		}
	}
	return n
}

// The pen of one request, step by step.
func TestPensOfOneRequest(t *testing.T) {
	rec := func(at int64, core event.Peer, ev *event.Event, cmd *event.Command) tape.Record {
		r := tape.Record{At: at, Core: core, Kind: tape.KindEvent, Event: ev, Command: cmd}
		if cmd != nil {
			r.Kind = tape.KindCommand
		}
		return r
	}
	batch := &event.Batch{ID: 1, Ready: 1, B: 1, Rows: []event.Row{{Req: 1, Tokens: []event.Token{1, 2}, Prefill: true, Sample: true}}}
	step := &event.StepResult{Batch: 1, ExecNs: 900, RouteNs: 100, Rows: []event.RowResult{{Req: 1, Dest: 1}}}
	msg := &event.PeerReq{ID: 1, Status: event.New, Hop: 1}
	back := &event.PeerReq{ID: 1, From: 1, Status: event.Finished, Hop: 2}
	s := &Session{Name: "one", Roles: event.Roles(2), Source: rows.Memory{
		rec(1000, 0, &event.Event{Kind: event.Arrive, Req: 1, Arrival: &event.Arrival{Prompt: []event.Token{1, 2}}}, nil),
		rec(1500, 0, nil, &event.Command{Kind: event.Admit, Req: 1}),
		rec(2000, 0, nil, &event.Command{Kind: event.RunBatch, Batch: batch}),
		rec(3000, 0, &event.Event{Kind: event.StepDone, Step: step}, nil),
		rec(3000, 0, nil, &event.Command{Kind: event.Emit, Req: 1, Pos: 2}),
		rec(3000, 0, nil, &event.Command{Kind: event.SendPeer, Req: 1, To: 1, Peer: msg}),
		rec(3500, 1, &event.Event{Kind: event.PeerIn, Peer: msg}, nil),
		rec(4000, 1, nil, &event.Command{Kind: event.RunBatch, Batch: batch}),
		rec(5000, 1, &event.Event{Kind: event.StepDone, Step: step}, nil),
		rec(5000, 1, nil, &event.Command{Kind: event.Emit, Req: 1, Pos: 3}),
		rec(5000, 1, nil, &event.Command{Kind: event.SendPeer, Req: 1, To: 0, Peer: back}),
		rec(6000, 0, nil, &event.Command{Kind: event.Finish, Req: 1, N: 4}),
	}}
	f, n, _ := traceOf(t, s)
	sl, flows, _ := checkRules(t, f)
	var got []string
	for _, x := range sl[track{3, firstLane}] {
		got = append(got, fmt.Sprintf("%s %d-%d %v", *x.e.Name, x.start, x.end, x.e.Args["tokens"]))
	}
	want := []string{
		"request 1 1000-6000 2", "waiting 1000-1500 0", "small 1500-3000 1", "in flight 3000-3500 0", "large 3500-6000 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if n != (TraceCounts{Batches: 2, Requests: 1, Flows: 1}) || ns(t, flows[1][0].Ts) != 2000 || ns(t, flows[1][1].Ts) != 4000 {
		t.Errorf("%+v, flow %+v", n, flows[1])
	}
}
