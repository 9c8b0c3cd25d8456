package sched

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

// slowClamp is the rule in the words of INV-7.
func slowClamp(b, seats []int, n int) []int {
	b = slices.Clone(b)
	for m := range b {
		b[m] = max(1, min(b[m], seats[m]))
	}
	for {
		sum, top := 0, 0
		for m := range b {
			sum += b[m] - 1
			if b[m] >= b[top] {
				top = m
			}
		}
		if sum < n || b[top] == 1 {
			return b
		}
		b[top]--
	}
}

// The clamp follows the rule and leaves no more and no less than is feasible
// (INV-7): all n requests can be stuck iff every queue m holds b[m]-1 of them.
func TestClamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(t, "subservers")
		b := rapid.SliceOfN(rapid.IntRange(-2, 12), k, k).Draw(t, "B")
		seats := rapid.SliceOfN(rapid.IntRange(1, 12), k, k).Draw(t, "seats")
		n := rapid.IntRange(0, 20).Draw(t, "active")
		got := slices.Clone(b)
		Clamp(got, seats, n)
		if want := slowClamp(b, seats, n); !slices.Equal(got, want) {
			t.Fatalf("Clamp(%v, %v, %d) = %v, want %v", b, seats, n, got, want)
		}
		stuck, asked := 0, 0
		for m := range got {
			stuck += got[m] - 1
			asked += max(1, min(b[m], seats[m])) - 1
		}
		if stuck != min(asked, max(n-1, 0)) {
			t.Fatalf("%v lets %d of %d wait", got, stuck, n)
		}
	})
}

func TestClampValues(t *testing.T) {
	for _, tc := range []struct {
		b, seats []int
		n        int
		want     []int
	}{
		{[]int{1, 5}, []int{8, 8}, 8, []int{1, 5}},
		{[]int{1, 8}, []int{8, 8}, 3, []int{1, 3}},          // case E2
		{[]int{1, 2, 3}, []int{8, 8, 8}, 5, []int{1, 2, 3}}, // case E3
		{[]int{3, 3}, []int{8, 8}, 4, []int{3, 2}},          // tie: the highest index gives
		{[]int{3, 3}, []int{8, 8}, 3, []int{2, 2}},
		{[]int{3, 3}, []int{8, 8}, 2, []int{2, 1}},
		{[]int{9, 9}, []int{2, 8}, 0, []int{1, 1}},
		{[]int{0, -7}, []int{2, 8}, 5, []int{1, 1}},
	} {
		got := slices.Clone(tc.b)
		Clamp(got, tc.seats, tc.n)
		if !slices.Equal(got, tc.want) {
			t.Errorf("Clamp(%v, %v, %d) = %v, want %v", tc.b, tc.seats, tc.n, got, tc.want)
		}
	}
}

// The dead are remembered exactly, in any order of dying, and in one span once
// all have died (INV-10): a long session takes no memory.
func TestGraves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "ids")
		ids := make([]event.ReqID, n)
		for i := range ids {
			ids[i] = event.ReqID(i + 1)
		}
		order := rapid.Permutation(ids).Draw(t, "order")
		var g graves
		for i, id := range order {
			g.add(id)
			g.add(order[i/2])
			if err := g.check(); err != nil {
				t.Fatal(err)
			}
			for _, q := range ids {
				if g.has(q) != slices.Contains(order[:i+1], q) {
					t.Fatalf("%v: has(%d) = %v", g.spans, q, g.has(q))
				}
			}
		}
		if len(g.spans) != 1 || g.has(0) || g.has(event.ReqID(n+1)) {
			t.Fatalf("%v", g.spans)
		}
	})
	var g graves
	for id := event.ReqID(1); id <= 1_000_000; id += 2 {
		g.add(id + 1)
		g.add(id)
	}
	if len(g.spans) != 1 || cap(g.spans) > 8 {
		t.Errorf("a million requests leave %d spans", len(g.spans))
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "at least one"},
		{Config{Seats: []int{1, 1}, KVTokens: []int{64}}, "1 pools"},
		{Config{Self: 2, Seats: []int{1, 1}, KVTokens: []int{64, 64}}, "no subserver 2"},
		{Config{Self: -1, Seats: []int{1}, KVTokens: []int{64}}, "no subserver -1"},
		{Config{Seats: []int{1, 0}, KVTokens: []int{64, 64}}, "subserver 1 has 0 seats"},
		{Config{Seats: []int{1, 1}, KVTokens: []int{64, 8}}, "subserver 1: a KV pool of 8"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Block: -1}, "block of -1"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Chunk: -1}, "feeds at most -1"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Budget: -2}, "a batch -2"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Overcommit: -5}, "-5 % of the smallest"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Overcommit: 1 << 40}, "give 1 to 100000"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Overcommit: 20}, "20 % of the 4 KV blocks"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, MaxActive: -1}, "at most -1 requests"},
		{Config{Seats: []int{1}, KVTokens: []int{64}, Timeout: -1}, "time-out of -1 ns"},
	} {
		if _, err := New(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.cfg, err, tc.want)
		}
	}
}

