package matmul

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
)

// BenchmarkMul measures a product at the level in use, in time of its thread:
// operations and weights a second, and how many times as fast it is as package
// kernels (float32 in Go) on the same shape in the same run.
func BenchmarkMul(b *testing.B) {
	for _, shape := range [][2]int{{32, 32}, {96, 96}, {640, 160}, {1536, 512}, {6144, 1024}} {
		rows, cols := shape[0], shape[1]
		for _, f := range allFormats {
			for _, n := range []int{1, 2, 3, 4, 8, 16} {
				b.Run(fmt.Sprintf("%dx%d/%v/columns=%d", rows, cols, f, n), func(b *testing.B) {
					r := rand.New(rand.NewPCG(1, 2))
					m := random(b, r, f, rows, cols)
					x, plain := make([][]float32, n), []float32(nil)
					for c := range x {
						x[c] = normal(r, cols)
						plain = append(plain, x[c]...)
					}
					in, y := input(m, cpu.Current(), x), make([]float32, n*m.Padded())
					b.ReportAllocs()
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					start := threadTime()
					for b.Loop() {
						m.Mul(y, m.Padded(), in, 0, rows)
					}
					each := float64(threadTime()-start) / float64(b.N)
					b.ReportMetric(each, "ns-cpu/op")
					ops := 2 * float64(rows) * float64(cols) * float64(n)
					b.ReportMetric(ops/each, "GOP/s")
					b.ReportMetric(float64(m.Bytes())/each, "GB/s")
					b.ReportMetric(reference(rows, cols, plain, n)/each, "x-kernels")
				})
			}
		}
	}
}

// reference is the time of the product in package kernels, in ns: the least of
// five runs of at least a tenth of a million steps.
func reference(rows, cols int, x []float32, n int) float64 {
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(i%17) - 8
	}
	m, y := kernels.NewMatrix(rows, cols, w), make([]float32, n*rows)
	repeat := max(1, 100_000/(rows*cols*n))
	least := time.Duration(1 << 62)
	for range 5 {
		start := threadTime()
		for range repeat {
			kernels.MatMul(y, &m, x, n)
		}
		least = min(least, threadTime()-start)
	}
	return float64(least.Nanoseconds()) / float64(repeat)
}

// BenchmarkPut measures packing a column, beside the product of one column with
// a square matrix.
func BenchmarkPut(b *testing.B) {
	for _, k := range []int{32, 512, 1024} {
		for _, f := range []Format{F32, Q8, Q4} {
			for _, n := range []int{1, 4, 8} {
				b.Run(fmt.Sprintf("%v/k=%d/columns=%d", f, k, n), func(b *testing.B) {
					x := normal(rand.New(rand.NewPCG(1, 2)), k)
					var in Input
					in.Reset(f, k, n)
					b.ReportAllocs()
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					start := threadTime()
					for b.Loop() {
						for c := range n {
							in.Put(c, 0, x)
						}
					}
					b.ReportMetric(float64(threadTime()-start)/float64(b.N*n*k), "ns-cpu/value")
				})
			}
		}
	}
}

// BenchmarkSet measures packing weights, as a model is loaded.
func BenchmarkSet(b *testing.B) {
	const rows, cols = 64, 1024
	for _, f := range allFormats {
		b.Run(f.String(), func(b *testing.B) {
			m, err := New(f, rows, cols)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Free()
			src := make([]byte, f.RawBytes(cols))
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start := threadTime()
			for b.Loop() {
				for r := range rows {
					m.SetRaw(r, src)
				}
			}
			b.ReportMetric(float64(b.N*rows*len(src))/float64(threadTime()-start), "GB/s-cpu")
		})
	}
}
