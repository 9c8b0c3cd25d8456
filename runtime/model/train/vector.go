package train

import (
	"math"

	"tokenrouter/kernels/vec"
)

// inverse is 1 / sqrt(mean(x*x) + eps). Four sums run side by side: one would
// wait for itself.
func inverse(x []float32) float32 {
	return 1 / float32(math.Sqrt(float64(dot(x, x)/float32(len(x))+eps)))
}

func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a += x[i] * y[i]
		b += x[i+1] * y[i+1]
		c += x[i+2] * y[i+2]
		d += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		a += x[i] * y[i]
	}
	return (a + b) + (c + d)
}

func addTo(x, y []float32) {
	y = y[:len(x)]
	for i := range x {
		x[i] += y[i]
	}
}

// rmsNorm norms rows of len(w) values (Zhang and Sennrich 2019, eq. 4) and keeps
// what they were multiplied by.
func rmsNorm(y, inv, x, w []float32) {
	d := len(w)
	for t := range inv {
		a, b := x[t*d:][:d], y[t*d:][:d]
		q := inverse(a)
		inv[t] = q
		for j, v := range a {
			b[j] = v * q * w[j]
		}
	}
}

// rmsNormBack adds to dx and dw the gradients through rmsNorm of dy. With
// g = dy*w, dx = inv*g - x * inv^3 * (g . x) / d.
func rmsNormBack(dx, dw, dy, x, inv, w []float32) {
	d := len(w)
	for t, q := range inv {
		a, g, out := x[t*d:][:d], dy[t*d:][:d], dx[t*d:][:d]
		var s, s2 float32
		j := 0
		for ; j+2 <= d; j += 2 {
			s += g[j] * w[j] * a[j]
			s2 += g[j+1] * w[j+1] * a[j+1]
		}
		if j < d {
			s += g[j] * w[j] * a[j]
		}
		s = (s + s2) * q * q * q / float32(d)
		for j, v := range g {
			dw[j] += v * a[j] * q
			out[j] += q*v*w[j] - a[j]*s
		}
	}
}

// swiGLU is the activation of Shazeer (2020): silu(gate) * up, of gates with ups
// behind them; sigmoid keeps that of the gates.
func swiGLU(y, sigmoid, gateUp []float32) {
	f := len(y)
	gate, up, sigmoid := gateUp[:f], gateUp[f:][:f], sigmoid[:f]
	vec.Sigmoid(sigmoid, gate)
	for i, g := range gate {
		y[i] = g * sigmoid[i] * up[i]
	}
}

// swiGLUBack writes the gradients of gates and ups.
func swiGLUBack(dgateUp, dy, sigmoid, gateUp []float32) {
	f := len(dy)
	gate, up := gateUp[:f], gateUp[f:][:f]
	dgate, dup := dgateUp[:f], dgateUp[f:][:f]
	for i, d := range dy {
		s := sigmoid[i]
		silu := gate[i] * s
		dgate[i] = d * up[i] * (s + silu*(1-s))
		dup[i] = d * silu
	}
}

// nothing is a score or a logit of no weight.
const nothing = -1e30

// softmax replaces the first n scores of a row by their probabilities and the
// rest, up to a multiple of 16, by zeros.
func softmax(x []float32, n int) {
	x = x[:padded(n)]
	for i := n; i < len(x); i++ {
		x[i] = nothing
	}
	_, sum := vec.Exps(x)
	vec.Scale(x, 1/sum)
}

// softmaxBack turns gradients of probabilities into those of scores before they
// were scaled.
func softmaxBack(d, prob []float32, scale float32) {
	s := dot(d, prob)
	for i, v := range d {
		d[i] = prob[i] * (v - s) * scale
	}
}

// crossEntropy is -ln of the probability of one of the first v logits, and
// whether it is the largest. Logits have room for a multiple of 16. With scale
// above 0 they become scale times the loss's gradient.
func crossEntropy(logits []float32, v, want int, scale float32) (loss float64, right bool) {
	logits = logits[:padded(v)]
	for i := v; i < len(logits); i++ {
		logits[i] = nothing
	}
	was := logits[want]
	peak, sum := vec.Exps(logits)
	if scale > 0 {
		vec.Scale(logits, scale/sum)
		logits[want] -= scale
	}
	return math.Log(float64(sum)) + float64(peak) - float64(was), was == peak
}
