package train

import (
	"math"

	"tokenrouter/kernels/gemm"
)

// Constants of the two optimisers.
const (
	muonMomentum = 0.95
	muonSteps    = 5 // of Newton and Schulz
	adamFirst    = 0.9
	adamSecond   = 0.95
	adamEps      = 1e-8
	embedClip    = 1 // norm that the gradient of the embedding is cut to
)

// moments are what the optimisers remember, laid out like the weights: momentum of
// Muon and first moment of Adam; second moment of Adam.
type moments struct{ first, second []float32 }

// adam is a step of Kingma and Ba (2015), algorithm 1, at step t from 1.
func (m *moments) adam(w, grad []float32, s span, rate float64, t int) {
	// 1 - beta^t by multiplication: the same on every machine.
	b1, b2 := 1.0, 1.0
	for range min(t, 2000) {
		b1, b2 = b1*adamFirst, b2*adamSecond
	}
	c1, c2, lr := float32(1/(1-b1)), float32(1/(1-b2)), float32(rate)
	end := s.at + s.len()
	w, grad, first, second := w[s.at:end], grad[s.at:end], m.first[s.at:end], m.second[s.at:end]
	for i, g := range grad {
		first[i] = adamFirst*first[i] + (1-adamFirst)*g
		second[i] = adamSecond*second[i] + (1-adamSecond)*g*g
		w[i] -= lr * (first[i] * c1) / (float32(math.Sqrt(float64(second[i]*c2))) + adamEps)
	}
}

// clip cuts a gradient to a norm.
func clip(g []float32, norm float64) {
	sum := 0.0
	for _, v := range g {
		sum += float64(v) * float64(v)
	}
	if sum = math.Sqrt(sum); sum > norm {
		s := float32(norm / sum)
		for i := range g {
			g[i] *= s
		}
	}
}

// muon is a step of Muon (Jordan et al. 2024): the momentum of a matrix, made
// nearly orthogonal, is the direction.
type muon struct{ x, xT, y, a, b []float32 }

func (o *muon) step(m *moments, w, grad []float32, s span, rate, decay float64) {
	n := s.len()
	w, grad, first := w[s.at:][:n], grad[s.at:][:n], m.first[s.at:][:n]
	o.x, o.y = fit(o.x, n), fit(o.y, n)
	for i, g := range grad {
		first[i] = muonMomentum*first[i] + g
		o.y[i] = g + muonMomentum*first[i] // Nesterov's
	}
	rows, cols, tall := s.rows, s.cols, s.rows > s.cols
	if tall {
		gemm.Transpose(o.x, rows, o.y, cols, rows, cols)
		rows, cols = cols, rows
	} else {
		o.x, o.y = o.y, o.x
	}
	o.orthogonal(rows, cols)
	keep, lr := float32(1-rate*decay), float32(rate)
	if tall {
		lr *= float32(math.Sqrt(float64(s.rows) / float64(s.cols)))
		gemm.Transpose(o.y, rows, o.x, cols, rows, cols)
		o.x, o.y = o.y, o.x
	}
	for i, v := range o.x[:n] {
		w[i] = w[i]*keep - lr*v
	}
}

// orthogonal replaces x by something close to U V^T of its singular value
// decomposition: five steps of the quintic iteration X <- aX + (bA + cA^2)X with
// A = X X^T, whose coefficients make the slope at zero as steep as they can.
func (o *muon) orthogonal(rows, cols int) {
	const a, b, c = 3.4445, -4.7750, 2.0315
	n := rows * cols
	x, y := o.x[:n], o.y[:n]
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	q := float32(1 / (math.Sqrt(sum) + 1e-7))
	for i := range x {
		x[i] *= q
	}
	o.xT = fit(o.xT, n)
	o.a, o.b = fit(o.a, rows*rows), fit(o.b, rows*rows)
	for range muonSteps {
		gemm.Transpose(o.xT, rows, x, cols, rows, cols)
		square(o.a, rows, x, o.xT, cols)
		square(o.b, rows, o.a, o.a, rows)
		for i, v := range o.a {
			o.b[i] = b*v + c*o.b[i]
		}
		gemm.Mul(rows, cols, rows, gemm.Rows(o.b, rows), x, cols, y, cols, false)
		for i, v := range y {
			x[i] = a*x[i] + v
		}
	}
}

// square writes the n x n product of x, n rows of k values, with its transpose xT:
// symmetric, so what lies left of the diagonal's blocks is copied.
func square(c []float32, n int, x, xT []float32, k int) {
	const side = 48
	for i := 0; i < n; i += side {
		m := min(side, n-i)
		gemm.Mul(m, n-i, k, gemm.Rows(x[i*k:], k), xT[i:], n, c[i*n+i:], n, false)
		if rest := n - i - m; rest > 0 {
			gemm.Transpose(c[(i+m)*n+i:], n, c[i*n+i+m:], n, m, rest)
		}
	}
}
