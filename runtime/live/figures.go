package live

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
)

// figures are what a plan for people is made of: measured with the longer memory,
// for n active requests.
type figures struct {
	e    metrics.Estimate
	n    int
	spec plan.Spec
}

// figures gives those of the moment. e is what tables are made of; the longer
// memory may still ask for more of a model that has gone out of use.
func (p *planner) figures(e metrics.Estimate, n int) figures {
	if calm := p.calm.Estimate(); calm.Ready {
		e = calm
	}
	e.Whole = slices.Clone(e.Whole)
	stretch(&e)
	return figures{e: e, n: n, spec: e.Spec(n, p.seats())}
}

// lag says whether the figures on the tape are stale or others than these.
func (p *planner) lag(f *figures) bool { return p.stale || f.spec.Moved(&p.of) }

// show puts the figures of a plan on the tape. They take a closer search than the
// table, so people get them less often than the cores.
func (p *planner) show(f *figures) {
	if len(p.table) == 0 {
		return
	}
	e, n, spec := f.e, f.n, f.spec
	p.stale, p.of, p.shown = false, spec, p.now()
	o := p.options(&e)
	o.Near, o.NoTails = pick(&e, p.tableRow(n)), true
	best, err := plan.Best(&spec, o)
	if err != nil {
		p.tell(tape.Warn, "no plan: "+err.Error())
		return
	}
	inForce := p.expect(&e, &spec, &best, p.tableRow(n))
	if inForce.Throughput >= best.Throughput*(1-asGood) {
		best.B, best.Result = pick(&e, p.tableRow(n)), inForce
	}
	if p.read(); p.calm.Estimate().Turns != e.Turns {
		p.stale = true // what was measured is gone, and the board with it
		return
	}
	p.record(&e, &spec, &best, inForce.Throughput)
}

// asGood is how much throughput thresholds may lack to be called B*: the table is
// searched less closely, and its vector is then no other answer but the same.
const asGood = 0.005

// stretch makes step times what steps cost in all: a stall that the fit does not
// follow takes its time all the same.
func stretch(e *metrics.Estimate) {
	for i := range e.Whole {
		if f := &e.Whole[i]; f.Stretch > 0 {
			f.Base *= f.Stretch
			f.PerRow *= f.Stretch
			f.PerToken *= f.Stretch
		}
	}
}

// tableRow is the vector of the table for n active requests.
func (p *planner) tableRow(n int) []int {
	return p.table[max(1, min(n, len(p.table)))-1]
}

// pick is the part of a vector that is about subservers in use.
func pick(e *metrics.Estimate, b []int) (out []int) {
	for i, used := range e.Used {
		if used {
			out = append(out, b[i])
		}
	}
	return out
}

// expect is what the model expects of the vector b, as the cores clamp it. One that
// has a figure in the answer keeps that: two for one thing would differ by luck.
func (p *planner) expect(e *metrics.Estimate, spec *plan.Spec, best *plan.Answer, b []int) plan.Result {
	all := slices.Clone(b)
	sched.Clamp(all, slices.Repeat([]int{p.rt.cfg.Seats}, p.rt.n), spec.N)
	s := *spec
	s.B = pick(e, all)
	switch {
	case slices.Equal(s.B, best.B):
		return best.Result
	case !slices.ContainsFunc(s.B, func(b int) bool { return b > 1 }):
		return best.Eager
	}
	r, err := plan.CountSim(&s, figureEvents, p.rt.cfg.Sampling.Seed)
	if err != nil {
		p.tell(tape.Warn, "no prediction: "+err.Error())
	}
	return r
}

// figureEvents gives a prediction within a tenth of a percent or two.
const figureEvents = 20_000

// record puts the plan on the tape; inForce is what the table is expected to give.
func (p *planner) record(e *metrics.Estimate, spec *plan.Spec, best *plan.Answer, inForce float64) {
	to := tape.Plan{
		Policy: p.made.policy, N: spec.N, B: e.Spread(best.B), Table: p.table,
		P: e.P, K: e.K, Rows: e.Rows,
		Predicted: p.predict(e, spec, best, inForce), Best: best.Throughput,
		Eager: best.Eager.Throughput, Lockstep: best.Lockstep.Throughput, Low: best.Low, High: best.High,
		Method: string(best.Method), Warnings: slices.Concat(best.Warnings, intervalWarnings(e), boxWarnings(e, spec, best)), SolveNs: int64(p.took),
	}
	to.Step, to.Interval = e.Tape()
	p.put(func() { p.rt.host(event.None, &to) })
	for _, w := range to.Warnings {
		p.tell(tape.Info, "plan: "+w)
	}
}

// predict is the throughput of the policy in force in tokens per second; 0 for
// look-ahead, which the model does not describe.
func (p *planner) predict(e *metrics.Estimate, spec *plan.Spec, best *plan.Answer, inForce float64) float64 {
	to, _ := ParsePolicy(p.made.policy, p.rt.n) // a form that was in force
	switch to.Kind {
	case event.Eager:
		return best.Eager.Throughput
	case event.Table:
		return inForce
	case event.Fixed:
		return p.expect(e, spec, best, to.B).Throughput
	case event.LockStep:
		return best.Lockstep.Throughput
	}
	return 0
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

// boxWarnings says where the mean batch at B* is larger than any that was
// measured, and steps depend on their rows: the time of such a step is a guess.
func boxWarnings(e *metrics.Estimate, spec *plan.Spec, best *plan.Answer) (out []string) {
	k := 0
	for i, used := range e.Used {
		if !used {
			continue
		}
		if fit := &e.Whole[i]; fit.High > 0 && spec.Step[k].PerRow > 0 && best.MeanBatch[k] > float64(fit.High)+0.5 {
			out = append(out, fmt.Sprintf("steps of the %s were measured with up to %d rows, B* runs %.1f: their time is extrapolated",
				event.Role(event.Peer(i), e.Peers), fit.High, best.MeanBatch[k]))
		}
		k++
	}
	return out
}
