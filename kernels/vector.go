package kernels

import "math"

// Add does x += y for equal lengths.
func Add(x, y []float32) {
	y = y[:len(x)]
	for i, v := range y {
		x[i] += v
	}
}

// Scale does x *= s.
func Scale(x []float32, s float32) {
	for i := range x {
		x[i] *= s
	}
}

// RMSNorm writes y = x / sqrt(mean(x*x) + eps) * w (Zhang and Sennrich 2019,
// eq. 4). y may be x. The squares are summed in four lanes, element i in lane
// i%4, joined as (0+1)+(2+3).
func RMSNorm(y, x, w []float32, eps float32) {
	var a0, a1, a2, a3 float32
	i := 0
	for ; i <= len(x)-4; i += 4 {
		v := (*[4]float32)(x[i:])
		a0 += float32(v[0] * v[0])
		a1 += float32(v[1] * v[1])
		a2 += float32(v[2] * v[2])
		a3 += float32(v[3] * v[3])
	}
	rest := x[i:]
	if len(rest) > 0 {
		a0 += float32(rest[0] * rest[0])
	}
	if len(rest) > 1 {
		a1 += float32(rest[1] * rest[1])
	}
	if len(rest) > 2 {
		a2 += float32(rest[2] * rest[2])
	}
	mean := ((a0 + a1) + (a2 + a3)) / float32(len(x))
	inv := float32(1 / math.Sqrt(float64(mean+eps)))
	y, w = y[:len(x)], w[:len(x)]
	for i, v := range x {
		y[i] = float32(v*inv) * w[i]
	}
}

// SiLUMul writes y[i] = gate[i] / (1 + exp(-gate[i])) * up[i], the activation
// of SwiGLU (Shazeer 2020), for equal lengths. y may be gate.
func SiLUMul(y, gate, up []float32) {
	y, up = y[:len(gate)], up[:len(gate)]
	for i, g := range gate {
		x := float64(g)
		y[i] = float32(x/(1+exp(-x))) * up[i]
	}
}
