package sim_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/sim"
)

// bestTable is B* for every active count up to n, by the exact chain over the
// threshold of the large model.
func bestTable(t testing.TB, n int, p, small, large float64) [][]int {
	t.Helper()
	var table [][]int
	for k := 1; k <= n; k++ {
		best, top := 0, 0.0
		for b := 1; b <= k; b++ {
			if x := chain(t, r2r(k, p, small, large, 1, b)); x > top {
				best, top = b, x
			}
		}
		table = append(table, []int{1, best})
	}
	return table
}

// Drains: N requests of random length, none replaced, so the active count falls
// to nothing. Under every policy all of them end, everything is free at last,
// and the table is faster than eager (§6.4).
func TestDrains(t *testing.T) {
	const n, mean, t0, t1 = 8, 300, 6, 27.9
	spec := r2r(n, 0.35, t0, t1)
	w := int64(2 * t1 * float64(ms))
	table := event.Policy{Kind: event.Table, Table: bestTable(t, n, 0.35, t0, t1), W: w}
	makespan := map[string][]float64{}
	for _, p := range []struct {
		name  string
		apart string // s, by a simulation written apart from this one
		event.Policy
	}{
		{"eager", "16.0", event.Policy{}},
		{"fixed 5, guard 2 t1", "25.7 with the guard and no clamp", event.Policy{Kind: event.Fixed, B: []int{1, 5}, W: w}},
		{"fixed 5, no guard", "15.4 as min(B*, active)", event.Policy{Kind: event.Fixed, B: []int{1, 5}, W: sim.NoGuard}},
		{"table", "15.0", table},
		{"look-ahead", "15.0", event.Policy{Kind: event.LookAhead, Forecast: forecast(spec, 0), W: w}},
	} {
		sum, worst := 0.0, 0.0
		for seed := range uint64(drains) {
			cfg := of(t, spec, seed, second)
			cfg.Policy, cfg.Requests, cfg.WarmUp, cfg.Until = p.Policy, n, 0, 0
			length := sim.Exponential(seed, mean)
			cfg.Length = length
			s := begin(t, cfg)
			r := s.Run()
			if r.Stuck > 0 || r.Finished != n || r.Failed > 0 || !s.Fabric().Idle() {
				t.Fatalf("%s, seed %d: %d of %d requests ended, %d failed, idle %v", p.name, seed, r.Finished, n, r.Failed, s.Fabric().Idle())
			}
			// One after the other, each token would take a step of either model at
			// most; together they are no slower than that.
			tokens := 0
			for id := event.ReqID(1); id <= n; id++ {
				tokens += length(id)
			}
			if bound := int64(tokens) * int64((t0+t1)*float64(ms)); r.LastEnd > bound {
				t.Errorf("%s, seed %d: the last request ended after %d ns; one after the other they need at most %d", p.name, seed, r.LastEnd, bound)
			}
			span := float64(r.LastEnd) / 1e9
			makespan[p.name] = append(makespan[p.name], span)
			sum, worst = sum+span, max(worst, span)
		}
		t.Logf("%d drains, %s: makespan %.2f s on average, %.1f s at most (apart: %s)", drains, p.name, sum/drains, worst, p.apart)
	}
	rel, half := paired(makespan["eager"], makespan["table"])
	t.Logf("table against eager: %+.2f ± %.2f %%", rel, half)
	if rel+half > -3 {
		t.Errorf("the table changes the makespan by %+.2f ± %.2f %%, want at least 3 %% less", rel, half)
	}
}

// guarded is the longest that a row may have waited: the guard from when it was
// ready, then the step under way, and one step more for each batch that is full
// before its turn.
func guarded(r sim.Result, w, step int64, n, seats int) (longest, bound int64) {
	for _, c := range r.Cores {
		longest = max(longest, c.MaxWait)
	}
	return longest, w + step*int64((n+seats-1)/seats)
}

