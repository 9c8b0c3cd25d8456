package plan

import (
	"fmt"
	"math"
)

// quantum is the default of Spec.Quantum in ms.
const quantum = 0.1

// longestStep bounds a step time in quanta, so that sums of them stay exact.
const longestStep = 1 << 40

// ticks gives the step times as whole numbers of a tick: t[m][b] for a batch of
// b rows at model m, and the tick in ms. The tick is the largest that divides
// every time in use exactly (§1.1: 6.0 / 27.9 ms are 20 / 93 ticks of 0.3
// ms). A batch smaller than the threshold never runs, so its time does not count.
func (s *Spec) ticks() (t [][]int, tick float64, err error) {
	q := s.Quantum
	if q == 0 {
		q = quantum
	}
	t = make([][]int, len(s.Step))
	div := 0
	for m, l := range s.Step {
		most := s.most(m)
		t[m] = make([]int, most+1)
		for b := min(s.threshold(m), most); b <= most; b++ {
			n := math.Round(l.Of(b) / q)
			if n < 1 || n > longestStep {
				return nil, 0, fmt.Errorf("a step of model %d with %d rows takes %v ms, %v quanta of %v ms; give another quantum", m, b, l.Of(b), n, q)
			}
			t[m][b] = int(n)
			div = gcd(div, int(n))
		}
	}
	for _, row := range t {
		for b := range row {
			row[b] /= div
		}
	}
	return t, q * float64(div), nil
}

// threshold is B of model m.
func (s *Spec) threshold(m int) int {
	if s.B == nil {
		return 1
	}
	return s.B[m]
}

// most is the largest batch that model m can run.
func (s *Spec) most(m int) int {
	if s.Cap == nil {
		return s.N
	}
	return min(s.N, s.Cap[m])
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
