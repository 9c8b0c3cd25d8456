package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
)

// levels runs f at every level of kernels that the machine has.
func levels(t *testing.T, f func(t *testing.T)) {
	for l := cpu.Go; l <= cpu.Best(); l++ {
		t.Run(l.String(), func(t *testing.T) {
			defer cpu.Force(l)()
			f(t)
		})
	}
}

// alike runs f at every level and demands the same bits of what it returns.
func alike(t *testing.T, what string, f func() []float32) {
	t.Helper()
	var want []float32
	for l := cpu.Go; l <= cpu.Best(); l++ {
		restore := cpu.Force(l)
		got := f()
		restore()
		if l == cpu.Go {
			want = got
		} else if i := differ(got, want); i >= 0 {
			t.Fatalf("%s, value %d: %v at level %v, %v in Go", what, i, got[i], l, want[i])
		}
	}
}

// differ is the first place where a and b have other bits, -1 if none; one NaN
// is like another.
func differ(a, b []float32) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return i
		}
	}
	return -1
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// guarded is a copy of x that starts at an odd place of its memory, between
// guards that must not be written.
type guarded struct{ all, x []float32 }

const guard = -12345.5

func guarding(x []float32, offset int) guarded {
	g := guarded{all: make([]float32, offset+len(x)+9)}
	for i := range g.all {
		g.all[i] = guard
	}
	g.x = g.all[offset:][:len(x):len(x)]
	copy(g.x, x)
	return g
}

func (g guarded) check(t *testing.T) {
	t.Helper()
	n := len(g.all) - 9 - len(g.x)
	for i, v := range g.all {
		if (i < n || i >= n+len(g.x)) && v != guard {
			t.Fatalf("something was written at %d, outside of %d..%d", i, n, n+len(g.x))
		}
	}
}

// Every function of vectors gives the same bits at every level, for all lengths
// and odd offsets, and writes nothing else.
func TestVectorLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for n := range 258 {
		x, y, z := normal(r, n), normal(r, n), normal(r, n)
		for i := range x {
			x[i] *= float32(math.Exp(8 * r.NormFloat64()))
			if r.IntN(40) == 0 {
				x[i] = []float32{0, float32(math.Copysign(0, -1)), 1e-40, -1e-40, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(7)]
			}
		}
		offset := r.IntN(8)
		run := func(what string, f func(x, y, z []float32)) {
			t.Helper()
			alike(t, what, func() []float32 {
				a, b, c := guarding(x, offset), guarding(y, (offset+3)%8), guarding(z, (offset+6)%8)
				f(a.x, b.x, c.x)
				a.check(t)
				b.check(t)
				c.check(t)
				return append(append(a.x[:n:n], b.x...), c.x...)
			})
		}
		run("Add", func(x, y, _ []float32) { Add(x, y) })
		run("Scale", func(x, _, _ []float32) { Scale(x, 1.7) })
		run("RMSNorm", func(x, y, z []float32) { RMSNorm(z, x, y, 1e-6) })
		run("RMSNorm of sane values", func(x, y, z []float32) { RMSNorm(y, y, z, 1e-6) })
		run("SiLUMulGroups", func(x, y, _ []float32) { SiLUMulGroups(y[:len(x)/16*8], x[:len(x)/16*16]) })
		run("Sigmoid", func(x, y, _ []float32) { Sigmoid(y, x) })
		if n >= 16 {
			run("Exps of sane values", func(_, y, _ []float32) { Exps(y[:n/16*16]) })
		}
		run("Rotate", func(x, y, z []float32) { Rotate(x[:n/2*2], y[:n/2], z[:n/2]) })
		run("blend", func(x, y, _ []float32) { blend(x, y, 0.3, 0.7) })
	}
}

// A step of a model allocates nothing here, at any level.
func TestAllocations(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(12, 12))
		const dim, heads, n = 32, 3, 40
		c := newContext(r, dim, F16, n)
		q, out, scratch := normal(r, 2*heads*dim), make([]float32, 2*heads*dim), make([]float32, c.g.Scratch(2*heads))
		logits := normal(r, 1001)
		parts := make([]Part, 4)
		var s kernels.Signals
		var d Sampler
		if got := testing.AllocsPerRun(20, func() {
			RMSNorm(out, q, q, 1e-6)
			SiLUMulGroups(out[:heads*dim], q)
			c.put(5)
			c.g.AttendRows(out, heads*dim, q, heads*dim, 2, c.pages, before, heads, n-1, scratch)
			var top Top
			for i := range parts {
				l := logits[i*Segment : min((i+1)*Segment, len(logits))]
				MeasurePart(&parts[i], l)
				top.Offer(int32(i*Segment), l)
			}
			if err := Signals(&s, parts, &top, len(logits)); err != nil {
				t.Error(err)
			}
			for _, p := range []kernels.SampleParams{{}, {Temperature: 1}, {Temperature: 1, TopK: 20, TopP: 0.9}, {Temperature: 1, TopP: 0.9}} {
				if _, err := d.Sample(logits, p, 0.5); err != nil {
					t.Error(err)
				}
			}
		}); got != 0 {
			t.Errorf("%v allocations", got)
		}
	})
}
