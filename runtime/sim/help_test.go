package sim_test

import (
	"fmt"
	"math"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
)

const (
	ms     = int64(1e6)
	second = int64(1e9)
)

// r2r is the pair of the paper's example: a routed small token is dropped and
// written by the large model, which gives the request back.
func r2r(n int, p, small, large float64, b ...int) plan.Spec {
	return plan.Spec{
		N:    n,
		P:    [][]float64{{1 - p, p}, {1, 0}},
		K:    [][]float64{{1, 0}, {1, 1}},
		Step: []plan.Latency{{Base: small}, {Base: large}},
		B:    b,
	}
}

// of is the run of a closed system for that long, the first tenth of a minute
// left out.
func of(t testing.TB, spec plan.Spec, seed uint64, until int64) sim.Config {
	t.Helper()
	cfg, err := sim.Of(&spec, seed)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WarmUp, cfg.Until = 6*second, 6*second+until
	return cfg
}

// run simulates to the end.
func run(t testing.TB, cfg sim.Config) sim.Result {
	t.Helper()
	return begin(t, cfg).Run()
}

func begin(t testing.TB, cfg sim.Config) *sim.Sim {
	t.Helper()
	s, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// paired is the mean of b/a - 1 over paired samples in percent, with the
// half-width of its 95 % interval.
func paired(a, b []float64) (mean, half float64) {
	rel := make([]float64, len(a))
	for i := range rel {
		rel[i] = 100 * (b[i]/a[i] - 1)
	}
	return metrics.Welch(make([]float64, len(rel)), rel)
}

// forecast is what look-ahead needs to know of a system.
func forecast(spec plan.Spec, latency int64) *event.Forecast {
	f := &event.Forecast{Latency: latency}
	for i, row := range spec.P {
		f.Step = append(f.Step, event.StepTime{
			Base:   int64(spec.Step[i].Base * float64(ms)),
			PerRow: int64(spec.Step[i].PerRow * float64(ms)),
		})
		share := make([]int, len(row))
		for j, p := range row {
			share[j] = int(1e6*p + 0.5)
		}
		f.Share = append(f.Share, share)
	}
	return f
}

// entry is one Step of a core as the tap saw it.
type entry struct {
	core event.Peer
	ev   *event.Event
	cmds []event.Command
}

// logged simulates and returns everything that the tap saw.
func logged(t testing.TB, cfg sim.Config) (sim.Result, []entry) {
	t.Helper()
	var log []entry
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		log = append(log, entry{core, ev, cmds})
	}
	return run(t, cfg), log
}

// encode is the log as bytes.
func encode(log []entry) []byte {
	var out []byte
	for i := range log {
		out = fmt.Appendf(out, "%d", log[i].core)
		out = event.AppendEvent(out, log[i].ev)
		for j := range log[i].cmds {
			out = event.AppendCommand(out, &log[i].cmds[j])
		}
	}
	return out
}

// oneOf gives some requests another source; that of request 0 is everybody
// else's.
type oneOf map[event.ReqID]sim.Source

func (o oneOf) Answer(at int64, p event.Peer, core *sched.Core, b *event.Batch, step *event.StepResult) {
	k := 0
	for i := range b.Rows {
		if !b.Rows[i].Sample {
			continue
		}
		s, ok := o[b.Rows[i].Req]
		if !ok {
			s = o[0]
		}
		s.Answer(at, p, core, &event.Batch{ID: b.ID, Rows: b.Rows[i : i+1]}, &event.StepResult{Rows: step.Rows[k : k+1]})
		k++
	}
}

// near fails unless got is want within a relative tolerance.
func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tolerance) {
		t.Errorf("%s is %v, want %v within %v %%", what, got, want, 100*tolerance)
	}
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
