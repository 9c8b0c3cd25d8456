package head

import (
	"math"
	"testing"
)

// erf is the standard library's within 3e-12: kernels.Exp is good to 2e-12.
func TestErf(t *testing.T) {
	for i := -70_000; i <= 70_000; i++ {
		z := float64(i) / 10_000
		if d := math.Abs(erf(z) - math.Erf(z)); !(d < 3e-12) {
			t.Fatalf("erf(%g) is off by %g", z, d)
		}
	}
	for _, z := range []float64{math.Inf(1), math.Inf(-1), 1e300, -1e300, 0} {
		if erf(z) != math.Erf(z) {
			t.Errorf("erf(%g) is %g", z, erf(z))
		}
	}
	if !math.IsNaN(erf(math.NaN())) {
		t.Error("erf of no number is one")
	}
}

func TestSigmoid(t *testing.T) {
	for _, x := range []float64{-1e4, -700, -30, -1, 0, 1e-9, 1, 30, 700, 1e4, math.Inf(1), math.Inf(-1)} {
		if d := math.Abs(sigmoid(x) - 1/(1+math.Exp(-x))); !(d < 1e-12) {
			t.Errorf("sigmoid(%g) is %g", x, sigmoid(x))
		}
	}
}
