package matmul

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
)

// levels are the levels that this machine can run.
func levels() []cpu.Level {
	var l []cpu.Level
	for i := cpu.Go; i <= cpu.Best(); i++ {
		l = append(l, i)
	}
	return l
}

// allFormats are the formats of weights.
var allFormats = []Format{F32, F16, BF16, Q8, Q4}

// normal is n values that begin at an odd offset of their memory.
func normal(r *rand.Rand, n int) []float32 {
	s := make([]float32, n+3)[3:]
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

// random is a matrix of normally distributed weights.
func random(t testing.TB, r *rand.Rand, f Format, rows, cols int) *Matrix {
	t.Helper()
	m, err := New(f, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	for i := range rows {
		m.SetFloat(i, normal(r, cols))
	}
	return m
}

// input packs columns for a matrix at a level.
func input(m *Matrix, level cpu.Level, x [][]float32) *Input {
	in := new(Input)
	in.reset(m.Format, m.Cols, len(x), level)
	for c := range x {
		in.Put(c, 0, x[c])
	}
	return in
}

// product1 is the outputs of the matrix with columns x, each of Padded rows.
func product1(m *Matrix, level cpu.Level, x [][]float32) []float32 {
	y := make([]float32, len(x)*m.Padded())
	m.Mul(y, m.Padded(), input(m, level, x), 0, m.Rows)
	return y
}

// Every kernel is within the rounding of its activations and of float32 of the
// sum in float64, for every length, for numbers of rows that are no multiple of
// a group and every number of columns that has a kernel.
func TestOracle(t *testing.T) {
	for _, l := range levels() {
		for _, f := range allFormats {
			t.Run(fmt.Sprintf("%v/%v", l, f), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(l), uint64(f)))
				for k := range 258 {
					rows, n := 1+(k*29)%71, 1+k%9
					m := random(t, r, f, rows, k)
					x := make([][]float32, n)
					for c := range x {
						x[c] = normal(r, k)
					}
					y := product1(m, l, x)
					w := make([]float32, k)
					for row := range rows {
						m.Row(w, row)
						for c := range x {
							want, bound := exact(f, w, x[c])
							if got := float64(y[c*m.Padded()+row]); !(math.Abs(got-want) <= bound) {
								t.Fatalf("k %d, row %d of %d, column %d of %d: got %v, want %v within %v", k, row, rows, c, n, got, want, bound)
							}
						}
					}
					m.Free()
				}
			})
		}
	}
}

// exact is the sum of products in float64, and how far a kernel may be off: half
// a step of quantised activations for each product, and rounding.
func exact(f Format, w, x []float32) (sum, bound float64) {
	top := map[Format]float64{Q8: 32767, Q4: 127}[f]
	for b := 0; b < len(x); b += block {
		var most float64
		for _, v := range x[b:min(b+block, len(x))] {
			most = math.Max(most, math.Abs(float64(v)))
		}
		for k := b; k < min(b+block, len(x)); k++ {
			p := float64(w[k]) * float64(x[k])
			sum += p
			bound += math.Abs(p) * float64(len(x)) * 0x1p-24
			if f.quantised() {
				bound += math.Abs(float64(w[k])) * most / top * 0.501
			}
		}
	}
	return sum, bound + 1e-30
}

// Products of float32 weights are those of the plain kernels but for rounding:
// they round a product before it is added.
func TestPlain(t *testing.T) {
	for _, l := range levels() {
		t.Run(l.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, uint64(l)))
			for _, k := range []int{1, 7, 32, 88, 257, 640} {
				rows, n := 1+k%71, 1+k%5
				m := random(t, r, F32, rows, k)
				defer m.Free()
				w := make([]float32, rows*k)
				for i := range rows {
					m.Row(w[i*k:][:k], i)
				}
				plain := kernels.NewMatrix(rows, k, w)
				x, flat := make([][]float32, n), []float32(nil)
				for c := range x {
					x[c] = normal(r, k)
					flat = append(flat, x[c]...)
				}
				y, want := product1(m, l, x), make([]float32, n*rows)
				kernels.MatMul(want, &plain, flat, n)
				for c := range n {
					for row := range rows {
						_, bound := exact(F32, w[row*k:][:k], x[c])
						if got, want := y[c*m.Padded()+row], want[c*rows+row]; !(math.Abs(float64(got-want)) <= 2*bound) {
							t.Fatalf("k %d, row %d, column %d: got %v, plain kernels %v", k, row, c, got, want)
						}
					}
				}
			}
		})
	}
}

// The levels of assembly give the same bits, Go's twin nearly so; an output
// knows neither its column's neighbours nor the rows that were asked for.
func TestOneChain(t *testing.T) {
	for _, f := range allFormats {
		for _, k := range []int{8, 32, 96, 640} {
			r := rand.New(rand.NewPCG(uint64(k), uint64(f)))
			m := random(t, r, f, 16*9+3, k)
			x := make([][]float32, 19)
			for c := range x {
				x[c] = normal(r, k)
			}
			ld := m.Padded()
			twin := product1(m, cpu.Go, x)
			var first []float32
			for _, l := range levels()[1:] {
				y := product1(m, l, x)
				if first == nil {
					first = y
				}
				same(t, fmt.Sprintf("%v/%d: %v against avx2", f, k, l), y, first, 0)
				same(t, fmt.Sprintf("%v/%d: %v against go", f, k, l), y, twin, 4*float64(k)*0x1p-24)
			}
			for _, l := range levels() {
				whole := product1(m, l, x)
				for n := 1; n <= len(x); n++ {
					at := (n * 7) % (len(x) - n + 1)
					same(t, fmt.Sprintf("%v/%d: %v, %d columns from %d", f, k, l, n, at),
						product1(m, l, x[at:at+n]), whole[at*ld:(at+n)*ld], 0)
				}
				in, parts, tiles := input(m, l, x), make([]float32, len(x)*ld), make([]float32, len(x)*ld)
				for from := 0; from < m.Rows; {
					to := min(m.Rows, from+16*(1+r.IntN(7)))
					m.Mul(parts, ld, in, from, to)
					wide := padded(to) - from
					piece := make([]float32, len(x)*wide)
					m.MulTile(piece, wide, in, from, to)
					for c := range x {
						copy(tiles[c*ld+from:], piece[c*wide:][:wide])
					}
					from = to
				}
				same(t, fmt.Sprintf("%v/%d: %v by parts", f, k, l), parts, whole, 0)
				same(t, fmt.Sprintf("%v/%d: %v by tiles", f, k, l), tiles, whole, 0)
			}
		}
	}
}

// same compares outputs bit by bit, or within a bound.
func same(t *testing.T, what string, got, want []float32, bound float64) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(math.Abs(float64(got[i])-float64(want[i])) <= bound) {
			t.Fatalf("%s: output %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
