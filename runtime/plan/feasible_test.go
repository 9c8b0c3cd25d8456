package plan

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

func TestFeasible(t *testing.T) {
	for _, c := range []struct {
		b    []int
		n    int
		want bool
	}{
		{nil, 1, true},
		{[]int{1, 1}, 1, true},
		{[]int{1, 2}, 1, false},
		{[]int{1, 4}, 4, true},
		{[]int{2, 4}, 4, false},
		{[]int{2, 2, 2}, 4, true},
		{[]int{2, 2, 2}, 3, false},
		{nil, 0, false},
		{[]int{1, 1}, 0, false},
		{[]int{0, -3}, 1, true},
		{[]int{math.MaxInt, math.MaxInt}, 4, false},
		{[]int{math.MaxInt, math.MaxInt, 3, math.MinInt}, 4, false},
	} {
		if got := Feasible(c.b, c.n); got != c.want {
			t.Errorf("Feasible(%v, %d) = %v", c.b, c.n, got)
		}
	}
}

// TestFeasibleIsReachable: sum(B-1) < N exactly where the chain meets no
// deadlock (§3), for every vector up to N+1.
func TestFeasibleIsReachable(t *testing.T) {
	me2, me3 := []float64{.7, .3}, []float64{.6, .25, .15}
	for _, c := range []struct {
		name string
		spec Spec
		most int
	}{
		{"R2R", *pair(0, .35, 6, 27.9), 5},
		{"R-Stitch", Spec{P: [][]float64{{.8, .2}, {.3, .7}}, Step: flat(6, 27.9)}, 5},
		{"ME", Spec{P: [][]float64{me2, me2}, Step: flat(6, 27.9)}, 5},
		{"ME of three", Spec{P: [][]float64{me3, me3, me3}, Step: flat(6, 12, 27)}, 3},
	} {
		for n := 1; n <= c.most; n++ {
			for place := range placements(n*len(c.spec.P), len(c.spec.P)+1) {
				s := c.spec
				s.N, s.B = n, nil
				for _, k := range place[:len(s.P)] {
					s.B = append(s.B, k+1)
				}
				if !small(s.B, n+1) {
					continue
				}
				_, err := Chain(&s)
				if err != nil && !errors.Is(err, ErrDeadlock) {
					t.Fatal(err)
				}
				if want := Feasible(s.B, n); want != (err == nil) {
					t.Errorf("%s, N = %d, B = %v: feasible is %v, the chain says %v", c.name, n, s.B, want, err)
				}
			}
		}
	}
}

func small(b []int, most int) bool {
	for _, t := range b {
		if t > most {
			return false
		}
	}
	return true
}

// TestDeadlockOnlyIfReached: the rule is for routing by chance. Where the two
// requests always move together, thresholds that it forbids work, and the chain
// says so.
func TestDeadlockOnlyIfReached(t *testing.T) {
	s := pair(2, 1, 6, 27.9, 2, 2)
	s.K = nil
	if Feasible(s.B, s.N) {
		t.Errorf("B = %v counts as feasible for %d", s.B, s.N)
	}
	near(t, fmt.Sprintf("p = 1, B = %v", s.B), solved(t, s).Throughput, 4000/33.9, 1e-12)
}
