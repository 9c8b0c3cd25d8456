package kernels

import (
	"fmt"
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

// attend32 is attention of one head over plain rows, each sum in the order that
// the package promises: what pages are tested against, bit for bit.
func attend32(q []float32, keys, values [][]float32) []float32 {
	score := make([]float32, len(keys))
	top := float32(math.Inf(-1))
	for p, k := range keys {
		score[p] = dot(q, k)
		top = max(top, score[p])
	}
	var sum float64
	for p, s := range score {
		e := exp(float64(s - top))
		score[p] = float32(e)
		sum += e
	}
	out := make([]float32, len(q))
	for i := range out {
		for p, v := range values {
			out[i] += float32(score[p] * v[i])
		}
		out[i] *= float32(1 / sum)
	}
	return out
}

// arena is n pages with NaN everywhere, behind a head that is not of interest.
func arena(g Page, n int) [][]Tile {
	nan := float32(math.NaN())
	pages := make([][]Tile, n)
	for i := range pages {
		pages[i] = make([]Tile, other+g.Tiles())
		for j := range pages[i] {
			pages[i][j] = Tile{nan, nan, nan, nan}
		}
	}
	return pages
}

// other is the number of tiles before the head that is tested.
const other = 5

// Attention over pages of any size, in any place, is within rounding of float64
// and is the bits of plain rows, for every length. What lies behind the attended
// positions is NaN and cannot be seen, nor can a head see whether it is one of a
// pair (case G1).
func TestAttendOracle(t *testing.T) {
	const most = 70
	r := rand.New(rand.NewPCG(1, 9))
	for _, dim := range []int{2, 6, 8, 32} {
		for _, size := range []int{4, 8, 12, 16, 32, 128} {
			g := NewPage(dim, size)
			pages := arena(g, (most+size-1)/size)
			var keys, values [][]float32
			for n := 1; n <= most; n++ {
				k, v := normal(r, dim), normal(r, dim)
				keys, values = append(keys, k), append(values, v)
				g.Put(pages[(n-1)/size][other:], (n-1)%size, k, v)
				heads := 1 + n%4
				q, out := normal(r, heads*dim), normal(r, heads*dim)
				used := (n + size - 1) / size
				g.Attend(out, q, pages[:used:used], other, heads, n, normal(r, g.ScratchLen(n)))
				for h := range heads {
					got, head := out[h*dim:][:dim], q[h*dim:][:dim]
					exact, want := attend64(head, keys, values), attend32(head, keys, values)
					for i := range want {
						at := fmt.Sprintf("dim %d, pages of %d, head %d of %d, %d positions, value %d", dim, size, h, heads, n, i)
						if math.Abs(float64(got[i])-exact[i]) > 2e-5 {
							t.Fatalf("%s: got %v, want %v", at, got[i], exact[i])
						}
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("%s: got %v, plain rows give %v", at, got[i], want[i])
						}
					}
				}
			}
		}
	}
}

// A position is stored again, in the middle of what is there, and nothing else
// changes.
func TestPutOverwrites(t *testing.T) {
	const dim, size, n = 6, 16, 40
	r := rand.New(rand.NewPCG(4, 9))
	g := NewPage(dim, size)
	pages := arena(g, 3)
	keys, values := make([][]float32, n), make([][]float32, n)
	for p := range n {
		keys[p], values[p] = normal(r, dim), normal(r, dim)
		g.Put(pages[p/size][other:], p%size, keys[p], values[p])
	}
	for _, p := range []int{0, 15, 16, 22, 39} {
		keys[p], values[p] = normal(r, dim), normal(r, dim)
		g.Put(pages[p/size][other:], p%size, keys[p], values[p])
		q, out := normal(r, dim), make([]float32, dim)
		g.Attend(out, q, pages, other, 1, n, make([]float32, g.ScratchLen(n)))
		want := attend32(q, keys, values)
		for i := range want {
			if math.Float32bits(out[i]) != math.Float32bits(want[i]) {
				t.Fatalf("after position %d, value %d: got %v, want %v", p, i, out[i], want[i])
			}
		}
	}
	for _, page := range pages {
		for _, tile := range page[:other] {
			if tile[0] == tile[0] {
				t.Fatal("a position was stored in another head's tiles")
			}
		}
	}
}

// expSum repeats the body of exp: the same bits, at the edges as well.
func TestExpSum(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	x := normal(r, 1000)
	for i := range x {
		x[i] *= 30
	}
	const top = 90
	x = append(x, top, top-1e-30, top-0.5, -600, -618, -619, -1e30, float32(math.Inf(-1)))
	var want float64
	got := append([]float32(nil), x...)
	sum := expSum(got, top)
	for i, v := range x {
		e := exp(float64(v - top))
		want += e
		if math.Float32bits(got[i]) != math.Float32bits(float32(e)) {
			t.Fatalf("exp(%v - %v) is %v, want %v", v, top, got[i], float32(e))
		}
	}
	if sum != want {
		t.Errorf("the sum is %v, want %v", sum, want)
	}
	if got := []float32{float32(math.NaN())}; expSum(got, 0) == 0 || got[0] == got[0] {
		t.Errorf("NaN became %v", got[0])
	}
}

// BenchmarkAttend measures a token's attention of two query heads over one KV
// head, in pages of 16 positions that are not neighbours in memory.
func BenchmarkAttend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const heads, size = 2, 16
	for _, dim := range []int{8, 32, 128} {
		for _, n := range []int{20, 100, 500} {
			b.Run(fmt.Sprintf("dim=%d/positions=%d", dim, n), func(b *testing.B) {
				g := NewPage(dim, size)
				pages := arena(g, (n+size-1)/size)
				r.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })
				for p := range n {
					g.Put(pages[p/size][other:], p%size, normal(r, dim), normal(r, dim))
				}
				q, out, scratch := normal(r, heads*dim), make([]float32, heads*dim), make([]float32, g.ScratchLen(n))
				b.ReportAllocs()
				for b.Loop() {
					g.Attend(out, q, pages, other, heads, n, scratch)
				}
			})
		}
	}
}
