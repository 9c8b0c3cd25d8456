package frontier_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/frontier"
	"tokenrouter/runtime/tape"
)

func row(req event.ReqID, entropy float32, a event.Action) event.RowResult {
	return event.RowResult{Req: req, Output: event.Output{Entropy: entropy}, Action: a}
}

// tapeOf has request 7, whose small model writes two tokens, drops one that the large
// one writes, and ends with one of the large one's that the small one emits; and 8,
// which is cut by force. Records of 7 behind its end, and what the client never got,
// do not count.
func tapeOf() []tape.Record {
	ev := func(at int64, core event.Peer, e event.Event) tape.Record {
		return tape.Record{At: at, Core: core, Kind: tape.KindEvent, Event: &e}
	}
	do := func(at int64, core event.Peer, c event.Command) tape.Record {
		return tape.Record{At: at, Core: core, Kind: tape.KindCommand, Command: &c}
	}
	host := func(h tape.Host) tape.Record { return tape.Record{Core: event.None, Kind: tape.KindHost, Host: h} }
	fed := func(at int64, core event.Peer, tokens int) tape.Record {
		return do(at, core, event.Command{Kind: event.RunBatch, Batch: &event.Batch{Rows: []event.Row{{Req: 7, Tokens: make([]event.Token, tokens)}}}})
	}
	step := func(at int64, core event.Peer, rows ...event.RowResult) tape.Record {
		return ev(at, core, event.Event{Kind: event.StepDone, Step: &event.StepResult{Rows: rows}})
	}
	emit := func(at int64, core event.Peer, pos int, wrote event.Peer) tape.Record {
		return do(at, core, event.Command{Kind: event.Emit, Req: 7, Pos: pos, Wrote: wrote})
	}
	scored := row(7, 1, event.Keep)
	scored.Score, scored.Scored = 0.25, true
	return []tape.Record{
		host(&tape.Request{Req: 7, Task: "seven"}),
		ev(1000, 0, event.Event{Kind: event.Arrive, Req: 7, Arrival: &event.Arrival{Prompt: make([]event.Token, 5)}}),
		host(&tape.Request{Req: 8, Task: "eight"}),
		ev(1000, 0, event.Event{Kind: event.Arrive, Req: 8, Arrival: &event.Arrival{Prompt: make([]event.Token, 3)}}),
		fed(1000, 0, 5), step(1500, 0, scored), emit(1500, 0, 5, 0),
		fed(1500, 0, 1), step(2000, 0, row(7, 3, event.Keep)), emit(2000, 0, 6, 0),
		fed(2000, 0, 1), step(2500, 0, row(7, 5, event.Drop)),
		fed(2500, 1, 7), step(3000, 1, row(7, 9, event.Keep)), emit(3000, 1, 7, 0),
		emit(3100, 0, 8, 2), // the large one's, by who emits it
		emit(3200, 0, 9, 0), // behind the end of the answer
		host(&tape.Result{Req: 7, Task: "seven", Reason: "stop", Tokens: 4, Checked: true, Correct: true}),
		do(3500, 0, event.Command{Kind: event.Finish, Req: 7, Reason: event.ReasonStop, N: 9}),
		step(4000, 1, row(7, 9, event.Keep)), emit(4000, 1, 10, 0),
		do(4000, 0, event.Command{Kind: event.Finish, Req: 8, Reason: event.ReasonAborted, N: 3}),
		host(&tape.Result{Req: 8, Task: "eight", Reason: "aborted"}),
	}
}

func TestFold(t *testing.T) {
	f := frontier.NewFold(2)
	for _, r := range tapeOf() {
		f.Add(&r)
	}
	want := []frontier.Outcome{{
		Task: "seven", Prompt: 5, Checked: true, Right: true, Reason: "stop",
		Tokens: []int{2, 2}, Steps: []int{3, 1}, Fed: []int{7, 7}, Switches: 1, Ns: 2500,
		Entropy: 3, Score: 0.25, Scored: true,
	}}
	if d := cmp.Diff(want, f.Outcomes()); d != "" {
		t.Error(d)
	}
}

// Whatever subset of records is seen and whatever peers they name: no panic, and no
// outcome of a request that was not both finished and judged.
func TestFoldOfFragments(t *testing.T) {
	all := tapeOf()
	for skip := range all {
		f := frontier.NewFold(1) // the large one's records are of nobody
		for i, r := range all {
			if i != skip {
				f.Add(&r)
			}
		}
		for _, o := range f.Outcomes() {
			if o.Task != "seven" && o.Task != "" || len(o.Tokens) != 1 {
				t.Errorf("without record %d: %+v", skip, o)
			}
		}
	}
}
