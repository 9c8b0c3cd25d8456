package cost

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// all is the oracle: the best of the solutions over every choice of columns whose
// coefficients are all above 0.
func (q *normal) all() (best [maxColumns]float64) {
	least := 0.0
	for set := range 1 << q.n {
		var taken [maxColumns]bool
		for i := range q.n {
			taken[i] = set&(1<<i) != 0
		}
		x, ok := q.solveTaken(&taken)
		for i := range q.n {
			ok = ok && x[i] >= 0
		}
		if v := q.value(&x); ok && v < least {
			best, least = x, v
		}
	}
	return best
}

// value is half the squares less what no coefficient changes.
func (q *normal) value(x *[maxColumns]float64) (v float64) {
	for i := range q.n {
		v -= q.b[i] * x[i]
		for j := range q.n {
			v += x[i] * q.a[i][j] * x[j] / 2
		}
	}
	return v
}

func normalOf(rows [][]float64, y []float64) normal {
	d := newDesign(len(rows[0]), len(rows))
	for i, r := range rows {
		d.x, d.y, d.inv = append(d.x, r...), append(d.y, y[i]), append(d.inv, 1)
		d.huber[i] = 1
	}
	return d.normal()
}

func TestNNLSOfLawsonAndHanson(t *testing.T) {
	for _, c := range []struct {
		name string
		rows [][]float64
		y    []float64
		want []float64
	}{
		{"all above 0", [][]float64{{1, 0}, {1, 1}, {1, 2}}, []float64{1, 3, 5}, []float64{1, 2}},
		{"a falling line is flat", [][]float64{{1, 0}, {1, 1}, {1, 2}}, []float64{5, 3, 1}, []float64{3, 0}},
		{"a line below 0 goes through it", [][]float64{{1, 1}, {1, 2}, {1, 3}}, []float64{0, 2, 4}, []float64{0, 16. / 14}},
		{"nothing but 0", [][]float64{{1, 1}, {1, 2}}, []float64{-1, -2}, []float64{0, 0}},
		{"a column of zeros", [][]float64{{1, 0, 1}, {1, 0, 2}, {1, 0, 3}}, []float64{1, 2, 3}, []float64{0, 0, 1}},
		{"a column twice", [][]float64{{1, 2, 2}, {1, 3, 3}, {1, 4, 4}}, []float64{5, 7, 9}, []float64{1, 2, 0}},
	} {
		q := normalOf(c.rows, c.y)
		x := q.solve()
		for i, want := range c.want {
			if math.Abs(x[i]-want) > 1e-9 {
				t.Errorf("%s: coefficients %v, want %v", c.name, x[:q.n], c.want)
				break
			}
		}
	}
}

// The active-set method finds the least squares that trying every set finds, and
// nothing improves on it by a small step.
func TestNNLSAgainstEveryActiveSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, maxColumns).Draw(t, "columns")
		rows := make([][]float64, rapid.IntRange(n, 3*n+4).Draw(t, "rows"))
		y := make([]float64, len(rows))
		// Whole numbers, so that columns are often dependent or at right angles.
		small := rapid.IntRange(-3, 3)
		for i := range rows {
			for k := range n {
				scale := math.Pow(10, float64(k-2))
				rows[i] = append(rows[i], scale*float64(small.Draw(t, "x")))
			}
			y[i] = float64(small.Draw(t, "y"))
		}
		q := normalOf(rows, y)
		plain := q
		x := q.solve() // q is now scaled
		want := q.all()
		for i := range n {
			if x[i] < 0 || math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
				t.Fatalf("coefficients %v", x)
			}
			want[i] /= math.Max(math.Sqrt(plain.a[i][i]), math.SmallestNonzeroFloat64)
			if plain.a[i][i] == 0 {
				want[i] = 0
			}
		}
		got, least := plain.value(&x), plain.value(&want)
		if got > least+1e-7*(1+math.Abs(least)) {
			t.Fatalf("%v has %v, %v has %v", x, got, want, least)
		}
	})
}
