package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
)

// near reports whether got is within rel of want.
func near(got, want, rel float64) bool {
	return math.Abs(got-want) <= rel*math.Max(math.Abs(want), 1e-30)
}

func TestRMSNormOracle(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := 1; n <= 257; n++ {
			x, w, y := normal(r, n+n%8)[n%8:], normal(r, n), normal(r, n)
			var sum float64
			for _, v := range x {
				sum += float64(v) * float64(v)
			}
			inv := 1 / math.Sqrt(sum/float64(n)+1e-6)
			RMSNorm(y, x, w, 1e-6)
			for i := range y {
				if want := float64(x[i]) * inv * float64(w[i]); !near(float64(y[i]), want, 1e-6) {
					t.Fatalf("n %d, %d: got %v, want %v", n, i, y[i], want)
				}
			}
			RMSNorm(x, x, w, 1e-6) // in place
			if i := differ(x, y); i >= 0 {
				t.Fatalf("n %d, %d: in place %v, want %v", n, i, x[i], y[i])
			}
		}
	})
}

func TestSiLUOracle(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 1))
		for groups := range 33 {
			n, offset := 8*groups, groups%8
			act, gu := normal(r, n+offset)[offset:], normal(r, 2*n)
			for i := range gu {
				if i%16 < 8 {
					gu[i] *= float32(groups + i%41)
				}
			}
			SiLUMulGroups(act, gu)
			for i, got := range act {
				g, up := gu[i/8*16+i%8], float64(gu[i/8*16+8+i%8])
				x := float64(g)
				if want := x / (1 + math.Exp(-x)) * up; math.Abs(float64(got)-want) > 1e-36 && !near(float64(got), want, 6e-7) {
					t.Fatalf("silu(%v)*%v: got %v, want %v", g, up, got, want)
				}
			}
		}
		act := make([]float32, 8)
		SiLUMulGroups(act, []float32{-1e30, 1e30, 0, -200, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1})
		if act[0] != 0 || act[1] != 1e30 || act[2] != 0 || act[3] != 0 {
			t.Errorf("far out: %v, want 0 1e30 0 0", act[:4])
		}
	})
}

// Add, Scale and Rotate are the bits of package kernels.
func TestSameAsKernels(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 1))
		for n := range 258 {
			x, y := normal(r, n), normal(r, n)
			a, b := append([]float32(nil), x...), append([]float32(nil), x...)
			Add(a, y)
			kernels.Add(b, y)
			Scale(a, 0.3)
			kernels.Scale(b, 0.3)
			if i := differ(a, b); i >= 0 {
				t.Fatalf("n %d, %d: got %v, want %v", n, i, a[i], b[i])
			}
		}
		for _, dim := range []int{2, 6, 8, 32, 50, 64, 80, 128} {
			const pos = 7
			h := dim / 2
			cos, sin := make([]float32, h), make([]float32, h)
			table := kernels.NewRoPE(pos+1, dim, 10000)
			for i := range h { // the turned unit vectors are the table
				e := make([]float32, dim)
				e[i] = 1
				table.Apply(e, pos)
				cos[i], sin[i] = e[i], e[h+i]
			}
			x := normal(r, dim)
			want := append([]float32(nil), x...)
			Rotate(x, cos, sin)
			table.Apply(want, pos)
			if i := differ(x, want); i >= 0 {
				t.Fatalf("dim %d, %d: got %v, want %v", dim, i, x[i], want[i])
			}
		}
	})
}
