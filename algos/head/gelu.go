package head

import (
	"math"

	"tokenrouter/kernels"
)

// erf is written out, as exp and ln are in package kernels, so that every machine
// computes the same bits; products are rounded before they are added.
//
// Around a grid point c the series of Taylor with h = z - c gives
//
//	erf(z) = erf(c) + 2/sqrt(pi) e^(-c*c) (h - c h^2 + (2c^2-1)/3 h^3 + (3c-2c^3)/6 h^4)
//
// With a grid of 1/128 what is left out stays below 2e-13.
const (
	erfSteps = 128 // grid points in 1
	erfEnd   = 6   // erf is 1 from there on, within 3e-17
)

type erfPoint struct{ value, slope float64 }

var erfTable = newErfTable()

func newErfTable() []erfPoint {
	table := make([]erfPoint, erfEnd*erfSteps+1)
	for i := range table {
		z := float64(i) / erfSteps
		slope := float64(2 / math.Sqrt(math.Pi) * kernels.Exp(float64(-z*z)))
		// erf(z) = 2/sqrt(pi) e^(-z*z) sum of 2^n z^(2n+1) / (1*3*..*(2n+1)): all
		// terms are positive, so nothing cancels.
		term, sum := z, z
		for n := 1; term > 1e-18*sum; n++ {
			term = float64(term * float64(2*z*z) / float64(2*n+1))
			sum += term
		}
		table[i] = erfPoint{float64(slope * sum), slope}
	}
	return table
}

// erf is the error function.
func erf(z float64) float64 {
	a := math.Abs(z)
	switch {
	case a != a:
		return z
	case a >= erfEnd:
		return math.Copysign(1, z)
	}
	i := int(float64(a*erfSteps) + 0.5)
	p, c := &erfTable[i], float64(i)/erfSteps
	h := a - c
	c2 := float64(c * c)
	t := (float64(2*c2) - 1) / 3
	t += float64(h * (float64(c*(3-float64(2*c2))) / 6))
	t = float64(h*t) - c
	t = 1 + float64(h*t)
	return math.Copysign(p.value+float64(float64(p.slope*h)*t), z)
}

// gelu is x times the normal distribution function at x (Hendrycks and Gimpel
// 2016): the exact form, which is the default of PyTorch, not the one with tanh.
func gelu(x []float32) {
	for i, v := range x {
		x[i] = float32(float64(0.5*float64(v)) * (1 + erf(float64(v)/math.Sqrt2)))
	}
}

func relu(x []float32) {
	for i, v := range x {
		if v < 0 { // NaN stays
			x[i] = 0
		}
	}
}

// sigmoid is 1 / (1 + e^-x).
func sigmoid(x float64) float64 {
	if x < 0 {
		e := kernels.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + kernels.Exp(-x))
}
