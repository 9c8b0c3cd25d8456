package rows_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/rows"
	"tokenrouter/sessions/tapetest"
)

func collect(t *testing.T, recs []tape.Record) []rows.Row {
	t.Helper()
	src := rows.Memory(recs)
	x, err := rows.NewIndex(src)
	if err != nil {
		t.Fatal(err)
	}
	var out []rows.Row
	for r, err := range rows.All(src, x) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func tapeOf(t *testing.T, c tapetest.Config) ([]tape.Record, tapetest.Outcome) {
	t.Helper()
	recs, out, err := tapetest.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return recs, out
}

// The committed rows of a request are its text, position by position, whatever
// was dropped, cut behind a stop or cancelled on the way (case B7: a token
// counts once).
func TestCommittedRowsAreTheText(t *testing.T) {
	for _, cfg := range []tapetest.Config{
		{Requests: 60, Seed: 1},
		{Requests: 60, Seed: 2, Models: 3, Concurrency: 7},
		{Requests: 60, Seed: 3, Cancel: 0.4},
		{Requests: 30, Seed: 4, Models: 1},
		{Requests: 60, Seed: 6, Hold: 4},
		{Requests: 60, Seed: 7, Hold: 2, Models: 3, Cancel: 0.2, Concurrency: 7},
		{Requests: 30, Seed: 5, Concurrency: 6, Policy: &event.Policy{Kind: event.Fixed, B: []int{2, 3}, W: 50e6}},
	} {
		recs, want := tapeOf(t, cfg)
		drops, cuts := 0, 0
		text := map[event.ReqID][]event.Token{}
		next := map[event.ReqID]int{}
		for _, r := range collect(t, recs) {
			if !r.Committed {
				drops++
				switch {
				case r.Truncated && r.Action == event.Keep && r.Output != nil:
				case r.Action == event.Truncate && !r.Truncated && r.Cut < r.Pos:
					cuts++
				case r.Action != event.Drop || r.Truncated:
					t.Errorf("seed %d: an uncommitted row %+v", cfg.Seed, r)
				}
				continue
			}
			if r.Truncated || r.Action != event.Keep || r.Output == nil || r.Output.Token != r.Token || r.Batch == 0 || r.BatchRows == 0 {
				t.Fatalf("seed %d: row %+v", cfg.Seed, r)
			}
			if n := next[r.Req]; n != 0 && r.Pos != n {
				t.Fatalf("seed %d: request %d jumps to position %d, want %d", cfg.Seed, r.Req, r.Pos, n)
			}
			next[r.Req] = r.Pos + 1
			text[r.Req] = append(text[r.Req], r.Token)
		}
		for id, toks := range want.Text {
			if !slices.Equal(text[id], toks) {
				t.Errorf("seed %d: request %d has rows %v, the client saw %v", cfg.Seed, id, text[id], toks)
			}
		}
		if drops != want.Drops {
			t.Errorf("seed %d: %d dropped rows, want %d", cfg.Seed, drops, want.Drops)
		}
		if cuts != want.Truncated || cuts == 0 != (cfg.Hold == 0) {
			t.Errorf("seed %d: %d rows take tokens back, %d decisions did", cfg.Seed, cuts, want.Truncated)
		}
		if cfg.Models != 1 && (want.Drops == 0 || want.HandOffs == 0) || cfg.Seed < 3 && want.Cut == 0 || cfg.Cancel > 0 && want.Cancelled == 0 {
			t.Errorf("seed %d: the run shows too little: %d drops, %d hand-offs, %d cut, %d cancelled", cfg.Seed, want.Drops, want.HandOffs, want.Cut, want.Cancelled)
		}
	}
}

// Dest is where the pen went: the receiver of the hand-off that followed, or
// the writer itself.
func TestDestIsWhereTheRequestWent(t *testing.T) {
	recs, _ := tapeOf(t, tapetest.Config{Requests: 60, Seed: 8, Models: 3})
	sent := map[[2]uint64]event.Peer{} // request and hop order by step record
	var step uint64
	for _, r := range recs {
		switch {
		case r.Kind == tape.KindEvent:
			step = r.Seq
		case r.Kind == tape.KindCommand && r.Command.Kind == event.SendPeer && r.Command.Peer.Status <= event.Alive:
			sent[[2]uint64{step, uint64(r.Command.Req)}] = r.Command.To
		}
	}
	ends := map[event.ReqID]int{}
	all := collect(t, recs)
	for _, r := range all {
		if r.Committed {
			ends[r.Req] = r.Pos
		}
	}
	away, faults := 0, 0
	for _, r := range all {
		to, ok := sent[[2]uint64{r.Seq, uint64(r.Req)}]
		if r.Fault != "" {
			faults++
		}
		switch {
		case ok:
			away++
			if r.Dest != to {
				t.Fatalf("request %d at %d went to %d, the row says %d", r.Req, r.Pos, to, r.Dest)
			}
		case r.Pos != ends[r.Req] && r.Dest != r.Model:
			t.Fatalf("request %d at %d stayed at %d, the row says %d", r.Req, r.Pos, r.Model, r.Dest)
		}
	}
	if away == 0 || faults == 0 {
		t.Errorf("%d hand-offs, %d faults: the run shows too little", away, faults)
	}
}

// A core that is overruled: a spent budget and an impossible decision send the
// request home, and an impossible DROP is a KEEP.
func TestOverruledDecisions(t *testing.T) {
	batch := &event.Batch{ID: 4, Rule: event.RuleGuard, Rows: []event.Row{
		{Req: 1, Start: 9, Tokens: []event.Token{5}, Sample: true, WaitedNs: 11},
		{Req: 2, Start: 0, Tokens: []event.Token{5, 6}},
		{Req: 3, Start: 3, Tokens: []event.Token{5, 6}, Sample: true, WaitedNs: 33},
	}}
	step := &event.StepResult{Batch: 4, Rows: []event.RowResult{
		{Req: 1, Output: event.Output{Token: 7}, Dest: 1, Action: event.Keep, Router: "aa"},
		{Req: 3, Output: event.Output{Token: 8}, Dest: 1, Action: event.Drop, Router: "aa"},
	}}
	cmd := func(c event.Command) tape.Record {
		return tape.Record{Core: 1, Kind: tape.KindCommand, Command: &c}
	}
	recs := []tape.Record{
		cmd(event.Command{Kind: event.RunBatch, Batch: batch}),
		{At: 50, Core: 1, Kind: tape.KindEvent, Event: &event.Event{Kind: event.StepDone, Step: step}},
		cmd(event.Command{Kind: event.Emit, Req: 1, Pos: 10, Token: 7}),
		cmd(event.Command{Kind: event.Note, Note: event.NoteBudget, Req: 1}),
		cmd(event.Command{Kind: event.SendPeer, Req: 1, To: 0, Peer: &event.PeerReq{ID: 1, Status: event.Alive}}),
		cmd(event.Command{Kind: event.Note, Note: event.NoteFault, Req: 3, Text: "dropped twice"}),
		cmd(event.Command{Kind: event.Emit, Req: 3, Pos: 5, Token: 8}),
		cmd(event.Command{Kind: event.SendPeer, Req: 3, To: 0, Peer: &event.PeerReq{ID: 3, Status: event.Finished}}),
	}
	for i := range recs {
		recs[i].Seq = uint64(i + 1)
	}
	want := []rows.Row{
		{
			Seq: 2, At: 50, Req: 1, Pos: 10, Token: 7, Committed: true, Model: 1, Dest: 0, Output: &step.Rows[0].Output,
			Router: "aa", Batch: 4, Rule: event.RuleGuard, BatchRows: 3, WaitedNs: 11,
		},
		{
			Seq: 2, At: 50, Req: 3, Pos: 5, Token: 8, Committed: true, Model: 1, Dest: 0, Output: &step.Rows[1].Output,
			Router: "aa", Fault: "dropped twice", Batch: 4, Rule: event.RuleGuard, BatchRows: 3, WaitedNs: 33,
		},
	}
	if diff := cmp.Diff(want, collect(t, recs)); diff != "" {
		t.Error(diff)
	}
}

// A tape that begins in the middle of a batch still yields every commit.
func TestCommitWithoutItsBatch(t *testing.T) {
	recs := []tape.Record{
		{Seq: 9, Core: 1, Kind: tape.KindEvent, Event: &event.Event{Kind: event.StepDone, Step: &event.StepResult{
			Batch: 3, Rows: []event.RowResult{{Req: 1, Output: event.Output{Token: 7}}},
		}}},
		{Seq: 10, At: 5, Core: 1, Kind: tape.KindCommand, Command: &event.Command{Kind: event.Emit, Req: 1, Pos: 10, Token: 7}},
	}
	want := []rows.Row{{Seq: 10, At: 5, Req: 1, Pos: 10, Token: 7, Committed: true, Model: 1, Dest: 1}}
	if diff := cmp.Diff(want, collect(t, recs)); diff != "" {
		t.Error(diff)
	}
}

// Rows come in the order of their steps, also where a core is told nothing for
// a long time after its step.
func TestOrderAndIdleCore(t *testing.T) {
	batch := func(id uint64, req event.ReqID) *event.Batch {
		return &event.Batch{ID: id, Rows: []event.Row{{Req: req, Tokens: []event.Token{1}, Start: int(id), Sample: true}}}
	}
	var recs []tape.Record
	add := func(core event.Peer, ev *event.Event, cmd *event.Command) {
		k := tape.KindEvent
		if cmd != nil {
			k = tape.KindCommand
		}
		recs = append(recs, tape.Record{Seq: uint64(len(recs) + 1), Core: core, Kind: k, Event: ev, Command: cmd})
	}
	step := func(core event.Peer, id uint64, req event.ReqID) {
		add(core, nil, &event.Command{Kind: event.RunBatch, Batch: batch(id, req)})
		add(core, &event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: id, Rows: []event.RowResult{{Req: req}}}}, nil)
		add(core, nil, &event.Command{Kind: event.Emit, Req: req, Pos: int(id) + 1})
	}
	step(1, 1, 2) // then subserver 1 hears nothing more
	const n = 5000
	for i := range n {
		step(0, uint64(i+1), 1)
	}
	src := rows.Memory(recs)
	x, err := rows.NewIndex(src)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	got := 0
	read := counted{src: recs}
	for r, err := range rows.All(&read, x) {
		if err != nil {
			t.Fatal(err)
		}
		if got == 0 && read.n > len(recs)/2 {
			t.Errorf("the first row comes after %d of %d records", read.n, len(recs))
		}
		if r.Seq <= last {
			t.Fatalf("row of record %d after %d", r.Seq, last)
		}
		last = r.Seq
		got++
	}
	if got != n+1 {
		t.Errorf("%d rows, want %d", got, n+1)
	}
}

