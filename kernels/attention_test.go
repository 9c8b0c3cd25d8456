package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// attend64 is attention of one head in float64 over plain rows.
func attend64(q []float32, keys, values [][]float32) []float64 {
	score := make([]float64, len(keys))
	top := math.Inf(-1)
	for p, k := range keys {
		score[p], _ = dot64(q, k)
		top = math.Max(top, score[p])
	}
	var sum float64
	for p := range score {
		score[p] = math.Exp(score[p] - top)
		sum += score[p]
	}
	out := make([]float64, len(q))
	for p, v := range values {
		for i, x := range v {
			out[i] += score[p] / sum * float64(x)
		}
	}
	return out
}

func TestAttendOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, dim := range []int{2, 6, 8, 32} {
		for heads := 1; heads <= 4; heads++ {
			c := NewCache(dim)
			var keys, values [][]float32
			for n := 1; n <= 70; n++ {
				k, v := normal(r, dim), normal(r, dim)
				keys, values = append(keys, k), append(values, v)
				if n > c.Room() {
					c.Grow(n + n%5)
				}
				c.Put(n-1, k, v)
				q, out := normal(r, heads*dim), normal(r, heads*dim)
				scratch := normal(r, c.ScratchLen())
				c.Attend(out, q, heads, n, scratch)
				for h := range heads {
					want := attend64(q[h*dim:][:dim], keys, values)
					for i := range want {
						if got := float64(out[h*dim+i]); math.Abs(got-want[i]) > 2e-5 {
							t.Fatalf("dim %d head %d of %d, %d positions, value %d: got %v, want %v", dim, h, heads, n, i, got, want[i])
						}
					}
				}
			}
		}
	}
}

// What lies behind the attended positions, and the room there is, cannot be
// seen: bitwise the same with NaN in both.
func TestAttendIgnoresRest(t *testing.T) {
	const dim, heads, n = 8, 3, 13
	r := rand.New(rand.NewPCG(4, 9))
	small, large := NewCache(dim), NewCache(dim)
	small.Grow(n)
	large.Grow(200)
	nan := make([]float32, dim)
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	for p := range 200 {
		large.Put(p, nan, nan)
	}
	for p := range n {
		k, v := normal(r, dim), normal(r, dim)
		small.Put(p, k, v)
		large.Put(p, k, v)
	}
	q := normal(r, heads*dim)
	a, b := make([]float32, heads*dim), make([]float32, heads*dim)
	small.Attend(a, q, heads, n, make([]float32, small.ScratchLen()))
	large.Attend(b, q, heads, n, make([]float32, large.ScratchLen()))
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			t.Fatalf("value %d: %v and %v", i, a[i], b[i])
		}
	}
	// A head alone and as one of a pair.
	for h := range heads {
		one := make([]float32, dim)
		small.Attend(one, q[h*dim:], 1, n, make([]float32, small.ScratchLen()))
		for i := range one {
			if math.Float32bits(one[i]) != math.Float32bits(a[h*dim+i]) {
				t.Fatalf("head %d, value %d: %v alone, %v together", h, i, one[i], a[h*dim+i])
			}
		}
	}
}
