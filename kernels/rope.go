package kernels

import "math"

// RoPE holds the tables of rotary position embeddings (Su et al. 2021), for
// heads of dim values whose two halves are rotated against each other
// (rotate-half, as in Qwen and Llama checkpoints).
type RoPE struct {
	half     int
	cos, sin []float32 // [position][half]
}

// NewRoPE computes the tables for positions 0..n-1. Pair i turns by
// pos * theta^(-2i/dim); frequency and angle are rounded to float32, as the
// reference implementations do.
func NewRoPE(n, dim int, theta float64) *RoPE {
	h := dim / 2
	r := &RoPE{half: h, cos: make([]float32, n*h), sin: make([]float32, n*h)}
	logTheta := ln(theta)
	for i := range h {
		freq := 1 / float32(exp(float64(float64(2*i)/float64(dim)*logTheta)))
		for p := range n {
			s, c := Sincos(float64(float32(p) * freq))
			r.cos[p*h+i], r.sin[p*h+i] = float32(c), float32(s)
		}
	}
	return r
}

// Apply rotates one head x (dim values) to position pos, in place.
func (r *RoPE) Apply(x []float32, pos int) {
	h := r.half
	cos, sin := r.cos[pos*h:][:h], r.sin[pos*h:][:h]
	a, b := x[:h], x[h:][:h]
	for i, c := range cos {
		s, u, v := sin[i], a[i], b[i]
		a[i] = float32(u*c) - float32(v*s)
		b[i] = float32(v*c) + float32(u*s)
	}
}

// Sincos is the sine and cosine of 0 <= x < 2^20, accurate to about 1e-15 (to
// 1e-8 up to 2^24) and the same on every machine: x is reduced to |r| <= pi/4
// with pi/2 in two parts (the first has 33 bits, so its multiples are exact),
// then Taylor series.
func Sincos(x float64) (sin, cos float64) {
	const (
		hi = 0x1.921fb544p0
		lo = math.Pi/2 - hi
	)
	k := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	r := (x - float64(k*hi)) - float64(k*lo)
	r2 := float64(r * r)
	s, c := 1.0, 1.0
	for i := len(sinStep) - 1; i >= 0; i-- {
		s = 1 - float64(s*float64(r2*sinStep[i]))
		c = 1 - float64(c*float64(r2*cosStep[i]))
	}
	s = float64(s * r)
	switch int64(k) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// Ratios of neighbouring Taylor coefficients: sin r = r(1 - r2*sinStep[0]*(1 -
// r2*sinStep[1]*(...))), cos likewise.
var (
	sinStep = [8]float64{1. / 6, 1. / 20, 1. / 42, 1. / 72, 1. / 110, 1. / 156, 1. / 210, 1. / 272}
	cosStep = [8]float64{1. / 2, 1. / 12, 1. / 30, 1. / 56, 1. / 90, 1. / 132, 1. / 182, 1. / 240}
)
