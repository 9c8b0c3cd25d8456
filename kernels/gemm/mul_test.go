package gemm_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/gemm"
)

// values are numbers between -1 and 1 without meaning, the same each time.
func values(n int, seed uint32) []float32 {
	x := make([]float32, n)
	for i := range x {
		seed = seed*1664525 + 1013904223
		x[i] = float32(int32(seed)) / (1 << 31)
	}
	return x
}

// chain is an output as the package promises it.
func chain(a gemm.View, b []float32, ldb, i, j, k int, from float32) float32 {
	for t := range k {
		from = float32(math.FMA(float64(a.Data[i*a.Row+t*a.Col]), float64(b[t*ldb+j]), float64(from)))
	}
	return from
}

// TestMul holds every shape of tile and edge against the chain of its terms, on
// every level: exactly on assembly, within rounding in Go.
func TestMul(t *testing.T) {
	for level := cpu.Go; level <= cpu.Best(); level++ {
		t.Run(level.String(), func(t *testing.T) {
			defer cpu.Force(level)()
			for _, m := range []int{1, 3, 8, 15} {
				for _, n := range []int{1, 8, 15, 24, 33, 48, 72, 131} {
					for _, k := range []int{1, 5, 256, 515} {
						for mode := range 4 {
							check(t, m, n, k, mode&1 != 0, mode&2 != 0)
						}
					}
				}
			}
		})
	}
}

func check(t *testing.T, m, n, k int, transposed, add bool) {
	t.Helper()
	ldb, ldc := n+3, n+1
	a := gemm.Rows(values(m*(k+2), 1), k+2)
	if transposed {
		a = gemm.Transposed(values(k*(m+1), 1), m+1)
	}
	b := values(k*ldb, 2)
	c := values(m*ldc, 3)
	before := slices.Clone(c)
	gemm.Mul(m, n, k, a, b, ldb, c, ldc, add)
	for i := range m {
		for j := range ldc {
			want := before[i*ldc+j]
			if j < n {
				if !add {
					want = 0
				}
				want = chain(a, b, ldb, i, j, k, want)
			}
			if got := c[i*ldc+j]; got != want && !(cpu.Current() == cpu.Go && math.Abs(float64(got-want)) < 1e-5) {
				t.Fatalf("%d x %d over %d, transposed %v, add %v: element %d, %d is %v, want %v", m, n, k, transposed, add, i, j, got, want)
			}
		}
	}
}

// TestTranspose moves every value to its place and nothing else.
func TestTranspose(t *testing.T) {
	for level := cpu.Go; level <= cpu.Best(); level++ {
		restore := cpu.Force(level)
		for _, rows := range []int{1, 7, 8, 9, 24, 35} {
			for _, cols := range []int{1, 7, 8, 15, 16, 41} {
				lds, ldd := cols+2, rows+3
				src, dst := values(rows*lds, 1), values(cols*ldd, 2)
				before := slices.Clone(dst)
				gemm.Transpose(dst, ldd, src, lds, rows, cols)
				for j := range cols {
					for i := range ldd {
						want := before[j*ldd+i]
						if i < rows {
							want = src[i*lds+j]
						}
						if dst[j*ldd+i] != want {
							t.Fatalf("level %v, %d x %d: element %d, %d", level, rows, cols, j, i)
						}
					}
				}
			}
		}
		restore()
	}
}

// TestNothing: products without terms, rows or columns.
func TestNothing(t *testing.T) {
	c := []float32{1, 2, 3, 4}
	gemm.Mul(0, 2, 3, gemm.Rows(nil, 3), nil, 2, nil, 2, false)
	gemm.Mul(2, 0, 3, gemm.Rows(nil, 3), nil, 2, nil, 2, false)
	gemm.Mul(2, 2, 0, gemm.Rows(nil, 0), nil, 2, c, 2, true)
	if !slices.Equal(c, []float32{1, 2, 3, 4}) {
		t.Errorf("nothing was added, c is %v", c)
	}
	gemm.Mul(2, 1, 0, gemm.Rows(nil, 0), nil, 2, c, 2, false)
	if !slices.Equal(c, []float32{0, 2, 0, 4}) {
		t.Errorf("a sum of no terms is 0, c is %v", c)
	}
}

// TestShort: a slice that is too short stops the caller, not the kernel.
func TestShort(t *testing.T) {
	for i, f := range []func(){
		func() {
			gemm.Mul(8, 16, 4, gemm.Rows(make([]float32, 31), 4), make([]float32, 64), 16, make([]float32, 128), 16, false)
		},
		func() {
			gemm.Mul(8, 16, 4, gemm.Rows(make([]float32, 32), 4), make([]float32, 63), 16, make([]float32, 128), 16, false)
		},
		func() {
			gemm.Mul(8, 16, 4, gemm.Rows(make([]float32, 32), 4), make([]float32, 64), 16, make([]float32, 127), 16, false)
		},
		func() {
			gemm.Mul(8, 16, 4, gemm.Rows(make([]float32, 32), 4), make([]float32, 64), 15, make([]float32, 128), 16, false)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("case %d was computed", i)
				}
			}()
			f()
		}()
	}
}

// BenchmarkMul: the products of a training step of a model of width 128, and
// those of one head.
func BenchmarkMul(b *testing.B) {
	for _, s := range []struct {
		name    string
		m, n, k int
		turned  bool
	}{
		{"forward", 2048, 768, 128, false},
		{"inputs", 2048, 128, 768, false},
		{"weights", 768, 128, 2048, true},
		{"scores", 160, 160, 32, false},
		{"values", 160, 32, 160, false},
		{"small", 2048, 64, 32, false},
		{"small weights", 64, 32, 2048, true},
		{"small values", 160, 8, 160, false},
	} {
		b.Run(fmt.Sprintf("%s/%dx%dx%d", s.name, s.m, s.n, s.k), func(b *testing.B) {
			a := gemm.Rows(values(s.m*s.k, 1), s.k)
			if s.turned {
				a = gemm.Transposed(a.Data, s.m)
			}
			x, c := values(s.k*s.n, 2), make([]float32, s.m*s.n)
			b.ReportAllocs()
			for b.Loop() {
				gemm.Mul(s.m, s.n, s.k, a, x, s.n, c, s.n, false)
			}
			b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
