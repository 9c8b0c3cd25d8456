package plan_test

import (
	"math"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sim"
	"tokenrouter/runtime/tape"
)

// bursty is a pair whose runs are not geometric at either model: at the small one
// they are short or long, at the large one never of one step.
func bursty(n int, b ...int) plan.Spec {
	return plan.Spec{
		N: n, P: [][]float64{{0.5, 0.5}, {0.5, 0.5}}, K: [][]float64{{1, 0}, {1, 1}},
		Step: []plan.Latency{{Base: 6}, {Base: 27.9}}, B: b,
		Send: []*plan.Phases{
			{Start: []float64{0.7, 0.3}, Next: [][]float64{{0.2, 0}, {0, 0.96}}},
			{Start: []float64{1, 0}, Next: [][]float64{{0, 1}, {0, 0.3}}},
		},
	}
}

// observed runs a system on the real cores, shows the tape to e if that is not nil,
// and gives the throughput with its standard error.
func observed(t *testing.T, spec plan.Spec, seconds int64, e *metrics.Estimator) (rate, se float64) {
	t.Helper()
	cfg, err := sim.Of(&spec, 5)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WarmUp, cfg.Until = 5e9, seconds*1e9
	s, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if e != nil {
		s.Record(func(r *tape.Record) { e.Add(r) })
	}
	r := s.Run()
	return r.Rate, r.RateErr
}

// The correction is exact: laws that are fitted to what the real cores' tape shows
// of a process whose runs are not geometric predict its throughput, under other
// thresholds than it was observed under; the geometric law does not.
func TestCorrectionIsThatOfTheCores(t *testing.T) {
	const n = 4
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{HalfLife: 1e12, Whole: true})
	observed(t, bursty(n), 1000, e)
	est := e.Estimate()
	laws := make([]*plan.Phases, 2)
	for p := range laws {
		l := e.Lengths(event.Peer(p))
		law, err := plan.FitLaw(plan.Life{Made: l.Made, Sent: l.Sent})
		if err != nil {
			t.Fatal(err)
		}
		if law.Kind == plan.Geometric || !l.All.Far {
			t.Fatalf("the runs at model %d pass for geometric", p)
		}
		shares := law.Shares(len(l.Made))
		if chi2, df, pv, ok := l.Fit(func(k int) float64 { return shares[k-1] }, law.Params); !ok || pv < 0.001 {
			t.Errorf("model %d: %v is refused by what it was fitted to: chi2 %.1f of %d", p, &law, chi2, df)
		}
		laws[p] = law.Phases
		t.Logf("model %d: %v", p, &law)
	}
	worst := 0.0
	for b := 1; b <= n; b++ {
		rate, se := observed(t, bursty(n, 1, b), 600, nil)
		geometric := plan.Spec{N: n, P: est.P, K: est.K, Step: bursty(n).Step, B: []int{1, b}}
		fitted := geometric
		fitted.Send = laws
		g, err := plan.Chain(&geometric)
		if err != nil {
			t.Fatal(err)
		}
		f, err := plan.Chain(&fitted)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("B1 = %d: cores %.2f ± %.2f tok/s, geometric %+.2f %%, fitted %+.2f %%", b, rate, se, 100*(g.Throughput/rate-1), 100*(f.Throughput/rate-1))
		// The laws are of a sample as well: one percent beside the error of the run.
		if math.Abs(f.Throughput-rate) > 4*se+0.01*rate {
			t.Errorf("B1 = %d: the cores make %.2f ± %.2f tok/s, the fitted laws say %.2f", b, rate, se, f.Throughput)
		}
		worst = max(worst, math.Abs(g.Throughput/rate-1))
	}
	if worst < 0.02 {
		t.Errorf("the geometric law is off by %.2f %% at most; the test has lost its sense", 100*worst)
	}
}
