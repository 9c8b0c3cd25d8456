package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
)

// before is the number of bytes of a block before the head that is tested.
const before = 160

// context is the KV of one head in pages that are not neighbours, each behind
// another head, with NaN wherever nothing was put.
type context struct {
	g            Page
	pages        [][]byte
	keys, values [][]float32 // as the pages hold them
	rows         [][2][]float32
}

func newContext(r *rand.Rand, dim int, f KVFormat, n int) *context {
	c := &context{g: NewPage(dim, f), pages: make([][]byte, (n+PageLen-1)/PageLen)}
	for _, i := range r.Perm(len(c.pages)) {
		c.pages[i] = make([]byte, before+c.g.Bytes()+32)
		for j := range c.pages[i] {
			c.pages[i][j] = 0xff // NaN in both formats
		}
	}
	for p := range n {
		k, v := normal(r, dim), normal(r, dim)
		c.rows = append(c.rows, [2][]float32{k, v})
		c.put(p)
		c.keys, c.values = append(c.keys, stored(f, k)), append(c.values, stored(f, v))
	}
	return c
}

func (c *context) put(p int) {
	c.g.Put(c.pages[p/PageLen][before:], p%PageLen, c.rows[p][0], c.rows[p][1])
}

// stored is x as a page of the format holds it.
func stored(f KVFormat, x []float32) []float32 {
	y := append([]float32(nil), x...)
	if f == F16 {
		for i := range y {
			y[i] = kernels.F16(kernels.ToF16(y[i]))
		}
	}
	return y
}

func (c *context) attend(out, q []float32, heads, n int) {
	used := (n + PageLen - 1) / PageLen
	scratch := make([]float32, c.g.Scratch(heads))
	for i := range scratch {
		scratch[i] = float32(math.NaN())
	}
	c.g.Attend(out, q, c.pages[:used:used], before, heads, n, scratch)
}

