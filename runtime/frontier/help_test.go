package frontier_test

import (
	"fmt"
	"math"
	"testing"

	"tokenrouter/runtime/frontier"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/rng"
)

// world is made-up problems with known chances: the small model gets a part of them
// right, the large one nearly all, and a router of skill q and share p gets right
// what the large one does with chance q, else what the small one does.
type world struct {
	n    int
	seed uint64
}

func (w world) u(problem, draw int) float64 {
	return rng.Key{Seed: w.seed, Req: uint64(problem), Purpose: rng.Length}.Float64(draw)
}

func (w world) small(i int) bool { return w.u(i, 0) < 0.45 }
func (w world) large(i int) bool { return w.u(i, 1) < 0.96 }

// run is a router with that share and skill. Problem i has the same tokens under all.
func (w world) run(series string, knobs []frontier.Knob, share, skill float64) frontier.Run {
	r := frontier.Run{Series: series, Router: series + ".lua@0123456789ab", Knobs: knobs, Summary: metrics.Summary{TokensPerS: 1200 - 900*share}}
	for i := range w.n {
		total := 60 + i%40
		large := int(math.Round(share * float64(total)))
		right := w.small(i)
		if w.u(i, 2) < skill {
			right = w.large(i)
		}
		o := frontier.Outcome{
			Task: fmt.Sprint(i), Prompt: 30 + (7*i)%50, Checked: true, Right: right, Reason: "stop",
			Tokens: []int{total - large, large}, Steps: []int{total, large}, Fed: []int{total + 40, large + 40},
			Switches: large, Ns: int64(total) * 6e6, Entropy: w.u(i, 3) + float64(1-int(btoi(w.small(i))))*0.2,
		}
		if share == 1 {
			o.Steps[0] = 1
		}
		r.Problems = append(r.Problems, o)
	}
	return r
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func knob(v float64) []frontier.Knob { return []frontier.Knob{{Name: "threshold", Value: v}} }

// sweep is the two ends, a router that is worth its share and one that is not.
func (w world) sweep() []frontier.Run {
	runs := []frontier.Run{w.run(frontier.SmallOnly, nil, 0, 0), w.run(frontier.LargeOnly, nil, 1, 1)}
	for _, p := range []float64{0.02, 0.05, 0.1, 0.3} {
		runs = append(runs, w.run("r2r", knob(1/p), p, math.Sqrt(p)*0.9+0.3))
	}
	for _, p := range []float64{0.05, 0.2, 0.5} {
		runs = append(runs, w.run("random", knob(p), p, p))
	}
	return runs
}

var params = []float64{37e3, 3.7e6}

func set(t *testing.T, runs []frontier.Run) *frontier.Set {
	t.Helper()
	s, err := frontier.NewSet(runs, params, frontier.CostSteps)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if !(math.Abs(got-want) <= eps) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
