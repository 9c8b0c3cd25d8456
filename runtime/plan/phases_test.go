package plan

import (
	"fmt"
	"testing"
)

// TestSendGeometric: one phase is the geometric law, and so are two alike; what
// P says of staying does not count then.
func TestSendGeometric(t *testing.T) {
	for _, b := range [][]int{{1, 1}, {1, 3}, {2, 2}} {
		want := solved(t, pair(4, .35, 6, 27.9, b...))
		for _, f := range []*Phases{
			{Start: []float64{1}, Next: [][]float64{{.65}}},
			{Start: []float64{.5, .5}, Next: [][]float64{{.65, 0}, {0, .65}}},
			{Start: []float64{1, 0}, Next: [][]float64{{.25, .4}, {.6, .05}}},
		} {
			for _, stay := range []float64{.65, 0, .9} {
				s := pair(4, .35, 6, 27.9, b...)
				s.P[0] = []float64{stay, 1 - stay}
				s.Send = []*Phases{f, nil}
				got := solved(t, s)
				near(t, fmt.Sprintf("B = %v, %d phases", b, len(f.Start)), got.Throughput, want.Throughput, 1e-10)
				near(t, "mean batch", got.MeanBatch[1], want.MeanBatch[1], 1e-10)
			}
		}
	}
}

// TestSendDeterministic: every third token is sent on, so all requests move
// together.
func TestSendDeterministic(t *testing.T) {
	for n := 1; n <= 4; n++ {
		s := pair(n, .35, 6, 27.9)
		s.Send = []*Phases{Intervals([]float64{0, 0, 1}), nil}
		s.K = nil
		r := solved(t, s)
		near(t, fmt.Sprintf("N = %d", n), r.Throughput, 1000*float64(4*n)/(3*6+27.9), 1e-12)
		near(t, "steps of the small model per step of the large", r.Steps[0]/r.Steps[1], 3, 1e-12)
	}
}

// TestSendMoments: the step rates depend on the mean of the intervals alone, the
// throughput also on their law.
func TestSendMoments(t *testing.T) {
	var last float64
	for _, p := range [][]float64{{.2, .2, .2, .2, .2}, {0, .5, 0, .5}, {.5, 0, 0, 0, .5}, {0, 0, 3}} {
		sum, mean := 0.0, 0.0
		for k, x := range p {
			sum += x
			mean += x * float64(k+1)
		}
		s := pair(3, .35, 6, 27.9, 1, 2)
		s.Send = []*Phases{Intervals(p), nil}
		r := solved(t, s)
		near(t, fmt.Sprintf("steps per send of %v", p), r.Steps[0]/r.Steps[1], mean/sum, 1e-9)
		if r.Throughput == last {
			t.Errorf("%v gives the throughput of another law, %v", p, last)
		}
		last = r.Throughput
	}
}

// TestSendAtBoth: both models may have a law; three requests, so states of many
// kinds.
func TestSendAtBoth(t *testing.T) {
	s := &Spec{N: 3, P: [][]float64{{.5, .5}, {.5, .5}}, Step: flat(6, 12), B: []int{1, 2}}
	s.Send = []*Phases{Intervals([]float64{.1, .2, .7}), Intervals([]float64{.5, .5})}
	r := solved(t, s)
	near(t, "steps", r.Steps[0]/r.Steps[1], 2.6/1.5, 1e-9)
	near(t, "busy", r.Busy[1], r.Steps[1]*.012/r.MeanBatch[1], 1e-12)
}
