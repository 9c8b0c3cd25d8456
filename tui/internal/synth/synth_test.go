package synth

import (
	"reflect"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// The plan of the paper's pair has its published figures, less the hops of
// 0.2 ms that they leave out: 0.8 % each way.
func TestPlanIsThePapers(t *testing.T) {
	p := Plan(Paper())
	if want := [][]int{{1, 1}, {1, 2}, {1, 2}, {1, 3}}; !reflect.DeepEqual(p.Table, want) {
		t.Errorf("B* is %v, want %v", p.Table, want)
	}
	for name, c := range map[string][2]float64{
		"eager": {p.Eager, 187.190}, "at B*": {p.Best, 207.954}, "lock-step": {p.Lockstep, 138.31}, "predicted": {p.Predicted, 207.954},
	} {
		if off := c[0]/c[1] - 1; off > 0.005 || off < -0.025 {
			t.Errorf("%s: %.1f tok/s, want %.1f", name, c[0], c[1])
		}
	}
	if !(p.Low < p.Best && p.Best < p.High) {
		t.Errorf("slower steps give %.1f, faster ones %.1f, else %.1f", p.Low, p.High, p.Best)
	}
	if e := Eager(p); e.Predicted != p.Eager || e.Policy != "eager" || p.Policy != "table" {
		t.Errorf("eager is predicted at %.1f, not %.1f", e.Predicted, e.Eager)
	}
}

// Every feasible vector is tried once, and no other.
func TestVectors(t *testing.T) {
	for _, c := range []struct{ m, n, want int }{{1, 4, 0}, {2, 1, 0}, {2, 4, 3}, {3, 3, 5}, {3, 6, 20}, {4, 3, 9}} {
		seen := map[[4]int]bool{}
		vectors(c.m, c.n, func(b []int) {
			var key [4]int
			sum := 0
			for i, v := range b {
				key[i] = v
				sum += v - 1
			}
			if seen[key] || sum == 0 || sum >= c.n || b[0] != 1 {
				t.Errorf("%d models, N %d: %v", c.m, c.n, b)
			}
			seen[key] = true
		})
		if len(seen) != c.want {
			t.Errorf("%d models, N %d: %d vectors, want %d", c.m, c.n, len(seen), c.want)
		}
	}
}

// Every request that comes without KV finds the instruction in the prefix cache
// but the first one, and what was taken from one is fed again.
func TestRowsTellOfKV(t *testing.T) {
	c := New(Paper())
	recs := c.Until(20e9)
	for !c.Preempt(1) {
		recs = append(recs, c.Until(c.Now()+10e6)...)
	}
	recs = append(recs, c.Until(c.Now()+1e9)...)
	first, taken := map[event.Peer]bool{}, 0
	fed := map[event.ReqID]int{} // at the front
	for _, r := range recs {
		if r.Kind != tape.KindCommand {
			continue
		}
		if r.Command.Kind == event.Preempt {
			taken = r.Command.N
		}
		if r.Command.Kind != event.RunBatch {
			continue
		}
		for _, row := range r.Command.Batch.Rows {
			if row.Prefill {
				if want := map[bool]int{true: instruction}[first[r.Core]]; row.Cached != want || row.Start != want {
					t.Fatalf("the prefill %+v finds %d tokens", row.Req, row.Cached)
				}
				first[r.Core] = true
			}
			if row.Recomputed > 0 && row.Recomputed != taken-instruction {
				t.Fatalf("%d positions are recomputed of %d taken", row.Recomputed, taken)
			}
			if row.Recomputed > 0 {
				taken = 0
			}
			if r.Core == event.Front {
				if end := row.Start + len(row.Tokens); end < fed[row.Req] {
					t.Fatalf("request %d goes back from %d to %d", row.Req, fed[row.Req], end)
				}
				fed[row.Req] = row.Start + len(row.Tokens)
			}
		}
	}
	if taken != 0 {
		t.Error("what was taken is not fed again")
	}
}
