package cost

import "math"

// design is a regression: y = columns . coefficients, coefficients of 0 or more,
// the first column the constant 1.
type design struct {
	n      int // columns
	x      []float64
	y      []float64
	inv    []float64 // 1 / the scale of an error: relative errors where it is 1/y
	huber  []float64
	off    []float64 // errors of the last solution, times inv
	sorted []float64
}

func newDesign(columns, rows int) *design {
	return &design{
		n: columns, x: make([]float64, 0, columns*rows),
		y: make([]float64, 0, rows), inv: make([]float64, 0, rows),
		huber: make([]float64, rows), off: make([]float64, rows), sorted: make([]float64, rows),
	}
}

// add takes a measurement; the columns follow by put.
func (d *design) add(y, inv float64) {
	d.y, d.inv = append(d.y, y), append(d.inv, inv)
	d.x = append(d.x, 1)
}

func (d *design) put(x float64) { d.x = append(d.x, x) }

func (d *design) row(i int) []float64 { return d.x[i*d.n : (i+1)*d.n] }

// robust solves by least squares and then five rounds with Huber's weights. It
// returns the deviation of the errors beside their outliers, in the scale of inv.
func (d *design) robust() (c [maxColumns]float64, deviation float64) {
	for i := range d.huber {
		d.huber[i] = 1
	}
	for round := 0; ; round++ {
		c = d.weighted()
		deviation = d.errors(&c)
		if round == huberRounds || deviation == 0 {
			return c, deviation
		}
		limit := huberAt * deviation
		for i, r := range d.off {
			d.huber[i] = 1
			if r = math.Abs(r); r > limit {
				d.huber[i] = limit / r
			}
		}
	}
}

// weighted solves with the present weights.
func (d *design) weighted() [maxColumns]float64 {
	q := d.normal()
	return q.solve()
}

// normal sums up the normal equations under the present weights.
func (d *design) normal() normal {
	q := normal{n: d.n}
	for i, y := range d.y {
		w := d.huber[i] * d.inv[i] * d.inv[i]
		row := d.row(i)
		for r, x := range row {
			q.b[r] += w * x * y
			for c := range r + 1 {
				q.a[r][c] += w * x * row[c]
			}
		}
	}
	for r := range d.n {
		for c := range r {
			q.a[c][r] = q.a[r][c]
		}
	}
	return q
}

// errors takes the errors of a solution, measured - fit, and returns 1.4826 times
// the median of their sizes.
func (d *design) errors(c *[maxColumns]float64) (deviation float64) {
	for i, y := range d.y {
		for k, x := range d.row(i) {
			y -= c[k] * x
		}
		d.off[i] = y * d.inv[i]
		d.sorted[i] = math.Abs(d.off[i])
	}
	return perMAD * median(d.sorted)
}

// loss is the mean size of the last solution's errors.
func (d *design) loss() float64 {
	sum := 0.0
	for _, r := range d.off {
		sum += math.Abs(r)
	}
	return sum / float64(len(d.off))
}
