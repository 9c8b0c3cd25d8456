package plan

import (
	"fmt"
	"math"
)

// Fluid replaces the counts of requests by their means: a batch of x requests
// splits exactly as P says (TokenRouter paper, throughput model, in the limit of
// many requests). One solution costs some 0.1 ms whatever N.
//
// It is an approximation. Against [CountSim], for R2R with 6.0 / 27.9 ms, p =
// 0.1, 0.2 and 0.35 and 13 thresholds from 1 to N each, the throughput is off by
//
//	N                16    32    64   256  1024
//	mean error, %   1.5   0.8   0.6   0.5   0.4
//	largest, %      6.3   3.1   2.9   2.2   2.6
//
// The largest errors sit at jumps of the limit, where one more small step fits
// into a large one. The best of the 13 by the limit loses at most 0.6 %.
// TestFluidError holds these figures.
//
// Errors: a spec that [Spec.Check] refuses, [ErrDeadlock] if the thresholds are
// not feasible.
func Fluid(s *Spec) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	g, err := newStage(s, 0)
	if err != nil {
		return Result{}, err
	}
	return g.fluid(s.Step, s.N, s.vector())
}

// Completion instants of a fluid run: the orbit settles within a few batches of
// the slowest model.
const (
	fluidWarm   = 1000
	fluidEvents = 4000
)

// flow is a run over masses.
type flow struct {
	*stage
	step       []Latency
	at         []pool    // by model
	wait, runs []float64 // by kind
	clock      int
	tokens     float64
}

// pool is one model in a flow.
type pool struct {
	need          float64 // mass that starts a batch
	cap           float64
	waiting, rows float64
	left, length  int
	steps         float64
	batches, busy int
}

// fluid runs mass n under thresholds b. Where b is feasible no threshold of whole
// requests can hold all of them, but masses below each could. Lowered by
// (M-1)/M, a half for two models, the same argument holds for masses, and the
// limit comes closer to the counts than without.
func (g *stage) fluid(step []Latency, n int, b []int) (Result, error) {
	models := len(b)
	x := &flow{stage: g, step: step, at: make([]pool, models), wait: make([]float64, len(g.model)), runs: make([]float64, len(g.model))}
	slack := float64(models-1)/float64(models) + 1e-9*float64(n)
	for m := range x.at {
		x.at[m].need, x.at[m].cap = float64(b[m])-slack, float64(min(n, g.cap[m]))
	}
	for _, e := range g.enter[0] {
		x.wait[e.kind] = float64(n) * e.p
	}
	x.at[0].waiting = float64(n)
	x.dispatch()
	var from flow
	for e := range fluidWarm + fluidEvents {
		if e == fluidWarm {
			from = *x
			from.at = append([]pool(nil), x.at...)
		}
		if !x.advance() {
			return Result{}, fmt.Errorf("%w: %d requests under thresholds B = %v; lower one, the sum of B-1 must be below N", ErrDeadlock, n, b)
		}
	}
	ticks := float64(x.clock - from.clock)
	perSecond := 1000 / g.tick
	res := Result{Classes: 1, Throughput: (x.tokens - from.tokens) / ticks * perSecond}
	for m := range x.at {
		a, z := &from.at[m], &x.at[m]
		res.Steps = append(res.Steps, (z.steps-a.steps)/ticks*perSecond)
		res.Busy = append(res.Busy, float64(z.busy-a.busy)/ticks)
		res.MeanBatch = append(res.MeanBatch, (z.steps-a.steps)/float64(max(1, z.batches-a.batches)))
	}
	return res, nil
}

// advance goes on to the next completion; false if nothing runs.
func (x *flow) advance() bool {
	d := math.MaxInt
	for m := range x.at {
		if a := &x.at[m]; a.rows > 0 && a.left < d {
			d = a.left
		}
	}
	if d == math.MaxInt {
		return false
	}
	x.clock += d
	for m := range x.at {
		a := &x.at[m]
		if a.rows == 0 {
			continue
		}
		if a.left -= d; a.left > 0 {
			continue
		}
		a.steps += a.rows
		a.batches++
		a.busy += a.length
		a.rows = 0
		for k := x.first[m]; k < x.first[m+1]; k++ {
			for i := range x.next[k] {
				b := &x.next[k][i]
				mass := x.runs[k] * b.p
				x.wait[b.kind] += mass
				x.at[x.model[b.kind]].waiting += mass
				x.tokens += mass * b.commit
			}
			x.runs[k] = 0
		}
	}
	x.dispatch()
	return true
}

// dispatch starts a batch at every idle model whose threshold is reached.
func (x *flow) dispatch() {
	for m := range x.at {
		a := &x.at[m]
		if a.rows > 0 || a.waiting < a.need || a.waiting <= 0 {
			continue
		}
		a.rows = min(a.waiting, a.cap)
		part := a.rows / a.waiting
		left := 0.0
		for k := x.first[m]; k < x.first[m+1]; k++ {
			x.runs[k] = x.wait[k] * part
			x.wait[k] -= x.runs[k]
			left += x.wait[k]
		}
		a.waiting = left
		a.length = max(1, int(math.Round(x.step[m].mean(a.rows)/x.tick)))
		a.left = a.length
	}
}

// mean is the time of steps with that many rows in the mean, in ms.
func (l Latency) mean(rows float64) float64 { return l.Base + l.PerRow*rows }
