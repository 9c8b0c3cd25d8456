package matmul

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tokenrouter/kernels/cpu"
)

// odd are values at the edges of quantisation.
func odd(r *rand.Rand) float32 {
	v := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 1e-31, 0x1p-149, 1e-30, -9.9e-31, 3e38, -3.4e38, 1e-5,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
	return v[r.IntN(len(v))]
}

// putTwin is Put in Go, whatever the level that the columns are laid out for.
func putTwin(in *Input, col int, x []float32) {
	whole := make([]float32, in.wide)
	copy(whole, x)
	for t := range in.tiles {
		first, width := in.tile(t)
		if first <= col && col < first+width {
			in.format.put(in.data[first*in.column:][:width*in.column], width, col-first, 0, whole)
		}
	}
}

// Packing in assembly gives the bytes of packing in Go, whatever the values, in
// tiles of any width.
func TestPutLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, f := range allFormats {
		for n := 1; n <= 17; n++ {
			k := 1 + r.IntN(200)
			for _, l := range levels() {
				var in, twin Input
				in.reset(f, k, n, l)
				twin.reset(f, k, n, l)
				for c := range n {
					x := normal(r, k)
					for i := range x {
						switch r.IntN(40) {
						case 0:
							x[i] = odd(r)
						case 1:
							clear(x[i/32*32 : min(len(x), i/32*32+32)])
						}
					}
					in.Put(c, 0, x)
					putTwin(&twin, c, x)
				}
				if !bytes.Equal(in.data, twin.data) {
					t.Fatalf("%v, %d columns of %d, %v: assembly packs otherwise than Go", f, n, k, l)
				}
			}
		}
	}
}

// Parts that are put in any order by several goroutines, over what an earlier
// step has left, are the column.
func TestPutByParts(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, l := range levels() {
		for _, f := range allFormats {
			var in Input
			for range 30 {
				k, n := 1+r.IntN(300), 1+r.IntN(12)
				in.reset(f, k, n, l)
				var want Input
				want.reset(f, k, n, l)
				var all sync.WaitGroup
				for c := range n {
					x := normal(r, k)
					want.Put(c, 0, x)
					for from := 0; from < k; {
						at, end := from, min(k, from+32*(1+r.IntN(4)))
						all.Go(func() { in.Put(c, at, x[at:end]) })
						from = end
					}
				}
				all.Wait()
				if !bytes.Equal(in.data, want.data) {
					t.Fatalf("%v, %v, %d columns of %d: parts are not the whole", l, f, n, k)
				}
			}
		}
	}
}

// A value that is not finite is seen in every output of its column, and in no
// other.
func TestNotFinite(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, l := range levels() {
		for _, f := range allFormats {
			m := random(t, r, f, 20, 96)
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				x := [][]float32{normal(r, 96), normal(r, 96), normal(r, 96)}
				x[1][40] = float32(bad)
				y, ld := product1(m, l, x), m.Padded()
				for row := range m.Rows {
					if v := float64(y[ld+row]); !math.IsNaN(v) && !math.IsInf(v, 0) {
						t.Fatalf("%v, %v, %v: row %d is %v", l, f, bad, row, v)
					}
					if a, b := float64(y[row]), float64(y[2*ld+row]); math.IsNaN(a+b) || math.IsInf(a+b, 0) {
						t.Fatalf("%v, %v, %v: row %d of the neighbours is %v and %v", l, f, bad, row, a, b)
					}
				}
			}
		}
	}
}

// Nothing is allocated in a step.
func TestNoAllocations(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	for _, f := range allFormats {
		m, x, y := random(t, r, f, 100, 70), normal(r, 70), make([]float32, 5*112)
		var in Input
		step := func() {
			in.Reset(f, 70, 5)
			for c := range 5 {
				in.Put(c, 0, x)
			}
			m.Mul(y, 112, &in, 0, 100)
		}
		step()
		if n := testing.AllocsPerRun(10, step); n != 0 {
			t.Errorf("%v: %v allocations in a step", f, n)
		}
	}
}

