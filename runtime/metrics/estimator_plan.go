package metrics

import (
	"math"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
)

// Spec is the closed system that was measured, with n active requests and seats
// rows in a batch at most. Subservers that are not in use are left out; Spread
// puts a threshold vector back into the order of all.
//
// The step time of a row is that of a row as batches had them: what prompts and
// suffixes add is spread over all rows of the subserver. Where a fit has no
// slope, the time is flat. Where the steps between sends are far from geometric,
// their histogram takes the place of that law.
func (e *Estimate) Spec(n, seats int) plan.Spec {
	s := plan.Spec{N: n}
	for i, used := range e.Used {
		if !used {
			continue
		}
		base, perRow := e.Step(i)
		s.Step = append(s.Step, plan.Latency{Base: base, PerRow: perRow})
		s.Cap = append(s.Cap, seats)
		s.P, s.K = append(s.P, e.pick(e.P[i])), append(s.K, e.pick(e.K[i]))
		var law *plan.Phases
		if e.FarFrom(i) {
			law = e.Intervals[i].Phases()
		}
		s.Send = append(s.Send, law)
	}
	s.Quantum = quantum(s.Step)
	for _, row := range s.P {
		normalise(row)
	}
	return s
}

// A step of the fastest model is so many quanta at least, and a quantum so many ms
// at most.
const (
	leastQuanta = 20
	mostQuantum = 0.1
)

// quantum is the unit in ms that step times are rounded to. On the live clock steps
// are far below a millisecond, and the plan's own unit would make nothing of them.
func quantum(step []plan.Latency) float64 {
	q := mostQuantum
	for _, l := range step {
		if ms := l.Of(1); ms > 0 {
			q = min(q, ms/leastQuanta)
		}
	}
	return q
}

// sure is the chance below which a test that is asked again and again is
// believed.
const sure = 1e-4

// steady is how many standard errors two measures of one share may differ.
const steady = 3

// FarFrom says whether the steps between sends of subserver i are so far from
// geometric that a plan should not assume it. A share that changes is refused by
// the test as well, and its histogram is of the past: so the share must not drift,
// and be that of the histogram. A plan else follows the share.
func (e *Estimate) FarFrom(i int) bool {
	v := &e.Intervals[i]
	if !e.Used[i] || !v.Far || v.PValue >= sure || math.Abs(e.Drift[i].Z) >= steady {
		return false
	}
	share := 1 - e.P[i][i]
	return math.Abs(share-1/v.Mean) < steady*math.Sqrt(share*(1-share)/max(1, e.Effective[i]))
}

// pick is the part of a row that is about subservers in use.
func (e *Estimate) pick(row []float64) []float64 {
	var out []float64
	for j, used := range e.Used {
		if used {
			out = append(out, row[j])
		}
	}
	return out
}

// normalise makes a row sum to 1 as closely as floating point can.
func normalise(row []float64) {
	sum := 0.0
	for _, p := range row {
		sum += p
	}
	for j := range row {
		row[j] /= sum
	}
}

// Spread puts a vector over the subservers in use into the order of all; the
// others have 1.
func (e *Estimate) Spread(b []int) []int {
	out, k := make([]int, e.Peers), 0
	for i, used := range e.Used {
		out[i] = 1
		if used && k < len(b) {
			out[i] = b[k]
			k++
		}
	}
	return out
}

// Forecast is what look-ahead needs of the measured system.
func (e *Estimate) Forecast(latencyNs int64) *event.Forecast {
	f := &event.Forecast{Latency: latencyNs}
	for i := range e.Peers {
		base, perRow := e.Step(i)
		share := make([]int, e.Peers)
		for j, p := range e.P[i] {
			if e.Used[i] && e.Used[j] {
				share[j] = int(math.Round(p * 1e6))
			}
		}
		f.Share = append(f.Share, share)
		f.Step = append(f.Step, event.StepTime{
			Base:   int64(math.Round(base * 1e6)),
			PerRow: int64(math.Round(perRow * 1e6)),
		})
	}
	return f
}

// most is how many steps of a visit have a phase of their own in Phases.
const most = 16

// Phases is the histogram as a law that the planner can follow: step k of a visit
// is a phase with the share of those steps that were sent on; from the last phase
// on, all steps have one share. nil where nothing was sent.
func (v *Interval) Phases() *plan.Phases {
	var stay []float64 // share of step k that is not sent on
	for _, bin := range v.Bins {
		for k := bin.From; k <= bin.To && len(stay) < most && bin.Made > 0; k++ {
			stay = append(stay, 1-float64(bin.Sent)/float64(bin.Made))
		}
	}
	n := len(stay)
	if n == 0 || v.N == 0 {
		return nil
	}
	made, tail := 0, 0
	for _, bin := range v.Bins {
		if bin.From >= n {
			made, tail = made+bin.Made, tail+bin.Sent
		}
	}
	if tail == 0 { // nobody was seen to leave this late, and nobody stays for ever
		made, tail = v.Steps, v.N
	}
	stay[n-1] = 1 - float64(tail)/float64(made)
	return plan.Stays(stay)
}
