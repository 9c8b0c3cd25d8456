package cost

import "math"

// Columns of a fit.
const (
	colBase = 1 << iota
	colRows
	colTokens
)

const (
	huberRounds = 5
	huberAt     = 1.345  // standard deviations, 95 % efficient under a normal law (Huber 1981)
	perMAD      = 1.4826 // standard deviation of a normal law / its median absolute deviation
	singular    = 1e-9   // what is left of a column beside the others, below which it says nothing new
)

// point is one measurement: y = x . coefficients.
type point struct {
	x   [3]float64
	y   float64
	inv float64 // 1 / the time measured: errors are relative
	w   float64
	h   float64 // Huber's weight
}

func newPoint(rows, tokens, ms, w float64) point {
	return point{x: [3]float64{1, rows, tokens}, y: ms, inv: 1 / ms, w: w, h: 1}
}

// solve finds the coefficients of the given columns, 0 or more, that make the
// weighted squares of relative errors of f.points least; after the first round
// with Huber's weights.
func (f *Fitter) solve(columns, rounds int) [3]float64 {
	var best [3]float64
	for round := range rounds {
		if round > 0 && !f.reweigh(&best) {
			break
		}
		best = nonNegative(f.points, columns)
	}
	return best
}

// reweigh sets Huber's weights for the present errors; false if there are none.
func (f *Fitter) reweigh(c *[3]float64) bool {
	f.resid = f.resid[:0]
	for i := range f.points {
		f.resid = append(f.resid, math.Abs(f.points[i].off(c)))
	}
	limit := huberAt * perMAD * median(f.resid)
	if limit == 0 {
		return false
	}
	for i := range f.points {
		p := &f.points[i]
		p.h = 1
		if r := math.Abs(p.off(c)); r > limit {
			p.h = limit / r
		}
	}
	return true
}

// off is the relative error of a point.
func (p *point) off(c *[3]float64) float64 {
	return (p.y - p.x[0]*c[0] - p.x[1]*c[1] - p.x[2]*c[2]) * p.inv
}

// nonNegative solves least squares under coefficients of 0 or more. With three
// columns the set of those above 0 is found by trying all, simple ones first.
func nonNegative(points []point, columns int) (best [3]float64) {
	var a [3][3]float64
	var b [3]float64
	for i := range points {
		p := &points[i]
		w := p.w * p.h * p.inv * p.inv
		for r := range 3 {
			b[r] += w * p.x[r] * p.y
			for c := range 3 {
				a[r][c] += w * p.x[r] * p.x[c]
			}
		}
	}
	gain := 0.0 // squares explained
	for _, set := range [...]int{colBase, colBase | colRows, colBase | colTokens, colBase | colRows | colTokens, colRows, colTokens, colRows | colTokens} {
		if set&^columns != 0 {
			continue
		}
		c, ok := solveSet(&a, &b, set)
		if !ok {
			continue
		}
		g := 0.0
		for r := range 3 {
			g += c[r] * b[r]
		}
		if g > gain {
			gain, best = g, c
		}
	}
	return best
}

// solveSet solves the normal equations of some columns by elimination. ok is
// false where a column says nothing new or a coefficient is below 0.
func solveSet(a *[3][3]float64, b *[3]float64, set int) (c [3]float64, ok bool) {
	m, y := *a, *b
	for r := range 3 {
		if set&(1<<r) == 0 {
			continue
		}
		if !(m[r][r] > singular*a[r][r]) {
			return c, false
		}
		for q := r + 1; q < 3; q++ {
			if set&(1<<q) == 0 {
				continue
			}
			k := m[q][r] / m[r][r]
			for s := r; s < 3; s++ {
				m[q][s] -= k * m[r][s]
			}
			y[q] -= k * y[r]
		}
	}
	for r := 2; r >= 0; r-- {
		if set&(1<<r) == 0 {
			continue
		}
		v := y[r]
		for s := r + 1; s < 3; s++ {
			v -= m[r][s] * c[s]
		}
		c[r] = v / m[r][r]
		if c[r] < 0 {
			return c, false
		}
	}
	return c, true
}
