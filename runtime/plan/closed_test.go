package plan

import (
	"fmt"
	"math"
	"testing"
)

// lastOf is the expected maximum of n geometric numbers: the sum over t of the
// chance that not all n have come after t steps.
func lastOf(n int, p float64) float64 {
	sum := 0.0
	for t := 0; ; t++ {
		more := 1 - math.Pow(1-math.Pow(1-p, float64(t)), float64(n))
		sum += more
		if more < 1e-17 {
			return sum
		}
	}
}

// TestClosedForms: chain and closed form are the same to nine digits, and both
// the figures of §2.3.
func TestClosedForms(t *testing.T) {
	const p, t0, t1 = .35, 6., 27.9
	all := map[int]float64{2: 110.323, 3: 151.891, 4: 190.742, 8: 332.445, 16: 586.177}
	lock := map[int]float64{2: 90.448, 16: 472.371}
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		size := float64(n)
		for _, c := range []struct {
			b    []int
			want float64
		}{
			{[]int{1, n}, 1000 * size / p / (t0*lastOf(n, p) + t1)},
			{[]int{n, 1}, 1000 * size / (t0 + t1*(1-math.Pow(1-p, size)))},
		} {
			s := pair(n, p, t0, t1, c.b...)
			what := fmt.Sprintf("N = %d, B = %v", n, c.b)
			got, ok := ClosedForm(s)
			if !ok {
				t.Fatalf("%s has no closed form", what)
			}
			near(t, what+" closed form", got, c.want, 1e-12)
			near(t, what+" chain", solved(t, s).Throughput, c.want, 1e-9)
			if w, ok := all[n]; ok && c.b[1] == n {
				sameDecimals(t, what, got, w, 3)
			}
			if w, ok := lock[n]; ok && c.b[0] == n {
				sameDecimals(t, what, got, w, 3)
			}
		}
	}
	one, _ := ClosedForm(pair(1, p, t0, t1))
	near(t, "N = 1", one, 1000/(t0+p*t1), 1e-12)
}

// TestClosedFormsGeneral: step times that grow with the batch, any K, p up to 1,
// a request that stays at the second model.
func TestClosedFormsGeneral(t *testing.T) {
	for _, p := range []float64{.01, .2, .9, 1} {
		for n := 1; n <= 9; n += 2 {
			for _, b := range [][]int{{1, n}, {n, 1}} {
				s := pair(n, p, 0, 0, b...)
				s.Step = []Latency{{5.2, .7}, {20, 1.3}}
				s.K = [][]float64{{1, .5}, {2, 1}}
				want, ok := ClosedForm(s)
				if !ok {
					t.Fatalf("p = %v, N = %d, B = %v has no closed form", p, n, b)
				}
				near(t, fmt.Sprintf("p = %v, N = %d, B = %v", p, n, b), solved(t, s).Throughput, want, 1e-9)
			}
		}
	}
	// So many requests that the chance of all leaving at once is no float.
	many := pair(250, .02, 6, 27.9, 1, 250)
	want, _ := ClosedForm(many)
	near(t, "N = 250 closed form", want, 1000*250/.02/(6*lastOf(250, .02)+27.9), 1e-11)
	near(t, "N = 250", solved(t, many).Throughput, want, 1e-9)

	s := &Spec{N: 1, P: [][]float64{{.8, .2}, {.3, .7}}, Step: flat(6, 27.9)}
	want, ok := ClosedForm(s)
	near(t, "R-Stitch, N = 1", solved(t, s).Throughput, want, 1e-12)
	near(t, "R-Stitch, N = 1", want, 1000*.5/(.3*6+.2*27.9), 1e-12)
	if !ok {
		t.Error("R-Stitch, N = 1 has no closed form")
	}
}

func TestNoClosedForm(t *testing.T) {
	three := []float64{.6, .25, .15}
	capped := pair(4, .35, 6, 27.9, 1, 4)
	capped.Cap = []int{4, 3}
	phased := pair(2, .35, 6, 27.9, 1, 2)
	phased.Send = []*Phases{Intervals([]float64{0, 1}), nil}
	for _, s := range []*Spec{
		pair(4, .35, 6, 27.9), pair(4, .35, 6, 27.9, 1, 3), pair(4, 0, 6, 27.9, 1, 4), capped, phased,
		{N: 2, P: [][]float64{{.8, .2}, {.3, .7}}, Step: flat(6, 27.9), B: []int{1, 2}},
		{N: 1, P: [][]float64{three, three, three}, Step: flat(1, 2, 3)},
		{},
	} {
		if v, ok := ClosedForm(s); ok {
			t.Errorf("%+v has a closed form, %v", s, v)
		}
	}
}

// TestExplain: the threshold of the one-step look ahead, beside B* = 2, 2, 3, 5,
// 10 (§6.3).
func TestExplain(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 8: 5, 16: 9} {
		s := pair(n, .35, 6, 27.9)
		if got := Explain(s); got != want {
			t.Errorf("N = %d: %d, want %d", n, got, want)
		}
		x := .35 * (27.9/6 - 1)
		if formula := int(math.Ceil(float64(n) * x / (1 + x))); formula != want {
			t.Errorf("N = %d: the formula gives %d, want %d", n, formula, want)
		}
	}
	if got := Explain(pair(8, .35, 27.9, 27.9)); got != 1 {
		t.Errorf("equal step times: %d, want 1", got)
	}
	if got := Explain(&Spec{N: 4, P: [][]float64{{.8, .2}, {.3, .7}}, Step: flat(6, 27.9)}); got != 0 {
		t.Errorf("R-Stitch: %d, want 0", got)
	}
}
