package head_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/kernels/matmul"
)

// BenchmarkScore is the cost of one score, on the thread's own clock: other programs
// of a busy machine do not count.
func BenchmarkScore(b *testing.B) {
	hidden := []string{"hidden"}
	all := []string{"hidden", "embedding", "logits:100"}
	for _, c := range []struct {
		name    string
		spec    head.Spec
		formats []matmul.Format
	}{
		{"linear-32", head.Spec{Kind: "linear", Features: hidden, Hidden: 32}, []matmul.Format{matmul.F32}},
		{"linear-1024", head.Spec{Kind: "linear", Features: hidden, Hidden: 1024}, []matmul.Format{matmul.F32}},
		{"mlp-32x64", head.Spec{Kind: "mlp", Features: hidden, Hidden: 32, Widths: []int{64}}, []matmul.Format{matmul.F32}},
		{"mlp-1024x512", head.Spec{Kind: "mlp", Features: hidden, Hidden: 1024, Widths: []int{512}}, []matmul.Format{matmul.F32, matmul.BF16, matmul.Q8}},
		{"citer-1024", head.Spec{Kind: "citer", Features: hidden, Hidden: 1024}, []matmul.Format{matmul.F32, matmul.BF16, matmul.Q8}},
		{"r2r-1024", head.Spec{Kind: "r2r", Features: all, Hidden: 1024}, []matmul.Format{matmul.F32, matmul.BF16, matmul.Q8}},
	} {
		w := made(&c.spec, 1)
		in := input(&c.spec, rand.New(rand.NewPCG(1, 1)))
		for _, f := range c.formats {
			b.Run(fmt.Sprintf("%s/%s", c.name, f), func(b *testing.B) {
				h, err := head.NewWith(manifest(c.spec), w, head.Options{Weights: f})
				if err != nil {
					b.Fatal(err)
				}
				var ws head.Workspace
				if _, err := h.Score(&ws, in); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				before := threadTime()
				for b.Loop() {
					if _, err := h.Score(&ws, in); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(threadTime()-before)/float64(b.N), "ns-cpu/op")
				b.ReportMetric(float64(h.Bytes())/1e6, "MB")
			})
		}
	}
}

// BenchmarkScores is the cost of a score among several rows of a step.
func BenchmarkScores(b *testing.B) {
	spec := head.Spec{Kind: "r2r", Features: []string{"hidden", "embedding", "logits:100"}, Hidden: 1024}
	w := made(&spec, 1)
	in := make([]head.Input, 16)
	for i := range in {
		in[i] = *input(&spec, rand.New(rand.NewPCG(1, uint64(i))))
	}
	for _, f := range []matmul.Format{matmul.F32, matmul.BF16, matmul.Q8} {
		h, err := head.NewWith(manifest(spec), w, head.Options{Weights: f})
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range []int{1, 2, 4, 8, 16} {
			b.Run(fmt.Sprintf("r2r-1024/%s/rows=%d", f, n), func(b *testing.B) {
				var ws head.Workspace
				if _, err := h.Scores(&ws, in[:n]); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				before := threadTime()
				for b.Loop() {
					if _, err := h.Scores(&ws, in[:n]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(threadTime()-before)/float64(b.N*n), "ns-cpu/row")
			})
		}
	}
}
