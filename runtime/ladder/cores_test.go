package ladder_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/ladder"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
	"tokenrouter/runtime/tape"
)

const (
	routed       = 0.35
	small, large = 6.0, 27.9 // ms
	windowS      = 60
)

// policy is that of a rung for the paper's pair.
func policy(r ladder.Rung) (event.Policy, error) {
	p := event.Policy{W: sim.NoGuard}
	switch r.Policy {
	case "eager":
	case "lock-step":
		p.Kind = event.LockStep
	case "table":
		p.Kind, p.Table = event.Table, [][]int{{1, 1}, {1, 2}, {1, 2}, {1, 3}}
	case "look-ahead":
		p.Kind, p.Forecast = event.LookAhead, &event.Forecast{
			Step:  []event.StepTime{{Base: int64(small * 1e6)}, {Base: int64(large * 1e6)}},
			Share: [][]int{{650_000, 350_000}, {1_000_000, 0}},
		}
	default:
		return p, fmt.Errorf("there is no policy %q", r.Policy)
	}
	return p, nil
}

// simulate runs a setting in virtual time on the real cores.
func simulate(s ladder.Setting) (metrics.Summary, error) {
	var sum metrics.Summary
	spec := plan.Spec{
		N: s.N, P: [][]float64{{1 - routed, routed}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
		Step: []plan.Latency{{Base: small}, {Base: large}},
	}
	cfg, err := sim.Of(&spec, s.Seed)
	if err != nil {
		return sum, err
	}
	if cfg.Policy, err = policy(s.Rung); err != nil {
		return sum, err
	}
	cfg.Cluster = []sched.Config{{}, {}}
	for i := range cfg.Cluster {
		cfg.Cluster[i] = sched.Config{
			Self: event.Peer(i), Seats: []int{16, 16}, KVTokens: []int{1 << 16, 1 << 16}, Block: 16,
			MaxActive: s.Rung.MaxActive, Resubmit: s.Rung.Resubmit,
		}
	}
	cfg.Prompt, cfg.Length = 100, sim.Exponential(s.Seed, 200)
	cfg.Until = (5 + windowS) * int64(time.Second)
	run, err := sim.New(cfg)
	if err != nil {
		return sum, err
	}
	fold := metrics.NewRun(2)
	fold.Measure(metrics.Span{From: 5 * time.Second})
	run.Record(func(r *tape.Record) { fold.Add(r) })
	run.Run()
	return fold.Summary(cfg.Until), nil
}

// On the real cores, with requests that end: throughput is what the model has for
// each rung (spec §2 for 4 active; lock-step is the vector (4, 1)), and so are the
// figures that follow from what a rung is.
func TestRungsOnTheCores(t *testing.T) {
	g := ladder.Grid{Rungs: ladder.Rungs(), Concurrency: []int{4}, Seeds: []uint64{1, 2, 3, 4}}
	cells, err := g.Run(nil, simulate, nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := ladder.NewTable(g, []string{"small", "large"}, cells)
	t.Log("\n" + ladder.Text(tab, ladder.NewSLO(tab, cells, 30, ladder.UserMean)))
	value := func(rung, key string) float64 {
		v := tab.Row(rung, 4).Values[key]
		if v.N != 4 || math.IsNaN(v.Mean) {
			t.Errorf("%s of %s: %+v", key, rung, v)
		}
		return v.Mean
	}
	for rung, want := range map[string]float64{
		"sequential":       1000 / (small + routed*large),
		ladder.Lockstep:    4000 / (small + large*(1-math.Pow(1-routed, 4))),
		"resubmit":         187.190,
		ladder.Async:       187.190,
		ladder.TokenRouter: 207.954,
		"lookahead":        206.2, // of a simulation written apart, with 3 % jitter and 0.2 ms messages
	} {
		if got := value(rung, ladder.Throughput); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s: %.2f tok/s, the model has %.2f", rung, got, want)
		}
	}
	if r := tab.Row(ladder.TokenRouter, 4).Before[ladder.Throughput]; !(r.Lo > 1.05 && r.Hi < 1.17) || r.Pairs != 4 {
		t.Errorf("delayed batches give %.3f (%.3f to %.3f) of async, the model has %.3f", r.Mean, r.Lo, r.Hi, 207.954/187.190)
	}
	if got := value("sequential", "mean_batch_small"); got != 1 {
		t.Errorf("one request at a time runs batches of %v", got)
	}
	if one, four := value("sequential", ladder.UserMean), value(ladder.Async, ladder.UserMean); one < 1.2*four {
		t.Errorf("a request that is alone gets %.1f tok/s, one of four %.1f", one, four)
	}
	if wait := value("sequential", "queue_ms_p50"); wait < 1000 {
		t.Errorf("behind three others a request waits %.0f ms", wait)
	}
	for _, rung := range g.Rungs {
		again := value(rung.Name, "recomputed_per_token")
		if (again > 0) != rung.Resubmit {
			t.Errorf("%s feeds %.3f positions a token again", rung.Name, again)
		}
		if n := value(rung.Name, "latency_ms_p50"); n <= 0 {
			t.Errorf("%s: no request has ended", rung.Name)
		}
	}
}