// A row counts the positions that were fed here once and are fed again because
// their KV is gone; the last token fed once more for its logits is none of them.
func TestRowCountsRecomputed(t *testing.T) {
	for _, tc := range []struct{ had, fed, start, want int }{
		{0, 0, 0, 0}, // prefill
		{2, 2, 2, 0}, // decode
		{3, 3, 2, 0}, // once more for the logits
		{2, 1, 1, 1},
		{3, 0, 0, 3},
	} {
		c := busy(t)
		r := c.reqs[3]
		r.had, r.fed = tc.had, tc.fed
		r.feed = len(r.tokens) - r.from()
		if row := c.row(r); row.Start != tc.start || row.Recomputed != tc.want {
			t.Errorf("%d of %d positions fed are in KV: %+v, want %d recomputed from %d", tc.fed, tc.had, row, tc.want, tc.start)
		}
	}
}

type stuck struct{}

func (stuck) threshold(s *situation) decision {
	return decision{b: s.seats[s.self], want: s.seats[s.self]}
}

func (stuck) rule() event.Rule { return event.RuleB }

// Foreign events of every kind are noted and change nothing.
func TestForeignEvents(t *testing.T) {
	for _, ev := range []event.Event{
		{},
		{Kind: 99},
		{Kind: event.Arrive, Req: 8},
		{Kind: event.Arrive, Arrival: &event.Arrival{Prompt: []event.Token{1}, MaxTokens: 1}},
		{Kind: event.StepDone},
		{Kind: event.StepDone, Step: &event.StepResult{Batch: 77}},
		{Kind: event.PeerIn},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: 0, Hop: 2}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: 2, Hop: 2}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: -1, Hop: 2}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: 1, Hop: 2, Status: event.Abort}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: 1, Hop: 2, Status: 99}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: 1, Hop: 0}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 3, From: 1, Hop: 1, Loc: -1, Status: event.Resend}},
		{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 99, From: 1, Hop: 1}},
		{Kind: event.Active, N: 3},
		{Kind: event.Stop, Req: 99},
		{Kind: event.Stop, Req: 4, Pos: 2},
		{Kind: event.Stop, Req: 6, Pos: -1},
		{Kind: event.Cancel},
		{Kind: event.Cancel, Req: 99},
		{Kind: event.SetPolicy},
	} {
		c := busy(t)
		before := c.Load()
		cmds := c.Step(&ev, nil)
		if len(cmds) != 1 || cmds[0].Kind != event.Note || cmds[0].Text == "" {
			t.Errorf("%v: %v", ev, cmds)
		}
		if after := c.Load(); after != before {
			t.Errorf("%v: %+v became %+v", ev, before, after)
		}
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", ev, err)
		}
	}
	c, err := New(Config{Self: 1, Seats: []int{1, 1}, KVTokens: []int{64, 64}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range []event.Event{
		{Kind: event.Arrive, Req: 1, Arrival: &event.Arrival{Prompt: []event.Token{1}, MaxTokens: 1}},
		{Kind: event.Stop, Req: 1},
		{Kind: event.Cancel, Req: 1},
		{Kind: event.Active, N: -1},
	} {
		if cmds := c.Step(&ev, nil); len(cmds) != 1 || cmds[0].Note != event.NoteUnknown {
			t.Errorf("%v at a peer: %v", ev, cmds)
		}
	}
}

// A message that cannot be gone on with ends its request at once; nobody waits
// for it for ever.
func TestMalformedMessages(t *testing.T) {
	good := event.PeerReq{
		ID: 3, From: 1, Hop: 2, Loc: 3, Suffix: []event.Token{5}, Seen: []int{4, 4}, Status: event.Alive,
		Limits: event.Limits{PromptLen: 2, MaxLen: 12},
	}
	if cmds := busy(t).Step(&event.Event{Kind: event.PeerIn, Peer: &good}, nil); len(cmds) != 0 {
		t.Fatalf("%v", cmds)
	}
	for name, bad := range map[string]func(m *event.PeerReq){
		"negative anchor": func(m *event.PeerReq) { m.Loc = -1 },
		"too long":        func(m *event.PeerReq) { m.Suffix = make([]event.Token, 10) },
		"short vector":    func(m *event.PeerReq) { m.Seen = []int{4} },
		"lying vector":    func(m *event.PeerReq) { m.Seen = []int{4, 5} },
		"negative vector": func(m *event.PeerReq) { m.Seen = []int{4, -1} },
	} {
		m := good
		bad(&m)
		c := busy(t)
		cmds := c.Step(&event.Event{Kind: event.PeerIn, Peer: &m}, nil)
		if len(cmds) == 0 || cmds[0].Kind != event.Finish || cmds[0].Reason != event.ReasonError || cmds[0].Text == "" {
			t.Errorf("%s: %v", name, cmds)
		}
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Dispatch that orders nothing changes nothing: idle, waiting for others with
// a timer out, clamped or not, or running (INV-6).
func TestSilentDispatch(t *testing.T) {
	c, err := New(Config{Self: 1, Seats: []int{4, 4}, KVTokens: []int{64, 64}})
	if err != nil {
		t.Fatal(err)
	}
	quiet := func() {
		t.Helper()
		before := c.Clone()
		if cmds := c.Step(&event.Event{Kind: event.Dispatch}, nil); len(cmds) != 0 {
			t.Fatalf("not silent: %v", cmds)
		}
		if after := c.Clone(); !reflect.DeepEqual(before, after) {
			t.Fatalf("%+v became %+v", before, after)
		}
	}
	loud := func(ev event.Event, want event.CmdKind) {
		t.Helper()
		if cmds := c.Step(&ev, nil); len(cmds) == 0 || cmds[len(cmds)-1].Kind != want {
			t.Fatalf("%v: %v, want %v", ev, cmds, want)
		}
	}
	quiet()
	c.Step(&event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}, W: 9}}, nil)
	c.Step(&event.Event{Kind: event.Active, N: 2}, nil)
	c.Step(&event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{
		ID: 1, Hop: 1, Suffix: []event.Token{1}, Seen: []int{1, 1}, Limits: event.Limits{PromptLen: 1, MaxLen: 9},
	}}, nil)
	loud(event.Event{Kind: event.Dispatch}, event.WakeAt) // clamped to 2
	quiet()
	c.Step(&event.Event{Kind: event.Active, N: 3}, nil) // not clamped any more
	quiet()
	c.Step(&event.Event{Kind: event.Active, N: 2}, nil)
	quiet()
	loud(event.Event{Kind: event.Dispatch, At: 9}, event.RunBatch)
	quiet()
}