// attend64 is attention of one head in float64 over plain rows.
func attend64(q []float32, keys, values [][]float32) []float64 {
	score := make([]float64, len(keys))
	top := math.Inf(-1)
	for p, k := range keys {
		for i, x := range k {
			score[p] += float64(q[i]) * float64(x)
		}
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

func formats(t *testing.T, f func(t *testing.T, kv KVFormat)) {
	for _, kv := range []KVFormat{F16, F32} {
		t.Run(kv.String(), func(t *testing.T) { f(t, kv) })
	}
}

// Attention is within rounding of float64 for every number of heads and odd
// dimensions; what lies behind the attended positions is NaN and cannot be seen.
func TestAttendOracle(t *testing.T) {
	levels(t, func(t *testing.T) {
		formats(t, func(t *testing.T, kv KVFormat) {
			r := rand.New(rand.NewPCG(1, 9))
			for i, dim := range []int{1, 2, 7, 8, 16, 30, 32, 48, 64, 80, 128, 136} {
				for j, n := range []int{1, 2, 15, 16, 17, 31, 33, 48, 65, 255, 256, 257, 272, 300, 511, 513} {
					if cpu.Current() == cpu.Go && (i+j)%5 != 0 {
						continue // slow
					}
					c := newContext(r, dim, kv, n)
					heads := 1 + (i+j)%9
					q, out := normal(r, heads*dim), normal(r, heads*dim)
					for i := range q {
						q[i] *= float32(1.5 / math.Sqrt(float64(dim)))
					}
					c.attend(out, q, heads, n)
					for h := range heads {
						want := attend64(q[h*dim:][:dim], c.keys, c.values)
						for i, w := range want {
							if got := out[h*dim+i]; !(math.Abs(float64(got)-w) <= 3e-6) {
								t.Fatalf("dim %d, head %d of %d, %d positions, value %d: got %v, want %v", dim, h, heads, n, i, got, w)
							}
						}
					}
				}
			}
		})
	})
}

// The bits of a head's output are the same alone and among any number of heads,
// in rows of any number, in other memory, and at every level.
func TestAttendBits(t *testing.T) {
	formats(t, func(t *testing.T, kv KVFormat) {
		r := rand.New(rand.NewPCG(2, 9))
		for _, dim := range []int{5, 8, 32, 64, 80, 128} {
			const heads, rows = 7, 21
			start := []int{0, 3, 240, 250, 505}[r.IntN(5)]
			n := start + rows
			c := newContext(r, dim, kv, n)
			q := normal(r, rows*heads*dim)
			want := make([]float32, len(q))
			for row := range rows { // one head of one position at a time
				for h := range heads {
					at := (row*heads + h) * dim
					c.attend(want[at:][:dim], q[at:][:dim], 1, start+row+1)
				}
			}
			same := func(what string, got []float32) {
				t.Helper()
				if i := differ(got, want); i >= 0 {
					t.Fatalf("%s, dim %d, from position %d, row %d, head %d, value %d: got %v, want %v", what, dim, start, i/dim/heads, i/dim%heads, i%dim, got[i], want[i])
				}
			}
			got := make([]float32, len(q))
			for row := range rows {
				at := row * heads * dim
				c.attend(got[at:][:heads*dim], q[at:][:heads*dim], heads, start+row+1)
			}
			same("heads together", got)
			for _, chunk := range []int{1, 2, 3, 5, 16, rows} {
				clear(got)
				for row := 0; row < rows; row += chunk {
					k, at := min(chunk, rows-row), row*heads*dim
					c.g.AttendRows(got[at:], heads*dim, q[at:], heads*dim, k, c.pages, before, heads, start+row+1, make([]float32, c.g.Scratch(heads*k)))
				}
				same(fmt.Sprintf("rows in chunks of %d", chunk), got)
			}
			for h := range heads { // one head of all rows, its values apart
				c.g.AttendRows(got[h*dim:], heads*dim, q[h*dim:], heads*dim, rows, c.pages, before, 1, start+1, make([]float32, c.g.Scratch(rows)))
			}
			same("one head of all rows", got)
			c.pages = append([][]byte(nil), c.pages...)
			for i, p := range c.pages {
				c.pages[i] = append(make([]byte, 0, len(p)+4096), p...)
			}
			for l := cpu.Go; l <= cpu.Best(); l++ {
				if l == cpu.Go && dim > 32 {
					continue // slow
				}
				restore := cpu.Force(l)
				c.g.AttendRows(got, heads*dim, q, heads*dim, rows, c.pages, before, heads, start+1, make([]float32, c.g.Scratch(heads*rows)))
				restore()
				same("moved, at level "+l.String(), got)
			}
		}
	})
}

// A position is stored again, in the middle of what is there, and no byte of
// another position or head changes.
func TestPut(t *testing.T) {
	levels(t, func(t *testing.T) {
		formats(t, func(t *testing.T, kv KVFormat) {
			r := rand.New(rand.NewPCG(4, 9))
			for _, dim := range []int{1, 6, 8, 16, 24, 64, 80} {
				c := newContext(r, dim, kv, 40)
				for _, p := range []int{0, 15, 16, 22, 39} {
					page := c.pages[p/PageLen]
					old := append([]byte(nil), page...)
					c.rows[p] = [2][]float32{normal(r, dim), normal(r, dim)}
					c.put(p)
					size := c.g.size()
					own := make(map[int]bool)
					for i := range dim {
						own[before+(i*PageLen+p%PageLen)*size] = true
					}
					for i := range dim {
						own[before+c.g.values()+(i/16*16*PageLen+p%PageLen*16+i%16)*size] = true
					}
					for i := range page {
						if page[i] != old[i] && !own[i&^(size-1)] {
							t.Fatalf("dim %d, position %d: byte %d of the page was changed, which is not its own", dim, p, i)
						}
					}
					c.keys[p], c.values[p] = stored(kv, c.rows[p][0]), stored(kv, c.rows[p][1])
					q, out := normal(r, dim), make([]float32, dim)
					c.attend(out, q, 1, 40)
					for i, w := range attend64(q, c.keys, c.values) {
						if !(math.Abs(float64(out[i])-w) <= 2e-5) {
							t.Fatalf("dim %d, position %d, value %d: got %v, want %v", dim, p, i, out[i], w)
						}
					}
				}
			}
		})
	})
}

// Rounding to half precision is that of the machine, at every length of a head,
// and what has a half comes back as it was.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		x := kernels.F16(uint16(h))
		if got := kernels.ToF16(x); got != uint16(h) && x == x {
			t.Fatalf("%#04x became %#04x on its way", h, got)
		}
	}
	r := rand.New(rand.NewPCG(5, 9))
	const dim = 4096
	for range 40 {
		x := make([]float32, dim)
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32()) // NaN and infinities too
			if i%2 == 0 {
				x[i] = anyFloat(r, 30)
			}
		}
		g := NewPage(dim, F16)
		var want []byte
		for l := cpu.Go; l <= cpu.Best(); l++ {
			restore := cpu.Force(l)
			page := make([]byte, g.Bytes())
			g.Put(page, 3, x, x)
			restore()
			if l == cpu.Go {
				want = page
				continue
			}
			for i := range page {
				if page[i] != want[i] {
					t.Fatalf("byte %d is %#x at level %v, %#x in Go", i, page[i], l, want[i])
				}
			}
		}
	}
	for _, c := range []struct {
		x    float32
		want uint16
	}{{65519, 0x7bff}, {65520, 0x7c00}, {1e30, 0x7c00}, {0x1p-25, 0}, {0x1.8p-25, 1}, {-0x1p-14, 0x8400}, {1 + 0x1p-11, 0x3c00}, {1 + 0x3p-11, 0x3c02}} {
		if got := kernels.ToF16(c.x); got != c.want {
			t.Errorf("%v is %#04x, want %#04x", c.x, got, c.want)
		}
	}
}

// Bad scores give NaN, never a hang or a silent number.
func TestAttendNaN(t *testing.T) {
	levels(t, func(t *testing.T) {
		const dim, n = 16, 20
		c := newContext(rand.New(rand.NewPCG(6, 9)), dim, F32, n)
		q, out := make([]float32, dim), make([]float32, dim)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			q[3] = bad
			c.attend(out, q, 1, n)
			for i, v := range out {
				if v == v {
					t.Errorf("value %d is %v with %v in the query", i, v, bad)
				}
			}
		}
	})
}
