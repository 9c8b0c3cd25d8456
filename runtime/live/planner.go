package live

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
)

// planned is what the cores need of a plan.
type planned struct {
	table    [][]int
	forecast *event.Forecast
}

// planner measures the cluster on the tape, plans, and hands the thresholds to
// the controls. It runs beside the decode loops, at its own pace: they read the
// newest table and never wait for one.
type planner struct {
	rt   *Runtime
	sub  *tape.Sub
	est  *metrics.Estimator
	wish chan struct{}
	recs []tape.Record

	made  situation // that the last plan was made for
	used  []bool    // subservers that its spec has
	shown time.Time // when figures were recorded last
	told  map[string]bool
}

// situation is what a plan depends on.
type situation struct {
	n      int
	policy string
	spec   plan.Spec
}

// planEvery is how often the planner looks whether figures have moved; a table
// takes milliseconds. showEvery is how often it records figures for people at
// most; those take some 50 ms.
const (
	planEvery = 250 * time.Millisecond
	showEvery = 2 * time.Second
)

// What stays within these bounds gives the same table, or one as good.
const (
	shareMoved = 0.02
	stepMoved  = 0.03
)

// planHalfLife is the memory of the measured shares, in rows of a subserver. With
// planEvery it keeps throughput within 1 % of that of an oracle where the share
// switches every 10 s; at 200 rows and half a second it does not. By sampling
// alone p = 0.35 moves by 0.03 with it.
const planHalfLife = 100

func (p *planner) init(r *Runtime) {
	p.rt = r
	p.sub = r.tape.Subscribe()
	p.est = metrics.NewEstimator(r.n, metrics.EstimatorOptions{HalfLife: planHalfLife})
	p.wish = make(chan struct{}, 1)
	p.told = map[string]bool{}
}

// again asks for a look at once.
func (p *planner) again() {
	select {
	case p.wish <- struct{}{}:
	default:
	}
}

func (p *planner) loop(ctx context.Context) {
	defer p.sub.Close()
	tick := time.NewTicker(planEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.wish:
		}
		p.read()
		p.look()
	}
}

// read folds what has come.
func (p *planner) read() {
	for {
		p.recs = p.sub.Next(p.recs[:0], 4096)
		for i := range p.recs {
			p.est.Add(&p.recs[i])
		}
		if len(p.recs) < 4096 {
			clear(p.recs)
			return
		}
	}
}

// look plans if what the last plan was made for has changed.
func (p *planner) look() {
	e := p.est.Estimate()
	if !e.Ready {
		return
	}
	st := p.rt.Status()
	n := st.Concurrency
	if e.Active > 0 {
		n = min(n, e.Active)
	}
	now := situation{n: n, policy: st.Policy.Form(), spec: e.Spec(n, p.rt.cfg.Seats)}
	if !now.moved(&p.made) {
		return
	}
	begin := time.Now()
	o := plan.Options{Seed: p.rt.cfg.Sampling.Seed, Names: names(&e), Measured: true}
	table, err := plan.Tabulate(&now.spec, n, o)
	if err != nil {
		p.tell(tape.Warn, "no table of thresholds: "+err.Error())
		return
	}
	next := planned{forecast: e.Forecast(int64(e.Latency))}
	for _, b := range table.Vectors() {
		next.table = append(next.table, e.Spread(b))
	}
	p.rt.ctl.follow(next)
	same := now.n == p.made.n && now.policy == p.made.policy
	p.made = now
	if took := time.Since(begin); !same || begin.Sub(p.shown) >= showEvery {
		p.show(&e, o, next.table, took)
	}
}

// show puts the figures of the plan on the tape. They take a closer search than
// the table, so people get them less often than the cores.
func (p *planner) show(e *metrics.Estimate, o plan.Options, table [][]int, took time.Duration) {
	p.shown, p.used = time.Now(), e.Used
	best, err := plan.Best(&p.made.spec, o)
	if err != nil {
		p.tell(tape.Warn, "no plan: "+err.Error())
		return
	}
	p.record(e, &best, table, took)
}

// names are the roles of the subservers in use.
func names(e *metrics.Estimate) (out []string) {
	for i, used := range e.Used {
		if used {
			out = append(out, "the "+event.Role(event.Peer(i), e.Peers))
		}
	}
	return out
}

// moved says whether a plan made for old would be another one now.
func (s *situation) moved(old *situation) bool {
	if s.n != old.n || s.policy != old.policy || len(s.spec.P) != len(old.spec.P) {
		return true
	}
	for i, row := range s.spec.P {
		for j, share := range row {
			if math.Abs(share-old.spec.P[i][j]) > shareMoved {
				return true
			}
		}
		now, before := s.spec.Step[i].Of(s.n), old.spec.Step[i].Of(s.n)
		if math.Abs(now-before) > stepMoved*before || (s.spec.Send[i] == nil) != (old.spec.Send[i] == nil) {
			return true
		}
	}
	return false
}

// record puts the plan on the tape.
func (p *planner) record(e *metrics.Estimate, best *plan.Answer, table [][]int, took time.Duration) {
	to := tape.Plan{
		Policy: p.made.policy, N: p.made.n, B: e.Spread(best.B), Table: table,
		P: e.P, K: e.K, Rows: e.Rows,
		Predicted: p.predict(best), Best: best.Throughput,
		Eager: best.Eager.Throughput, Lockstep: best.Lockstep.Throughput, Low: best.Low, High: best.High,
		Method: string(best.Method), Warnings: slices.Concat(best.Warnings, intervalWarnings(e)), SolveNs: int64(took),
	}
	to.Step, to.Interval = e.Tape()
	p.rt.host(event.None, &to)
	for _, w := range to.Warnings {
		p.tell(tape.Info, "plan: "+w)
	}
}

// predict is the throughput of the policy in force in tokens per second; 0 for
// look-ahead, which the model does not describe.
func (p *planner) predict(best *plan.Answer) float64 {
	to, _ := ParsePolicy(p.made.policy, p.rt.n) // a form that was in force
	switch to.Kind {
	case event.Eager:
		return best.Eager.Throughput
	case event.Table:
		return best.Throughput
	case event.Fixed:
		s := p.made.spec
		s.B = p.clamped(to.B)
		if r, err := plan.CountSim(&s, fixedEvents, p.rt.cfg.Sampling.Seed); err == nil {
			return r.Throughput
		}
	}
	return 0
}

// fixedEvents gives a prediction within half a percent.
const fixedEvents = 20_000

// clamped is what the cores make of fixed thresholds, for the subservers in use.
func (p *planner) clamped(b []int) []int {
	all := slices.Clone(b)
	sched.Clamp(all, slices.Repeat([]int{p.rt.cfg.Seats}, p.rt.n), p.made.n)
	var out []int
	for i, used := range p.used {
		if used {
			out = append(out, all[i])
		}
	}
	return out
}

// intervalWarnings says where requests do not leave as the model assumes.
func intervalWarnings(e *metrics.Estimate) (out []string) {
	for i := range e.Intervals {
		if v := &e.Intervals[i]; e.FarFrom(i) {
			out = append(out, fmt.Sprintf("the steps between two sends of the %s are not geometric (CV^2 %.2f, a geometric law of mean %.1f has %.2f): the plan follows their histogram",
				event.Role(event.Peer(i), e.Peers), v.CV2, v.Mean, v.Geom))
		}
	}
	return out
}

// tell says a thing once, until the router or a knob changes it again.
func (p *planner) tell(level tape.Level, text string) {
	if !p.told[text] {
		p.told[text] = true
		p.rt.message(level, text)
	}
}
