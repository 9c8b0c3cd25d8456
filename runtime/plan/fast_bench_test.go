package plan

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// cell is a system of the grid on which re-planning is measured.
type cell struct{ p, ratio float64 }

func grid() []cell {
	var out []cell
	for _, p := range []float64{.02, .05, .1, .2, .35, .5} {
		for _, ratio := range []float64{2, 3, 4.65, 8, 12} {
			out = append(out, cell{p, ratio})
		}
	}
	return out
}

// sizes are the rows whose regret is measured.
var sizes = []int{2, 3, 4, 6, 8, 12, 16}

// curves are the throughputs of all thresholds B[1] = 1, 2, ... by cell and size,
// by the chain; above 100,000 states by two million events of the count
// simulator.
var curves = sync.OnceValues(func() (out [][][]float64, err error) {
	for _, c := range grid() {
		var rows [][]float64
		for _, n := range sizes {
			var curve []float64
			for b := 1; b <= n; b++ {
				s := pair(n, c.p, 6, 6*c.ratio, 1, b)
				r, err := ChainWithin(s, 100_000)
				if errors.Is(err, ErrTooLarge) {
					r, err = CountSim(s, 2_000_000, 99)
				}
				if err != nil {
					return nil, err
				}
				curve = append(curve, r.Throughput)
			}
			rows = append(rows, curve)
		}
		out = append(out, rows)
	}
	return out, nil
})

// BenchmarkReplan times a whole table B*(1..16), all that follows when the
// estimates of P or of a step time have moved, over 30 systems: p from 0.02 to
// 0.5, ratio of step times from 2 to 12. Regret is what the rows lose against the
// best threshold by the chain (210 rows).
func BenchmarkReplan(b *testing.B) {
	truth, err := curves()
	if err != nil {
		b.Fatal(err)
	}
	for _, events := range []int{0, 300, 3000} {
		name := fmt.Sprintf("events=%d", events)
		if events == 0 {
			name = "default"
		}
		b.Run(name, func(b *testing.B) {
			var ms, regret []float64
			for seed := uint64(0); b.Loop(); seed++ {
				for i, c := range grid() {
					start := time.Now()
					tab, err := Tabulate(pair(16, c.p, 6, 6*c.ratio), 16, Options{Events: events, Seed: seed})
					ms = append(ms, time.Since(start).Seconds()*1000)
					if err != nil {
						b.Fatal(err)
					}
					for k, n := range sizes {
						curve := truth[i][k]
						regret = append(regret, 100*(1-curve[tab.Rows[n-1].B[1]-1]/slices.Max(curve)))
					}
				}
			}
			quantiles(b, ms, "ms")
			quantiles(b, regret, "regret-%")
			b.ReportMetric(mean(regret), "mean-regret-%")
		})
	}
}

// BenchmarkOneRow times the search for one N from nothing, on the same grid.
func BenchmarkOneRow(b *testing.B) {
	for _, n := range []int{4, 16} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			var ms []float64
			for b.Loop() {
				for _, c := range grid() {
					start := time.Now()
					q, err := newSearch(pair(n, c.p, 6, 6*c.ratio), Options{Method: ByCountSim, Events: tableEvents})
					if err != nil {
						b.Fatal(err)
					}
					if err := q.screen(); err != nil {
						b.Fatal(err)
					}
					ms = append(ms, time.Since(start).Seconds()*1000)
				}
			}
			quantiles(b, ms, "ms")
		})
	}
}

// BenchmarkBest times a full answer: exact or long figures, tails, band, warnings.
func BenchmarkBest(b *testing.B) {
	for _, n := range []int{4, 8, 16, 64, 1024} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Best(pair(n, .35, 6, 27.9), Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBestNear times the answer that a running system records: around the
// row of its table, without the tails, over the grid with flat step times and with
// ones that grow.
func BenchmarkBestNear(b *testing.B) {
	for _, n := range []int{8, 16, 64} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			var ms []float64
			for b.Loop() {
				for i, c := range grid() {
					s := pair(n, c.p, 6, 6*c.ratio)
					if i%2 == 1 {
						s.Step = []Latency{{6, .1}, {6 * c.ratio, .5}}
					}
					tab, err := Tabulate(s, n, Options{})
					if err != nil {
						b.Fatal(err)
					}
					start := time.Now()
					if _, err := Best(s, Options{Near: tab.Rows[n-1].B, NoTails: true}); err != nil {
						b.Fatal(err)
					}
					ms = append(ms, time.Since(start).Seconds()*1000)
				}
			}
			quantiles(b, ms, "ms")
		})
	}
}

// BenchmarkTabulate times large tables.
func BenchmarkTabulate(b *testing.B) {
	for _, n := range []int{256, 1024} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Tabulate(pair(n, .35, 6, 27.9), n, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCountSim: the cost of an event does not depend on N, the error falls
// with it.
func BenchmarkCountSim(b *testing.B) {
	for _, n := range []int{4, 16, 1024} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			const events = 200_000
			var r Result
			for b.Loop() {
				var err error
				if r, err = CountSim(pair(n, .35, 6, 27.9, 1, 1+n/2), events, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1.1*events), "ns/event")
			b.ReportMetric(100*r.Error/r.Throughput, "SE-%")
		})
	}
}

// BenchmarkFluid states the error of the limit beside its cost: mean and largest
// over 13 thresholds and p = 0.1, 0.2, 0.35.
func BenchmarkFluid(b *testing.B) {
	for _, n := range []int{16, 32, 64, 256, 1024} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			var off, most, regret float64
			for _, p := range []float64{.1, .2, .35} {
				m, x, r := fluidErrors(b, n, p, 200_000)
				off, most, regret = off+m/3, max(most, x), max(regret, r)
			}
			for b.Loop() {
				if _, err := Fluid(pair(n, .35, 6, 27.9, 1, 1+n/2)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(100*off, "mean-error-%")
			b.ReportMetric(100*most, "max-error-%")
			b.ReportMetric(100*regret, "regret-%")
		})
	}
}

// BenchmarkFollow is the cost of a percentile of the time between two tokens.
func BenchmarkFollow(b *testing.B) {
	b.ReportAllocs()
	const commits = 100_000
	for b.Loop() {
		if _, err := Follow(pair(8, .35, 6, 27.9, 1, 5), commits, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1.2*commits), "ns/token")
}

func quantiles(b *testing.B, x []float64, unit string) {
	x = slices.Sorted(slices.Values(x))
	b.ReportMetric(x[len(x)/2], "p50-"+unit)
	b.ReportMetric(x[len(x)*95/100], "p95-"+unit)
	b.ReportMetric(x[len(x)-1], "max-"+unit)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