// A request that goes where nobody else goes is not starved by a threshold that
// the others would have to fill: the guard starts it (INV-7, INV-8).
func TestRareRoutesAreServed(t *testing.T) {
	const n = 8
	w := int64(2 * 27.9 * float64(ms))
	for _, p := range []float64{0.001, 0.01, 0.1} {
		for _, b := range []int{2, 5, 8} {
			cfg := of(t, r2r(n, p, 6, 27.9, 1, b), 3, systemSeconds*second)
			cfg.Policy.W = w
			cfg.Latency, cfg.Jitter = ms/5, 0.03
			r := run(t, cfg)
			longest, bound := guarded(r, w, 32*ms, n, n)
			if longest > bound || r.Cores[1].Batches < 20*systemSeconds/150 {
				t.Errorf("p=%v B=%d: a row waited %.1f ms, bound %.1f; %d large batches", p, b, float64(longest)/1e6, float64(bound)/1e6, r.Cores[1].Batches)
			}
			if p < 0.1 && b == 8 && r.Cores[1].Rules[event.RuleGuard] == 0 {
				t.Errorf("p=%v B=%d: the guard never fired: %v", p, b, r.Cores[1].Rules)
			}
		}
	}
}

// Whatever the seats, thresholds, latency and lengths: no row waits longer than
// guard, queue and step allow, or, where seats are short, than it takes the
// requests before it to end.
func TestNobodyStarves(t *testing.T) {
	for seed := range uint64(40) {
		pick := func(k, n int) int { return int(seed*2654435761>>(4*k)) % n }
		n := 2 + pick(0, 11)
		seats := []int{1 + pick(1, n), 1 + pick(2, n)}
		spec := r2r(n, []float64{0.02, 0.2, 0.5, 0.9}[pick(3, 4)], 6, 27.9, 1+pick(4, n), 1+pick(5, n))
		spec.Cap = seats
		cfg := of(t, spec, seed, 20*second)
		w := int64(1+pick(6, 5)) * 28 * ms
		cfg.Policy.W, cfg.Jitter, cfg.Latency = w, 0.05, int64(pick(3, 3))*ms/2
		if seed%3 == 0 {
			cfg.Policy = event.Policy{Kind: event.LookAhead, Forecast: forecast(spec, cfg.Latency), W: w}
		}
		cfg.Length = sim.Exponential(seed, 60)
		r := run(t, cfg)
		// Those before it in the queue are of the time before it came, so it waits
		// for as many batches as they fill.
		longest, bound := guarded(r, w, 36*ms, n, min(seats[0], seats[1]))
		// With fewer seats than requests it waits for requests, not for batches: who
		// holds KV goes on until it ends.
		if min(seats[0], seats[1]) < n {
			bound = max(bound, 3*20*second*int64(n)/int64(max(1, r.Finished)))
		}
		if longest > bound+36*ms {
			t.Errorf("seed %d, N=%d, seats %v, B %v, W %d ms: a row waited %.1f ms, bound %.1f", seed, n, seats, spec.B, w/ms, float64(longest)/1e6, float64(bound)/1e6)
		}
		if r.Finished < 10 || r.Failed > 0 {
			t.Errorf("seed %d: %d requests ended, %d failed", seed, r.Finished, r.Failed)
		}
	}
}

// One request that always goes to the large model among others that never do: it
// is written at the pace of the guard, not of chance.
func TestALonelyRequestIsWritten(t *testing.T) {
	const w = 60 * ms
	cfg := of(t, r2r(6, 0.5, 6, 27.9, 1, 6), 1, 20*second)
	cfg.Policy.W = w
	never, err := sim.Markov(1, 0, r2r(6, 0, 6, 27.9))
	if err != nil {
		t.Fatal(err)
	}
	always, err := sim.Markov(1, 0, r2r(6, 1, 6, 27.9))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Source = oneOf{3: always, 0: never}
	last, gaps := int64(0), []float64{}
	cfg.Tap = func(_ event.Peer, ev *event.Event, cmds []event.Command) {
		for _, c := range cmds {
			if c.Kind == event.Emit && c.Req == 3 {
				gaps = append(gaps, float64(ev.At-last)/1e6)
				last = ev.At
			}
		}
	}
	run(t, cfg)
	// A small step that may have to wait for one, the guard, the large step.
	if top := metrics.Percentile(gaps, 1); top > 6+6+60+27.9 || len(gaps) < 250 {
		t.Errorf("%d tokens, at most %.1f ms apart", len(gaps), top)
	}
}
