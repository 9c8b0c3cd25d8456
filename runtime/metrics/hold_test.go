package metrics_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/rng"
)

// drafts is a router that lets the small model write drafts of k tokens. Those at
// unsure positions, and all behind the first of them, are taken back; the large
// model writes that position. Every wrong-th decision is one that the core
// overrules.
type drafts struct {
	k, wrong int
	n        map[event.ReqID]int // of the running draft
	over     map[event.ReqID]int // its first unsure position, 0 if none
	calls    int

	taken, cuts, candidates int // tokens taken back, decisions to do so, candidates discarded
}

func (d *drafts) route(p event.Peer, id event.ReqID, pos int) event.RowResult {
	r := event.RowResult{Dest: event.Front, Hold: d.k, Output: event.Output{Token: 7}}
	d.calls++
	if p != event.Front {
		return r
	}
	if d.wrong > 0 && d.calls%d.wrong == 0 {
		r.Action, r.At, r.Dest = event.Truncate, pos+1, 1
		d.n[id], d.over[id] = 0, 0
		return r
	}
	d.n[id]++
	key := rng.Key{Seed: 11, Req: uint64(id), Pos: pos}
	if d.over[id] == 0 && key.Float64(0) < 0.1 {
		d.over[id] = pos
	}
	if d.n[id] < d.k {
		return r
	}
	if at := d.over[id]; at > 0 {
		r.Dest, r.Action, r.At = 1, event.Truncate, at
		d.taken += pos - at
		d.cuts++
		d.candidates++
	}
	d.n[id], d.over[id] = 0, 0
	return r
}

// A tape of real cores under a router that takes tokens back: every token counts
// once, under the model that wrote it, though another emitted it; those that were
// taken back are dropped rows of who wrote them; and the estimator sees what a row
// commits net of what it takes back, so that rows times K is what was emitted.
func TestTokensTakenBack(t *testing.T) {
	for _, wrong := range []int{0, 7} {
		fab, err := fabric.New(fabric.Uniform([]int{8, 8}, []int{1 << 14, 1 << 14}, 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		d := &drafts{k: 5, wrong: wrong, n: map[event.ReqID]int{}, over: map[event.ReqID]int{}}
		board, run := metrics.NewBoard(2), metrics.NewRun(2)
		est := metrics.NewEstimator(2, metrics.EstimatorOptions{HalfLife: 1e9})
		loop := &closedLoop{t: t, fab: fab, step: [2]int64{6 * ms, 27_900_000}, sink: []folder{board, run, est}, route: d.route}
		const requests, long = 6, 400
		for id := event.ReqID(1); id <= requests; id++ {
			loop.tell(event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: []event.Token{1}, MaxTokens: long}})
		}
		loop.run(9000 * ms) // in the middle of drafts
		e := est.Estimate()
		if wrong == 0 {
			near(t, "tokens of a step that takes some back", e.K[0][1], -float64(d.taken)/float64(d.cuts), 1e-6)
			if e.K[0][1] > -1 {
				t.Errorf("%v tokens: the test has lost its sense", e.K[0][1])
			}
		}
		near(t, "tokens of a stay", e.K[0][0], 1, 1e-9)
		near(t, "tokens of the large model", e.K[1][0], 1, 1e-9)
		snap := board.Snapshot(loop.now)
		for i, p := range snap.Peers {
			// A window cuts drafts: what is held back when it begins and ends.
			near(t, "rows/s of "+[]string{"small", "large"}[i], p.CommittedPerS+p.DroppedPerS, p.RowsPerS, 0.03*p.RowsPerS)
		}
		loop.run(1 << 60)
		s := run.Summary(loop.now)
		small, large := s.TokensByRole[0], s.TokensByRole[1]
		same(t, "tokens", small.Tokens+large.Tokens, requests*long)
		same(t, "small rows", small.Tokens+small.Dropped, small.Rows)
		same(t, "large rows", large.Tokens+large.Dropped, large.Rows)
		same(t, "tokens taken back", small.Truncated+large.Truncated, d.taken)
		same(t, "rows that became no token", small.Dropped+large.Dropped, d.taken+d.candidates)
		if wrong == 0 {
			same(t, "large tokens", large.Tokens, d.cuts)
			same(t, "large tokens taken back", large.Truncated, 0)
		}
		if s.Faults > 0 != (wrong > 0) || d.cuts < 50 {
			t.Errorf("%d faults, %d cuts; the test has lost its sense", s.Faults, d.cuts)
		}
	}
}