// Zero columns and zero rows are products too.
func TestEmpty(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	for _, f := range allFormats {
		var in Input
		in.Reset(f, 0, 2)
		in.Put(0, 0, nil)
		m := random(t, r, f, 20, 0)
		m.SetRaw(19, nil)
		m.Row(nil, 19)
		y := normal(r, 2*32)
		m.Mul(y, 32, &in, 0, 20)
		for i, v := range y {
			if v != 0 {
				t.Errorf("%v: output %d of nothing is %v", f, i, v)
			}
		}
		in.Reset(f, 8, 0)
		random(t, r, f, 20, 8).Mul(nil, 32, &in, 0, 20)
		in.Reset(f, 8, 1)
		random(t, r, f, 0, 8).Mul(nil, 0, &in, 0, 0)
	}
}

// Claims are whole bands, cover few bytes and suffice for every worker.
func TestChunk(t *testing.T) {
	for _, f := range allFormats {
		for _, shape := range [][2]int{{32, 32}, {1280, 640}, {6144, 1024}, {1024, 12288}, {1, 1}} {
			m, err := New(f, shape[0], shape[1])
			if err != nil {
				t.Fatal(err)
			}
			for workers := range 9 {
				n := m.Chunk(workers)
				groups := m.Padded() / lanes
				switch {
				case n <= 0 || n%(lanes*m.band) != 0:
					t.Errorf("%v of %v, %d workers: a claim of %d rows", f, shape, workers, n)
				case n > lanes*m.band && n/lanes*m.stride > chunkBytes:
					t.Errorf("%v of %v: a claim of %d rows has %d bytes", f, shape, n, n/lanes*m.stride)
				case n > lanes*m.band && groups/(n/lanes) < 3*workers:
					t.Errorf("%v of %v: %d claims for %d workers", f, shape, groups/(n/lanes), workers)
				}
			}
			m.Free()
		}
	}
}

// Kernels of AVX2 use the registers of AVX2.
func TestRegisters(t *testing.T) {
	text, err := os.ReadFile("kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	beyond := regexp.MustCompile(`\b(Z[0-9]+|[XY](1[6-9]|2[0-9]|3[01])|K[0-7])\b|BCST`)
	names := 0
	for _, f := range strings.Split(string(text), "\nTEXT ·")[1:] {
		name, _, _ := strings.Cut(f, "(")
		if !strings.HasPrefix(name, "avx2") {
			continue
		}
		names++
		if used := beyond.FindString(f); used != "" {
			t.Errorf("%s uses %s", name, used)
		}
	}
	if names == 0 {
		t.Error("no kernel of AVX2 was found")
	}
}

// Where fma is fused, and where it is not, products are not rounded before they
// are added.
func TestFused(t *testing.T) {
	const x = 1 + 0x1p-12
	if got, want := fma(x, x, -1), float32(0x1p-11+0x1p-24); got != want {
		t.Errorf("x*x - 1 is %v, want %v", got, want)
	}
}

// A matrix made at one level is multiplied at any: rows that take turns in other
// numbers than a level's kernels have are the same rows.
func TestMadeElsewhere(t *testing.T) {
	for _, f := range allFormats {
		r := rand.New(rand.NewPCG(12, uint64(f)))
		x := make([][]float32, 7)
		for c := range x {
			x[c] = normal(r, 72)
		}
		rows := make([][]float32, 16*7+9)
		for i := range rows {
			rows[i] = normal(r, 72)
		}
		want := map[cpu.Level][]float32{}
		for _, made := range levels() {
			restore := cpu.Force(made)
			m, err := New(f, len(rows), 72)
			restore()
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				m.SetFloat(i, rows[i])
			}
			for _, l := range levels() {
				y := product1(m, l, x)
				if want[l] == nil {
					want[l] = y
				}
				same(t, fmt.Sprintf("%v made at %v, multiplied at %v", f, made, l), y, want[l], 0)
			}
			m.Free()
		}
	}
}
