package plan

import (
	"fmt"
	"math"
)

// Stays is the law of a request that makes another step after step k with
// probability stay[k-1]; the last entry holds from there on. Its phases are the
// steps made so far.
func Stays(stay []float64) *Phases {
	n := len(stay)
	f := &Phases{Start: make([]float64, n), Next: make([][]float64, n)}
	for k, p := range stay {
		f.Next[k] = make([]float64, n)
		f.Next[k][min(k+1, n-1)] = p
	}
	if n > 0 {
		f.Start[0] = 1
	}
	return f
}

// Intervals is the law of a request that is sent on after k steps with a
// probability proportional to p[k-1], a histogram for instance.
func Intervals(p []float64) *Phases {
	stay := make([]float64, len(p))
	left := 0.0 // the chance to make more than k steps, summed from the small end
	for k := len(p) - 1; k >= 0; k-- {
		if left > 0 {
			stay[k] = left / (left + p[k])
		}
		left += p[k]
	}
	return Stays(stay)
}

// checkSend says what is wrong with the law of sends of model i.
func (s *Spec) checkSend(i int) error {
	f := s.Send[i]
	n := len(f.Start)
	switch {
	case n == 0:
		return fmt.Errorf("the send law of model %d has no phase; leave it out for the geometric law", i)
	case len(f.Next) != n:
		return fmt.Errorf("the send law of model %d has %d start entries and %d rows of next phases; give one each per phase", i, n, len(f.Next))
	case s.P[i][i] >= 1:
		return fmt.Errorf("entry P[%d][%d] is 1, but model %d has a send law; give row %d of P a destination", i, i, i, i)
	}
	if sum, ok := total(f.Start); !ok || math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("the start phases of the send law of model %d are %v; give probabilities that sum to 1", i, f.Start)
	}
	leaves := make([]bool, n)
	for k, row := range f.Next {
		sum, ok := total(row)
		if len(row) != n || !ok || sum > 1+1e-9 {
			return fmt.Errorf("phase %d of the send law of model %d leads on with %v; give %d probabilities that sum to at most 1", k, i, row, n)
		}
		leaves[k] = sum < 1-1e-12 // less is rounding
	}
	// A phase leaves at last if it leaves or leads to one that does.
	for range n {
		for k, row := range f.Next {
			for l, p := range row {
				leaves[k] = leaves[k] || p > 0 && leaves[l]
			}
		}
	}
	for k, ok := range leaves {
		if !ok {
			return fmt.Errorf("from phase %d of the send law of model %d a request never leaves; let its row sum to less than 1", k, i)
		}
	}
	return nil
}

// total sums probabilities; ok is false if one is none.
func total(p []float64) (sum float64, ok bool) {
	for _, x := range p {
		if !(x >= 0 && x <= 1) {
			return 0, false
		}
		sum += x
	}
	return sum, true
}
