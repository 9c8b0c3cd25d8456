package metrics

import (
	"fmt"
	"strings"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// minShare is the share of a subserver's rows from which on another one is in
// use: a router that goes somewhere once in a thousand rows must not keep the
// rest from being planned.
const minShare = 0.005

// Estimate is what an Estimator knows at one moment. Slices have one entry for
// each subserver; nothing in it is shared.
type Estimate struct {
	Peers  int
	Active int // requests admitted and unfinished
	Turns  int // how often a router, a knob, the clock or its speed has changed: figures from before say nothing of now

	// P[i][j] is the share of rows at i that go to j; rows sum to 1. While fewer
	// than 20 rows were seen at i since the router or a knob changed, row i is a
	// blend of them with what was believed before, which is worth one row; else it
	// is theirs alone, by weight, and what goes to a subserver that is not in use
	// is left out.
	P [][]float64
	// K[i][j] is the mean of tokens committed by such a row, those included that j
	// appends on receiving it; 1 where none was ever seen.
	K         [][]float64
	Rows      []int     // rows seen at i since the router or a knob changed
	Effective []float64 // equally weighted rows that would be as good: the standard error of P[i][j] is sqrt(P(1-P)/Effective)
	Known     []bool    // row i of P is measured
	Used      []bool    // subserver i is in use: the front, and where half a percent or more goes
	Drift     []Drift   // of the share of rows that leave i

	Steps     []cost.Fit // forward pass and sampling (ExecNs)
	Whole     []cost.Fit // from the start of a batch to its end as its core sees it: routing and scheduling included
	Mix       []Mix
	Intervals []Interval
	Latency   time.Duration // mean time that a message with a request is under way

	// Ready is whether a plan can be made, and Why what is missing, "" when ready.
	Ready bool
	Why   string
}

// Estimate gives the figures. Asking changes nothing.
func (e *Estimator) Estimate() Estimate {
	n := len(e.cores)
	out := Estimate{
		Peers: n, Active: e.active, Turns: e.turns, Latency: e.flight.latency(),
		P: make([][]float64, n), K: make([][]float64, n),
		Rows: make([]int, n), Effective: make([]float64, n), Known: make([]bool, n), Used: e.used(), Drift: make([]Drift, n),
		Steps: make([]cost.Fit, n), Whole: make([]cost.Fit, n), Mix: make([]Mix, n), Intervals: make([]Interval, n),
	}
	for i := range e.cores {
		c := &e.cores[i]
		r := &c.routing
		out.P[i], out.K[i] = r.row(out.Used), make([]float64, n)
		for j := range n {
			out.K[i][j] = r.tokens[j].mean()
		}
		out.Rows[i], out.Effective[i], out.Known[i] = r.n, r.effective(), r.known()
		out.Drift[i] = r.drift(event.Peer(i))
		out.Steps[i], out.Whole[i], out.Mix[i] = c.steps.exec.Fit(), c.steps.whole.Fit(), c.steps.mix()
		out.Intervals[i] = c.intervals.interval()
	}
	out.Why = out.missing()
	out.Ready = out.Why == ""
	return out
}

// used says which subservers are in use.
func (e *Estimator) used() []bool {
	used := make([]bool, len(e.cores))
	used[event.Front] = true
	for again := true; again; {
		again = false
		for i := range e.cores {
			r := &e.cores[i].routing
			if !used[i] && r.known() {
				used[i], again = true, true
			}
			if !used[i] {
				continue
			}
			for j, w := range r.w {
				if !used[j] && w > 0 && (!r.known() || w/r.sum >= minShare) {
					used[j], again = true, true
				}
			}
		}
	}
	return used
}

// row is the row of P.
func (r *routing) row(used []bool) []float64 {
	out := make([]float64, len(r.w))
	sum := 0.0
	for j := range out {
		if used[j] || !r.known() {
			out[j] = r.share(j)
			sum += out[j]
		}
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

// missing says what a plan would need.
func (e *Estimate) missing() string {
	if e.Peers == 1 {
		return "one subserver: there is nobody to wait for"
	}
	var why []string
	alone := true
	for i, used := range e.Used {
		if !used {
			continue
		}
		alone = alone && i == int(event.Front)
		role := event.Role(event.Peer(i), e.Peers)
		batches := min(e.Steps[i].N+e.Steps[i].PrefillN, e.Whole[i].N+e.Whole[i].PrefillN)
		switch {
		case !e.Known[i]:
			why = append(why, fmt.Sprintf("%s: %d of %d rows", role, e.Rows[i], minRows))
		case batches < cost.MinBatches:
			why = append(why, fmt.Sprintf("%s: %d of %d batches", role, batches, cost.MinBatches))
		}
	}
	if alone && len(why) == 0 {
		return "small keeps every row: there is nobody to wait for"
	}
	return strings.Join(why, "; ")
}

// Step is the time in ms of a step of i with so many rows of the present mix:
// base + perRow x rows. What rows bring beyond one token is in perRow.
func (e *Estimate) Step(i int) (base, perRow float64) {
	f, m := &e.Whole[i], e.Mix[i]
	return f.Base, f.PerRow*m.Decode + f.PerToken*m.Tokens
}

// Tape gives the step times and intervals as a plan records them.
func (e *Estimate) Tape() (step []tape.StepFit, intervals []tape.Interval) {
	for i := range e.Whole {
		base, perRow := e.Step(i)
		step = append(step, tape.StepFit{Base: base, PerRow: perRow, Low: e.Whole[i].Low, High: e.Whole[i].High})
		intervals = append(intervals, e.Intervals[i].Tape())
	}
	return step, intervals
}
