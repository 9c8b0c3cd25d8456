package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// normal fills a slice that begins at an odd offset of its memory, so that no
// kernel may rely on alignment.
func normal(r *rand.Rand, n int) []float32 {
	s := make([]float32, n+3)[3:]
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

// dot64 is the oracle: the sum in float64, and the sum of magnitudes that an
// error is measured against.
func dot64(x, y []float32) (sum, size float64) {
	for i := range x {
		p := float64(x[i]) * float64(y[i])
		sum += p
		size += math.Abs(p)
	}
	return sum, size
}

// dot is the scalar product of x and y summed in the order of the tiles: the
// definition that they are tested against, bit for bit.
func dot(x, y []float32) float32 {
	var s float32
	for k, v := range x {
		s += float32(v * y[k])
	}
	return s
}

// Case G5: every product stays within n/2 units of rounding of a float64 sum,
// for lengths 0 to 257.
func TestMatMulOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for cols := range 258 {
		rows, n := 1+cols%9, 1+cols%4
		w, x := normal(r, rows*cols), normal(r, n*cols)
		m := NewMatrix(rows, cols, w)
		y := normal(r, n*rows)
		MatMul(y, &m, x, n)
		for c := range n {
			for row := range rows {
				a, b := w[row*cols:][:cols], x[c*cols:][:cols]
				got := y[c*rows+row]
				want, size := dot64(a, b)
				if bound := float64(cols) * 0x1p-24 * size; math.Abs(float64(got)-want) > bound {
					t.Fatalf("cols %d row %d column %d: got %v, want %v within %v", cols, row, c, got, want, bound)
				}
				if d := dot(a, b); d != got {
					t.Fatalf("cols %d row %d column %d: MatMul %v, dot %v: another order of summation", cols, row, c, got, d)
				}
			}
		}
	}
}

// A column's result is the same bits whatever stands beside it (case G1).
func TestMatMulColumnsIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 13).Draw(t, "rows")
		cols := rapid.IntRange(0, 70).Draw(t, "cols")
		n := rapid.IntRange(1, 9).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := NewMatrix(rows, cols, normal(r, rows*cols))
		x := normal(r, n*cols)
		all, one := make([]float32, n*rows), make([]float32, rows)
		MatMul(all, &m, x, n)
		for c := range n {
			MatMul(one, &m, x[c*cols:], 1)
			for i, v := range one {
				if math.Float32bits(v) != math.Float32bits(all[c*rows+i]) {
					t.Fatalf("column %d of %d, row %d: %v alone, %v together", c, n, i, v, all[c*rows+i])
				}
			}
		}
	})
}

func TestMatrixRow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	w := normal(r, 7*5)
	m := NewMatrix(7, 5, w)
	got := make([]float32, 5)
	for i := range 7 {
		m.Row(got, i)
		for k := range got {
			if got[k] != w[i*5+k] {
				t.Fatalf("row %d: got %v, want %v", i, got, w[i*5:][:5])
			}
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	const rows, cols = 1280, 224
	r := rand.New(rand.NewPCG(5, 6))
	m := NewMatrix(rows, cols, normal(r, rows*cols))
	for _, n := range []int{1, 2, 8, 50} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			x, y := normal(r, n*cols), make([]float32, n*rows)
			for b.Loop() {
				MatMul(y, &m, x, n)
			}
			b.ReportMetric(2*rows*cols*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
