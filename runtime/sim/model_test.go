package sim_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sim"
)

// chain is the exact throughput of a system.
func chain(t testing.TB, spec plan.Spec) float64 {
	t.Helper()
	r, err := plan.Chain(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return r.Throughput
}

// The core does what the throughput model says: for the paper's pair, the curve
// over B1 that the real cores make in virtual time is that of the exact chain,
// and both have their top at the same B* (case E13; §2.4).
func TestCurveIsThatOfTheChain(t *testing.T) {
	squares, points := 0.0, 0
	for _, n := range []int{2, 3, 4, 8} {
		var exact, got []float64
		for b := 1; b <= n; b++ {
			spec := r2r(n, 0.35, 6, 27.9, 1, b)
			r := run(t, of(t, spec, 1, curveSeconds*second))
			exact, got = append(exact, chain(t, spec)), append(got, r.Rate)
			off := r.Rate/exact[b-1] - 1
			z := (r.Rate - exact[b-1]) / r.RateErr
			squares, points = squares+z*z, points+1
			t.Logf("N=%d B1=%d: chain %.3f tok/s, cores %.3f ± %.3f, off by %+.3f %%, p99 gap %.1f ms",
				n, b, exact[b-1], r.Rate, r.RateErr, 100*off, r.Gap99)
			if math.Abs(off) > curveError {
				t.Errorf("N=%d B1=%d: the cores make %.3f tok/s, the chain %.3f: off by %.2f %%", n, b, r.Rate, exact[b-1], 100*off)
			}
		}
		top := slices.Index(exact, slices.Max(exact)) + 1
		if have := slices.Index(got, slices.Max(got)) + 1; have != top {
			t.Errorf("N=%d: the cores are best at B1=%d, the chain at %d", n, have, top)
		}
	}
	t.Logf("%d points, mean z^2 %.2f", points, squares/float64(points))
}

// The same holds for other shapes of routing, three models, step times that
// grow with the batch, thresholds at the small model and seats that run short.
func TestSystemsAreThoseOfTheChain(t *testing.T) {
	flat := func(ms ...float64) (out []plan.Latency) {
		for _, x := range ms {
			out = append(out, plan.Latency{Base: x})
		}
		return out
	}
	every := func(p ...float64) []*plan.Phases { return []*plan.Phases{plan.Intervals(p), nil} }
	cascade := [][]float64{{0.75, 0.25, 0}, {0.6, 0.3, 0.1}, {1, 0, 0}}
	type system struct {
		name string
		plan.Spec
	}
	for _, sys := range []system{
		{"R-Stitch", plan.Spec{N: 4, P: [][]float64{{0.8, 0.2}, {0.4, 0.6}}, Step: flat(6, 27.9), B: []int{1, 2}}},
		{"ME", plan.Spec{N: 4, P: [][]float64{{0.7, 0.3}, {0.7, 0.3}}, Step: flat(6, 27.9), B: []int{2, 2}}},
		{"R2R, append", plan.Spec{N: 5, P: [][]float64{{0.65, 0.35}, {1, 0}}, Step: flat(6, 27.9), B: []int{1, 3}}},
		{"R2R, B0 > 1", r2r(4, 0.35, 6, 27.9, 2, 3)},
		{"R2R, slopes", plan.Spec{
			N: 6, P: [][]float64{{0.65, 0.35}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
			Step: []plan.Latency{{Base: 6, PerRow: 0.2}, {Base: 27, PerRow: 1.5}}, B: []int{1, 3},
		}},
		{"R2R, seats", plan.Spec{N: 6, P: [][]float64{{0.5, 0.5}, {1, 0}}, Step: flat(6, 27.9), B: []int{1, 2}, Cap: []int{3, 2}}},
		{"R2R, every third step", plan.Spec{
			N: 4, P: [][]float64{{0.5, 0.5}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
			Step: flat(6, 27.9), B: []int{1, 3}, Send: every(0, 0, 1),
		}},
		{"R2R, every first or fifth", plan.Spec{
			N: 4, P: [][]float64{{0.5, 0.5}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
			Step: flat(6, 27.9), B: []int{1, 2}, Send: every(0.5, 0, 0, 0, 0.5),
		}},
		{"cascade", plan.Spec{N: 3, P: cascade, Step: flat(6, 12, 48), B: []int{1, 1, 2}}},
		{"cascade, B everywhere", plan.Spec{N: 5, P: cascade, Step: flat(6, 12, 48), B: []int{2, 2, 3}}},
	} {
		r := run(t, of(t, sys.Spec, 1, systemSeconds*second))
		exact, err := plan.Chain(&sys.Spec)
		if err != nil {
			t.Fatal(err)
		}
		off := r.Rate - exact.Throughput
		t.Logf("%s: chain %.3f tok/s, cores %.3f ± %.3f, off by %+.3f %%", sys.name, exact.Throughput, r.Rate, r.RateErr, 100*off/exact.Throughput)
		if math.Abs(off) > 4.5*r.RateErr+1e-3*exact.Throughput {
			t.Errorf("%s: the cores make %.3f ± %.3f tok/s, the chain %.3f", sys.name, r.Rate, r.RateErr, exact.Throughput)
		}
		for m, c := range r.Cores {
			near(t, sys.name+": busy", c.Busy, exact.Busy[m], 0.03)
			near(t, sys.name+": mean batch", c.MeanBatch, exact.MeanBatch[m], 0.03)
		}
	}
}

// The tail between two tokens of a request is that of the plan's simulator of
// requests, which runs no core (§5.4).
func TestGapsAreThoseOfThePlan(t *testing.T) {
	for _, n := range []int{4, 8} {
		for _, b := range []int{1, n/2 + 1} {
			spec := r2r(n, 0.35, 6, 27.9, 1, b)
			want, err := plan.Follow(&spec, 200*systemSeconds, 1)
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, of(t, spec, 1, systemSeconds*second))
			t.Logf("N=%d B1=%d: plan %.2f ms, cores %.2f", n, b, want.P99, r.Gap99)
			near(t, "p99 gap", r.Gap99, want.P99, 0.01)
		}
	}
}

// B = 1 everywhere is eager and one vector for all active counts is fixed, step
// for step: the same batches at the same times (case E7).
func TestPoliciesThatAreEqual(t *testing.T) {
	type batch struct {
		at   int64
		core event.Peer
		rows []event.Row
	}
	batches := func(p event.Policy) (out []batch) {
		cfg := open(t, 17)
		cfg.Policy = p
		_, log := logged(t, cfg)
		for _, e := range log {
			for _, c := range e.cmds {
				if c.Kind == event.RunBatch {
					out = append(out, batch{e.ev.At, e.core, c.Batch.Rows})
				}
			}
		}
		return out
	}
	b := []int{2, 1, 3}
	table := make([][]int, 6)
	for n := range table {
		table[n] = b
	}
	eager := batches(event.Policy{})
	fixed := batches(event.Policy{Kind: event.Fixed, B: b, W: 90 * ms})
	if reflect.DeepEqual(eager, fixed) || len(eager) < 1000 {
		t.Fatalf("%d batches; the test has lost its sense", len(eager))
	}
	for name, p := range map[string]event.Policy{
		"B = 1":           {Kind: event.Fixed, B: []int{1, 1, 1}, W: 90 * ms},
		"a table of ones": {Kind: event.Table, Table: [][]int{{1, 1, 1}}, W: 90 * ms},
		"no guard known":  {Kind: event.Fixed, B: []int{3, 3, 3}},
	} {
		if !reflect.DeepEqual(batches(p), eager) {
			t.Errorf("%s is not eager", name)
		}
	}
	if !reflect.DeepEqual(batches(event.Policy{Kind: event.Table, Table: table, W: 90 * ms}), fixed) {
		t.Error("a table with the same vector in every row is not that vector")
	}
}

// (N, 1) is the lock-step loop: all at the small model, then the routed ones at
// the large: N / (t0 + t1 (1 - (1-p)^N)) (§2.3).
func TestLockStepIdentity(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8, 16} {
		const p, t0, t1 = 0.35, 6, 27.9
		r := run(t, of(t, r2r(n, p, t0, t1, n, 1), 1, systemSeconds*second))
		want := 1000 * float64(n) / (t0 + t1*(1-math.Pow(1-p, float64(n))))
		t.Logf("N=%d: closed form %.3f tok/s, cores %.3f ± %.3f", n, want, r.Rate, r.RateErr)
		if math.Abs(r.Rate-want) > 4.5*r.RateErr {
			t.Errorf("N=%d: the cores make %.3f ± %.3f tok/s, the closed form says %.3f", n, r.Rate, r.RateErr, want)
		}
	}
}

// As a guard 2 t1 costs nothing in steady state; a guard of t1 and below takes
// the gain of B* away (§6.4).
func TestGuardInSteadyState(t *testing.T) {
	rate := func(w int64, b int) float64 {
		cfg := of(t, r2r(8, 0.35, 6, 27.9, 1, b), 1, systemSeconds*second)
		cfg.Policy.W = w
		return run(t, cfg).Rate
	}
	eager, free := rate(sim.NoGuard, 1), rate(sim.NoGuard, 5)
	for _, tc := range []struct {
		name  string
		w     int64
		apart float64 // by a simulation written apart from this one
		good  bool
	}{
		{"t0", 6 * ms, 369.3, false},
		{"2 t0", 12 * ms, 369.5, false},
		{"t1", 27_900_000, 368.4, false},
		{"2 t1", 55_800_000, 398.9, true},
	} {
		got := rate(tc.w, 5)
		t.Logf("W = %s: %.1f tok/s (apart: %.1f); without a guard %.1f, eager %.1f", tc.name, got, tc.apart, free, eager)
		if lost := (free - got) / (free - eager); (lost < 0.1) != tc.good || !tc.good && lost < 0.9 {
			t.Errorf("W = %s loses %.0f %% of the gain", tc.name, 100*lost)
		}
	}
}