// A request that may go on for millions of tokens takes memory as it grows.
func TestLongRequestsGrow(t *testing.T) {
	const most = 1 << 22
	c, err := New(Config{Seats: []int{1, 1}, KVTokens: []int{2 * most, 2 * most}})
	if err != nil {
		t.Fatal(err)
	}
	arrival := &event.Arrival{Prompt: make([]event.Token, 100), MaxTokens: most}
	cmds := c.Step(&event.Event{Kind: event.Arrive, Req: 1, Arrival: arrival}, nil)
	cmds = c.Step(&event.Event{Kind: event.Dispatch}, cmds)
	if r := c.reqs[1]; cap(r.tokens) > 2000 || cap(r.tokens) < 101 {
		t.Errorf("%d tokens have room for %d of %d", len(r.tokens), cap(r.tokens), r.limits.MaxLen)
	}
	for range 5000 {
		b := c.Running()
		res := &event.StepResult{Batch: b.ID, Rows: []event.RowResult{{Req: 1, Output: event.Output{Token: 9}}}}
		c.Step(&event.Event{Kind: event.StepDone, Step: res}, nil)
		c.Step(&event.Event{Kind: event.Dispatch}, nil)
	}
	if r := c.reqs[1]; len(r.tokens) != 5100 || cap(r.tokens) > 2*len(r.tokens) {
		t.Errorf("%d tokens have room for %d", len(r.tokens), cap(r.tokens))
	}
	if len(cmds) == 0 || c.Check() != nil {
		t.Errorf("%v, %v", cmds, c.Check())
	}
}
