package plan

import (
	"fmt"
	"testing"
)

// BenchmarkChain builds and solves one chain of the published setting.
func BenchmarkChain(b *testing.B) {
	for _, c := range []struct{ n, b1 int }{{4, 3}, {8, 5}, {8, 1}, {16, 10}, {16, 8}, {16, 1}, {32, 21}, {64, 42}, {256, 154}} {
		b.Run(fmt.Sprintf("N=%d,B1=%d", c.n, c.b1), func(b *testing.B) {
			s := pair(c.n, .35, 6, 27.9, 1, c.b1)
			b.ReportAllocs()
			for b.Loop() {
				solved(b, s)
			}
			b.ReportMetric(float64(solved(b, s).States), "states")
		})
	}
	b.Run("cascade,N=4", func(b *testing.B) {
		s := &Spec{N: 4, P: [][]float64{{.75, .25, 0}, {.9, 0, .1}, {1, 0, 0}}, Step: flat(6, 12.3, 48.3)}
		b.ReportAllocs()
		for b.Loop() {
			solved(b, s)
		}
		b.ReportMetric(float64(solved(b, s).States), "states")
	})
}

// BenchmarkChainSearch solves every threshold of the large model, as a search
// for B* does.
func BenchmarkChainSearch(b *testing.B) {
	for _, n := range []int{4, 8, 16} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for b1 := 1; b1 <= n; b1++ {
					solved(b, pair(n, .35, 6, 27.9, 1, b1))
				}
			}
		})
	}
}
