package cost

import "math"

// maxColumns is the base and the features of the largest set.
const maxColumns = 6

// normal is the normal equations of weighted least squares with n columns.
type normal struct {
	n int
	a [maxColumns][maxColumns]float64 // X'WX
	b [maxColumns]float64             // X'Wy
}

// dependent is what is left of a column of length 1 beside those taken, squared,
// below which it says nothing new; flat is a gradient that is none.
const (
	dependent = 1e-10
	flat      = 1e-12
)

// solve finds the coefficients of 0 or more that make the squares least, by the
// active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974,
// chapter 23) on columns scaled to length 1. A column that depends on those
// already taken keeps a coefficient of 0.
func (q *normal) solve() (x [maxColumns]float64) {
	scale := q.scaled()
	top := 0.0
	for i := range q.n {
		top = max(top, math.Abs(q.b[i]))
	}
	var taken, refused [maxColumns]bool
	for {
		j := q.steepest(&x, &taken, &refused, flat*top)
		if j < 0 {
			break
		}
		taken[j] = true
		z, ok := q.solveTaken(&taken)
		if !ok || z[j] <= 0 {
			taken[j], refused[j] = false, true
			continue
		}
		for q.inward(&x, &z, &taken) {
			// A part of columns that were independent is so too.
			z, _ = q.solveTaken(&taken)
		}
		x, refused = z, [maxColumns]bool{}
	}
	for i := range q.n {
		x[i] /= scale[i]
	}
	return x
}

// scaled gives every column length 1 and returns what it had; a column of zeros
// stays one.
func (q *normal) scaled() (scale [maxColumns]float64) {
	for i := range q.n {
		if scale[i] = math.Sqrt(q.a[i][i]); !(scale[i] > 0) {
			scale[i] = 1
		}
	}
	for i := range q.n {
		q.b[i] /= scale[i]
		for j := range q.n {
			q.a[i][j] /= scale[i] * scale[j]
		}
	}
	return scale
}

// steepest is the column outside of those taken along which the squares fall
// most, -1 if they fall along none.
func (q *normal) steepest(x *[maxColumns]float64, taken, refused *[maxColumns]bool, least float64) int {
	best := -1
	for i := range q.n {
		if taken[i] || refused[i] {
			continue
		}
		down := q.b[i]
		for j := range q.n {
			down -= q.a[i][j] * x[j]
		}
		if down > least {
			best, least = i, down
		}
	}
	return best
}

// inward goes from x towards z as far as no coefficient falls below 0, gives up
// the columns that reach it and says whether there were any.
func (q *normal) inward(x, z *[maxColumns]float64, taken *[maxColumns]bool) bool {
	far, stop := 1.0, -1
	for i := range q.n {
		if taken[i] && z[i] <= 0 {
			if t := x[i] / (x[i] - z[i]); stop < 0 || t < far {
				far, stop = t, i
			}
		}
	}
	if stop < 0 {
		return false
	}
	for i := range q.n {
		if !taken[i] {
			continue
		}
		x[i] += far * (z[i] - x[i])
		if i == stop || x[i] <= 0 {
			x[i], taken[i] = 0, false
		}
	}
	return true
}

// solveTaken solves the equations of the columns taken by Cholesky's method; ok
// is false where one of them depends on the others.
func (q *normal) solveTaken(taken *[maxColumns]bool) (x [maxColumns]float64, ok bool) {
	var l [maxColumns][maxColumns]float64
	for i := range q.n {
		if !taken[i] {
			continue
		}
		for j := range i + 1 {
			if !taken[j] {
				continue
			}
			v := q.a[i][j]
			for k := range j {
				v -= l[i][k] * l[j][k]
			}
			switch {
			case i != j:
				l[i][j] = v / l[j][j]
			case v > dependent:
				l[i][i] = math.Sqrt(v)
			default:
				return x, false
			}
		}
	}
	for i := range q.n {
		if taken[i] {
			v := q.b[i]
			for k := range i {
				v -= l[i][k] * x[k]
			}
			x[i] = v / l[i][i]
		}
	}
	for i := q.n - 1; i >= 0; i-- {
		if taken[i] {
			v := x[i]
			for k := i + 1; k < q.n; k++ {
				v -= l[k][i] * x[k]
			}
			x[i] = v / l[i][i]
		}
	}
	return x, true
}
