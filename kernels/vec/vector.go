package vec

import "math"

// Add does x += y for equal lengths.
func Add(x, y []float32) { add(x, y[:len(x)]) }

// Scale does x *= s.
func Scale(x []float32, s float32) { scaled(x, x, s) }

// RMSNorm writes y = x / sqrt(mean(x*x) + eps) * w (Zhang and Sennrich 2019,
// eq. 4). y may be x. The squares are summed in 32 lanes, element i in lane
// i%32, lanes l, l+8, l+16 and l+24 joined as (0+1)+(2+3).
func RMSNorm(y, x, w []float32, eps float32) {
	mean := squares(x) / float32(len(x))
	inv := float32(1 / math.Sqrt(float64(mean+eps)))
	scaledBy(y[:len(x)], x, w[:len(x)], inv)
}

// SiLUMulGroups is the activation of SwiGLU (Shazeer 2020), of gates and ups that
// lie in groups of eight: act[8i+j] = silu(gu[16i+j]) * gu[16i+8+j] with silu(g) =
// g / (1 + exp(-g)). The length of act is a multiple of 8, that of gu twice as
// much.
func SiLUMulGroups(act, gu []float32) {
	n := len(act) &^ 7
	siluMulGroups(act[:n], gu[:2*n])
}

// Sigmoid writes y = 1 / (1 + exp(-x)) for equal lengths.
func Sigmoid(y, x []float32) { sigmoid(y[:len(x)], x) }

// Rotate turns one head x, whose halves are rotated against each other, by the
// angles of a position (Su et al. 2021): x[i], x[h+i] become
// x[i]*cos[i] - x[h+i]*sin[i], x[h+i]*cos[i] + x[i]*sin[i] with h = len(cos).
// Products are rounded before they are added.
func Rotate(x, cos, sin []float32) {
	h := len(cos)
	rotate(x[:h], x[h:2*h], cos, sin[:h])
}

func addGo(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}

func scaledGo(y, x []float32, s float32) {
	for i, v := range x {
		y[i] = v * s
	}
}

func scaledByGo(y, x, w []float32, s float32) {
	for i, v := range x {
		y[i] = float32(v*s) * w[i]
	}
}

// blendGo does y = x*b + y*a, the first product not rounded.
func blendGo(y, x []float32, a, b float32) {
	for i, v := range x {
		y[i] = fma(v, b, float32(y[i]*a))
	}
}

func squaresGo(x []float32) float32 {
	var a [32]float32
	for i, v := range x {
		f, odd := rounded(v, v, a[i&31])
		if odd {
			f = fmaOdd(v, v, a[i&31])
		}
		a[i&31] = f
	}
	var b [8]float32
	for l := range b {
		b[l] = (a[l] + a[l+8]) + (a[l+16] + a[l+24])
	}
	return joined8(&b)
}

// silu is g / (1 + e^-g), from e^-|g| so that nothing overflows.
func silu(g float32) float32 {
	e := exp(float32(-math.Abs(float64(g))))
	n := g
	if g < 0 {
		n = g * e
	}
	return n / (1 + e)
}

func sigmoidGo(y, x []float32) {
	for i, v := range x {
		e := exp(float32(-math.Abs(float64(v))))
		n := float32(1)
		if v < 0 {
			n = e
		}
		y[i] = n / (1 + e)
	}
}

func siluMulGroupsGo(act, gu []float32) {
	for i := range act {
		g := i&^7*2 + i&7
		act[i] = silu(gu[g]) * gu[g+8]
	}
}

func rotateGo(a, b, cos, sin []float32) {
	for i, c := range cos {
		s, u, v := sin[i], a[i], b[i]
		a[i] = float32(u*c) - float32(v*s)
		b[i] = float32(v*c) + float32(u*s)
	}
}
