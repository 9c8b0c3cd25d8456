package sim_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// The folds over a tape run on a simulation and find what the run's own books
// say: tokens, batches and shares by the board, the routing matrix and the step
// times by the estimator.
func TestFoldsRunOnRecords(t *testing.T) {
	cfg := of(t, r2r(4, 0.35, 6, 27.9, 1, 3), 5, 40*second)
	cfg.WarmUp = 0
	taps := 0
	cfg.Tap = func(event.Peer, *event.Event, []event.Command) { taps++ }
	s := begin(t, cfg)
	fold, est := metrics.NewRun(2), metrics.NewEstimator(2, metrics.EstimatorOptions{HalfLife: 4000})
	var last tape.Record
	events, emits := 0, 0
	s.Record(func(r *tape.Record) {
		if r.Seq != last.Seq+1 || r.At < last.At {
			t.Fatalf("record %d at %d follows %d at %d", r.Seq, r.At, last.Seq, last.At)
		}
		last = *r
		switch {
		case r.Kind == tape.KindEvent:
			events++
		case r.Kind == tape.KindCommand && r.Command.Kind == event.Emit:
			emits++
		}
		fold.Add(r)
		est.Add(r)
	})
	r := s.Run()
	if taps != events || emits != r.Tokens || events == 0 {
		t.Errorf("%d taps, %d event records; %d emits, %d tokens", taps, events, emits, r.Tokens)
	}
	sum := fold.Summary(r.To)
	if sum.Tokens != r.Tokens {
		t.Errorf("the fold counts %d tokens, the run %d", sum.Tokens, r.Tokens)
	}
	e := est.Estimate()
	if !e.Ready {
		t.Fatalf("no estimate: %s", e.Why)
	}
	near(t, "P[0][1]", e.P[0][1], 0.35, 0.05)
	near(t, "P[1][0]", e.P[1][0], 1, 1e-9)
	for m, want := range []float64{6, 27.9} {
		base, perRow := e.Step(m)
		near(t, "step time", base+2*perRow, want, 1e-3)
	}
}
