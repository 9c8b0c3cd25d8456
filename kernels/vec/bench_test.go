package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/mem"
)

// each benches f at every level, so that levels are compared in one run.
func each(b *testing.B, f func(b *testing.B)) {
	for l := cpu.Best(); l >= cpu.Go; l-- {
		b.Run(l.String(), func(b *testing.B) {
			defer cpu.Force(l)()
			b.ReportAllocs()
			f(b)
		})
	}
}

func BenchmarkVector(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 1024
	x, y, z, two := normal(r, n), normal(r, n), normal(r, n), normal(r, 2*n)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"Add", func() { Add(x, y) }},
		{"RMSNorm", func() { RMSNorm(z, y, x, 1e-6) }},
		{"SiLUMulGroups", func() { SiLUMulGroups(z, two) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			each(b, func(b *testing.B) {
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/value")
			})
		})
	}
}

// BenchmarkAttend measures a token's attention over one KV head. Multiply-adds
// count those of scores and of values.
func BenchmarkAttend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{64, 128} {
		for _, heads := range []int{1, 2, 4, 7} {
			for _, n := range []int{16, 256, 4096} {
				b.Run(fmt.Sprintf("dim=%d/heads=%d/positions=%d", dim, heads, n), func(b *testing.B) {
					c := newContext(r, dim, F16, n)
					q, out, scratch := normal(r, heads*dim), make([]float32, heads*dim), make([]float32, c.g.Scratch(heads))
					each(b, func(b *testing.B) {
						for b.Loop() {
							c.g.Attend(out, q, c.pages, before, heads, n, scratch)
						}
						b.ReportMetric(float64(2*heads*dim*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
					})
				})
			}
		}
	}
}

// BenchmarkAttendCold attends to contexts that no cache holds, as decoding does
// whose weights pass through the caches between two steps; read is what walking
// over the same memory takes.
func BenchmarkAttendCold(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 5))
	const dim, n, total = 128, 1024, 128 << 20
	all, err := mem.Alloc(total)
	if err != nil {
		b.Fatal(err)
	}
	defer mem.Free(all)
	g := NewPage(dim, F16)
	size := g.Bytes()
	for p := range PageLen {
		g.Put(all, p, normal(r, dim), normal(r, dim))
	}
	pages := make([][]byte, total/size)
	for i := range pages {
		pages[i] = all[i*size:][:size]
		if i > 0 {
			copy(pages[i], pages[0])
		}
	}
	gigabytes := func(b *testing.B, each int) {
		b.ReportMetric(float64(each)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
	}
	const used = n / PageLen
	b.Run("read", func(b *testing.B) {
		x := mem.Float32s(all)
		const part = used * 1 << 11
		for i := 0; b.Loop(); i++ {
			above(x[i*part%len(x):][:part], math.MaxFloat32)
		}
		gigabytes(b, 4*part)
	})
	for _, heads := range []int{1, 2, 4} {
		q, out, scratch := normal(r, heads*dim), make([]float32, heads*dim), make([]float32, g.Scratch(heads))
		b.Run(fmt.Sprintf("heads=%d", heads), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				g.Attend(out, q, pages[i*used%len(pages):][:used], 0, heads, n, scratch)
			}
			gigabytes(b, used*size)
		})
	}
}

// BenchmarkAttendRows compares rows of a prefill taken together with one at a
// time.
func BenchmarkAttendRows(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 3))
	const dim, heads, rows = 128, 2, 16
	for _, n := range []int{32, 512, 4096} {
		c := newContext(r, dim, F16, n)
		q, out := normal(r, rows*heads*dim), make([]float32, rows*heads*dim)
		scratch := make([]float32, c.g.Scratch(heads*rows))
		for _, chunk := range []int{1, 2, 4, 16} {
			b.Run(fmt.Sprintf("positions=%d/together=%d", n, chunk), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for row := 0; row < rows; row += chunk {
						at := row * heads * dim
						c.g.AttendRows(out[at:], heads*dim, q[at:], heads*dim, chunk, c.pages, before, heads, n-rows+row+1, scratch)
					}
				}
				b.ReportMetric(float64(2*heads*dim*n*rows)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
			})
		}
	}
}

func BenchmarkPut(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 4))
	const dim = 128
	g := NewPage(dim, F16)
	page, k, v := make([]byte, g.Bytes()), normal(r, dim), normal(r, dim)
	each(b, func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			g.Put(page, i%PageLen, k, v)
		}
	})
}

// BenchmarkSignals measures a row of logits with its largest tokens; kernels is
// the oracle.
func BenchmarkSignals(b *testing.B) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, v := range []int{424, 151936} {
		b.Run(fmt.Sprintf("V=%d", v), func(b *testing.B) {
			logits := normal(r, v)
			for i := range logits {
				logits[i] *= 3
			}
			parts := make([]Part, (v+Segment-1)/Segment)
			var top Top
			var s kernels.Signals
			each(b, func(b *testing.B) {
				for b.Loop() {
					top.Reset()
					for i := range parts {
						l := logits[i*Segment : min((i+1)*Segment, v)]
						MeasurePart(&parts[i], l)
						if top.Wants(parts[i].Max()) {
							top.Offer(int32(i*Segment), l)
						}
					}
					if err := Signals(&s, parts, &top, v); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("kernels", func(b *testing.B) {
				for b.Loop() {
					if err := kernels.Measure(&s, logits); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	logits := normal(r, 151936)
	for i := range logits {
		logits[i] *= 3
	}
	var s Sampler
	var old kernels.Sampler
	for _, c := range []struct {
		name string
		kernels.SampleParams
	}{
		{"temperature", kernels.SampleParams{Temperature: 0.8}},
		{"top_k=40", kernels.SampleParams{Temperature: 0.8, TopK: 40}},
		{"top_k=1000", kernels.SampleParams{Temperature: 0.8, TopK: 1000}},
		{"top_p=0.95", kernels.SampleParams{Temperature: 0.8, TopP: 0.95}},
		{"both", kernels.SampleParams{Temperature: 0.6, TopK: 20, TopP: 0.95}},
		{"greedy", kernels.SampleParams{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for name, f := range map[string]func(u float64) (int32, error){
				"kernels": func(u float64) (int32, error) { return old.Sample(logits, c.SampleParams, u) },
				"vec":     func(u float64) (int32, error) { return s.Sample(logits, c.SampleParams, u) },
			} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						if _, err := f(float64(i%97) / 97); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