type counted struct {
	src []tape.Record
	n   int
}

func (c *counted) Records() iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range c.src {
			c.n++
			if !yield(r, nil) {
				return
			}
		}
	}
}

type broken struct{ err error }

func (b broken) Records() iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) { yield(tape.Record{}, b.err) }
}

func TestErrorsOfTheSource(t *testing.T) {
	want := errors.New("the frame at offset 16 is damaged")
	if _, err := rows.NewIndex(broken{want}); !errors.Is(err, want) {
		t.Errorf("NewIndex: %v", err)
	}
	n := 0
	for _, err := range rows.All(broken{want}, &rows.Index{}) {
		n++
		if !errors.Is(err, want) {
			t.Errorf("All: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("All yields %d times", n)
	}
}

func TestIndex(t *testing.T) {
	recs, want := tapeOf(t, tapetest.Config{Requests: 10, Seed: 6, Models: 3})
	x, err := rows.NewIndex(rows.Memory(recs))
	if err != nil {
		t.Fatal(err)
	}
	if x.Cores != 3 || len(x.Tasks) != 10 || x.Tasks[3] != "task-3" || len(x.Ends) != 10 {
		t.Errorf("index %+v", x)
	}
	if diff := cmp.Diff(map[string]string{tapetest.HashBefore: "r2r.lua", tapetest.HashAfter: "r2r.lua"}, x.Routers); diff != "" {
		t.Error(diff)
	}
	if x.LastAt != recs[len(recs)-1].At {
		t.Errorf("last at %d, want %d", x.LastAt, recs[len(recs)-1].At)
	}
	for id, e := range x.Ends {
		if e.Len-5 != want.Emitted[id] {
			t.Errorf("request %d ends at %d, the client saw %d new tokens", id, e.Len, want.Emitted[id])
		}
	}
}
