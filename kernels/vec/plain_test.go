package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
)

// off is the largest distance of two vectors over the largest value of want.
func off(got, want []float32) float64 {
	var most, worst float64
	for i, w := range want {
		most = math.Max(most, math.Abs(float64(w)))
		worst = math.Max(worst, math.Abs(float64(got[i])-float64(w)))
	}
	return worst / math.Max(most, 1e-30)
}

// Attention over pages of f32 is that of the plain kernels but for rounding: they
// go over a context in one piece, here it is cut every 256 positions.
func TestAttendPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 1))
		for _, dim := range []int{8, 16, 20, 32, 64, 80, 128} {
			for _, n := range []int{1, 15, 16, 17, 100, 256, 257, 600} {
				const heads = 3
				c := newContext(r, dim, F32, n)
				plain := kernels.NewPage(dim, PageLen)
				pages := make([][]kernels.Tile, len(c.pages))
				for p := range n {
					if p%PageLen == 0 {
						pages[p/PageLen] = make([]kernels.Tile, plain.Tiles())
					}
					plain.Put(pages[p/PageLen], p%PageLen, c.rows[p][0], c.rows[p][1])
				}
				q := normal(r, heads*dim)
				got, want := make([]float32, heads*dim), make([]float32, heads*dim)
				c.attend(got, q, heads, n)
				plain.Attend(want, q, pages, 0, heads, n, make([]float32, plain.ScratchLen(n)))
				if d := off(got, want); d > 4e-5 {
					t.Errorf("dim %d, %d positions: %v of the largest value away from the plain kernels", dim, n, d)
				}
			}
		}
	})
}

// Norm and activation are those of the plain kernels but for rounding.
func TestVectorsPlain(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(12, 1))
		for n := 1; n < 258; n++ {
			x, w := normal(r, n), normal(r, n)
			got, want := make([]float32, n), make([]float32, n)
			RMSNorm(got, x, w, 1e-6)
			kernels.RMSNorm(want, x, w, 1e-6)
			if d := off(got, want); d > 1e-6 {
				t.Errorf("norm of %d values: %v away", n, d)
			}
		}
		for n := 8; n < 258; n += 8 {
			gate, up := normal(r, n), normal(r, n)
			both := make([]float32, 0, 2*n)
			for i := 0; i < n; i += 8 {
				both = append(append(both, gate[i:i+8]...), up[i:i+8]...)
			}
			got, want := make([]float32, n), make([]float32, n)
			SiLUMulGroups(got, both)
			kernels.SiLUMul(want, gate, up)
			if d := off(got, want); d > 1e-6 {
				t.Errorf("activation of %d values: %v away", n, d)
			}
			Sigmoid(got, gate)
			for i, g := range gate {
				want[i] = float32(1 / (1 + math.Exp(-float64(g))))
			}
			if d := off(got, want); d > 1e-6 {
				t.Errorf("sigmoids of %d values: %v away", n, d)
			}
		}
	})
}
