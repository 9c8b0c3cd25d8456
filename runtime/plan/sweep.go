package plan

import "math"

// basis is how many sweeps a cycle looks back on.
const basis = 40

// sweeps improves the stationary vector of a class.
//
// A sweep of Gauss-Seidel goes through the places in order, so what it yields
// depends on the old x only where a transition goes back: it is one step of the
// chain embedded at the ends of the slow model's batches, y -> S y with y = x at
// those places. With deterministic step times that chain is periodic or nearly
// so (the phase of the small model at those ends turns by a fixed amount), and
// repeated sweeps would swing for ever. improve takes the best combination of
// many sweeps instead, in which swinging parts cancel.
type sweeps struct {
	*incoming
	x    []float64
	back []int32 // places from which a transition goes back
	y, w []float64
	v    [][]float64 // orthonormal basis of the cycle
	h    [][]float64 // columns of the triangular factor
}

func newSweeps(in *incoming) *sweeps {
	n := len(in.scale)
	v := &sweeps{incoming: in, x: make([]float64, n)}
	back := make([]bool, n)
	for i := range n {
		v.x[i] = 1
		for a := in.row[i]; a < in.row[i+1]; a++ {
			if in.from[a] > int32(i) {
				back[in.from[a]] = true
			}
		}
	}
	for i, b := range back {
		if b {
			v.back = append(v.back, int32(i))
		}
	}
	v.y, v.w = make([]float64, len(v.back)), make([]float64, len(v.back))
	return v
}

// step puts y in, sweeps and leaves the new values in to; they may be the same.
func (v *sweeps) step(y, to []float64) {
	x := v.x
	for i, at := range v.back {
		x[at] = y[i]
	}
	for i := range x {
		sum := 0.0
		a, z := v.row[i], v.row[i+1]
		p := v.p[a:z]
		for e, from := range v.from[a:z] {
			sum += x[from] * p[e]
		}
		x[i] = sum * v.scale[i]
	}
	for i, at := range v.back {
		to[i] = x[at]
	}
}

// improve is one cycle of GMRES (Saad, Schultz, SIAM J. Sci. Stat. Comput. 1986)
// on y - S y = 0, and a last sweep. It returns the relative residual before.
func (v *sweeps) improve() float64 {
	for i, at := range v.back {
		v.y[i] = v.x[at]
	}
	size := norm(v.y)
	v.step(v.y, v.w)
	for i := range v.w {
		v.w[i] -= v.y[i]
	}
	first := norm(v.w)
	if first <= floor*size {
		return first / size
	}
	var cos, sin [basis]float64
	e := [basis + 1]float64{first}
	n := 0 // columns so far
	for left := first; n < basis && left > floor/8*size; n++ {
		next := norm(v.w)
		if n > 0 && next <= floor {
			break // the basis spans all that sweeps can reach
		}
		h := v.extend(n, next)
		for i := range n {
			h[i], h[i+1] = cos[i]*h[i]+sin[i]*h[i+1], cos[i]*h[i+1]-sin[i]*h[i]
		}
		d := math.Hypot(h[n], h[n+1])
		if d == 0 {
			break
		}
		cos[n], sin[n] = h[n]/d, h[n+1]/d
		h[n], h[n+1] = d, 0
		e[n], e[n+1] = cos[n]*e[n], -sin[n]*e[n]
		left = math.Abs(e[n+1])
	}
	for j := n - 1; j >= 0; j-- {
		for i := j + 1; i < n; i++ {
			e[j] -= v.h[i][j] * e[i]
		}
		e[j] /= v.h[j][j]
		axpy(v.y, e[j], v.v[j])
	}
	v.step(v.y, v.y)
	return first / size
}

// extend takes w, of length norm, as basis vector n and leaves in w what y - S y
// makes of it without the parts along the basis; those are the column returned.
func (v *sweeps) extend(n int, length float64) []float64 {
	if n == len(v.v) {
		v.v = append(v.v, make([]float64, len(v.w)))
		v.h = append(v.h, make([]float64, n+2))
	}
	u, h := v.v[n], v.h[n]
	for i, w := range v.w {
		u[i] = w / length
	}
	v.step(u, v.w)
	for i, w := range v.w {
		v.w[i] = u[i] - w
	}
	for i := range n + 1 {
		h[i] = dot(v.v[i], v.w)
		axpy(v.w, -h[i], v.v[i])
	}
	h[n+1] = norm(v.w)
	return h
}

func norm(a []float64) float64 { return math.Sqrt(dot(a, a)) }
