package plan

import (
	"fmt"
	"math"
)

// Latency is the affine time of a decode step, in milliseconds:
// Base + PerRow x rows.
type Latency struct{ Base, PerRow float64 }

// Of is the time of a step with that many rows, in ms.
func (l Latency) Of(rows int) float64 { return l.Base + l.PerRow*float64(rows) }

// Spec is a closed system of N active requests on M models, each with one batch
// at a time: a request that ends is replaced at once.
type Spec struct {
	N       int
	P       [][]float64 // P[i][j]: a decode step at i sends its request to j; rows sum to 1
	K       [][]float64 // K[i][j]: tokens committed by a step at i routed to j; below 0 where it takes back more than it writes
	Step    []Latency   // per model
	B       []int       // threshold per model; nil means 1 everywhere
	Cap     []int       // most rows of a batch per model; nil means no bound
	Quantum float64     // ms that step times are rounded to; 0 means 0.1
	Send    []*Phases   // law of the steps between sends per model; nil, or a nil entry: geometric with P[i][i]
}

// Result is what a spec yields in the long run.
type Result struct {
	Throughput float64   // committed tokens per second
	Steps      []float64 // decode steps (rows) per second, per model
	Busy       []float64 // fraction of time each model runs
	MeanBatch  []float64 // rows of a batch, per model
	States     int       // of the chain, 0 for other methods
	Classes    int       // recurrent classes; above 1 the figures depend on chance or on the start, and are means over runs that start with all N at model 0 ([Chain])
	Error      float64   // standard error of Throughput, 0 for exact methods
	P99        float64   // ms: 99th percentile of the time between two tokens of a request; 0 where the method does not follow requests
}

// Check says what is wrong with a spec, nil if it can be solved. It does not ask
// whether the thresholds deadlock; see [Feasible].
func (s *Spec) Check() error {
	m := len(s.P)
	switch {
	case s.N < 1:
		return fmt.Errorf("there are N = %d active requests; give at least 1", s.N)
	case m < 1:
		return fmt.Errorf("the routing matrix P is empty; give one row per model")
	case len(s.Step) != m:
		return fmt.Errorf("%d step times for %d models; give one per model", len(s.Step), m)
	case s.B != nil && len(s.B) != m:
		return fmt.Errorf("%d thresholds B for %d models; give one per model", len(s.B), m)
	case s.Cap != nil && len(s.Cap) != m:
		return fmt.Errorf("%d batch caps for %d models; give one per model", len(s.Cap), m)
	case s.K != nil && len(s.K) != m:
		return fmt.Errorf("the matrix K has %d rows for %d models; give one per model", len(s.K), m)
	case s.Send != nil && len(s.Send) != m:
		return fmt.Errorf("%d send laws for %d models; give one per model, nil for the geometric law", len(s.Send), m)
	case !(s.Quantum >= 0 && s.Quantum < math.Inf(1)):
		return fmt.Errorf("the quantum is %v ms; give 0.1 or leave it out", s.Quantum)
	}
	for i, row := range s.P {
		if len(row) != m {
			return fmt.Errorf("row %d of P has %d entries for %d models", i, len(row), m)
		}
		sum := 0.0
		for j, p := range row {
			if !(p >= 0 && p <= 1) {
				return fmt.Errorf("entry P[%d][%d] is %v; a probability lies in 0 to 1", i, j, p)
			}
			sum += p
		}
		if math.Abs(sum-1) > 1e-9 {
			return fmt.Errorf("row %d of P sums to %v; it must sum to 1", i, sum)
		}
		if l := s.Step[i]; !(l.Base >= 0 && l.PerRow >= 0 && l.Of(1) > 0 && l.Of(s.N) < math.Inf(1)) {
			return fmt.Errorf("the step time of model %d is %v + %v x rows ms; it must be above 0 and finite", i, l.Base, l.PerRow)
		}
		if s.B != nil && s.B[i] < 1 {
			return fmt.Errorf("threshold B[%d] is %d; give at least 1", i, s.B[i])
		}
		if s.Cap != nil && s.Cap[i] < 1 {
			return fmt.Errorf("the batch cap of model %d is %d; give at least 1", i, s.Cap[i])
		}
		if s.send(i) != nil {
			if err := s.checkSend(i); err != nil {
				return err
			}
		}
		if s.K == nil {
			continue
		}
		if len(s.K[i]) != m {
			return fmt.Errorf("row %d of K has %d entries for %d models", i, len(s.K[i]), m)
		}
		for j, k := range s.K[i] {
			if math.IsNaN(k) || math.IsInf(k, 0) {
				return fmt.Errorf("entry K[%d][%d] is %v; give how many tokens such a step commits", i, j, k)
			}
		}
	}
	return nil
}

// Phases is a discrete phase-type law of the decode steps that a request makes
// at a model between coming and being sent on: it starts in phase k with
// probability Start[k]; each step leads from phase k to l with probability
// Next[k][l], and with the rest the request leaves, to model j with probability
// P[i][j] / (1 - P[i][i]). One phase is the geometric law. [Intervals] makes the
// law of given intervals.
//
// With a batch cap, which of more requests run matters once they differ by
// phase: every subset is as likely as another.
type Phases struct {
	Start []float64
	Next  [][]float64
}
