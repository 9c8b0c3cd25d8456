//go:build soak

package main

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tokenrouter/runtime/plan"
)

// TestPaperValidation is the paper's own: with B0 = 1 the plan's B1 is the one of
// the highest throughput that is measured, for 2, 3 and 4 active requests. What is
// measured is the emulated clock: goroutines, Lua routers and the wall's time at
// the step times of a100-r2r, p = 0.35. Each point is the median of five seeds,
// 100 s each without the warm-up; the nine points of a seed run side by side, as
// they do little but wait.
func TestPaperValidation(t *testing.T) {
	const (
		p      = 0.35
		seeds  = 5
		warmUp = 5 * time.Second
		length = 105 * time.Second
	)
	type point struct{ n, b int }
	var points []point
	for _, n := range []int{2, 3, 4} {
		for b := 1; b <= n; b++ {
			points = append(points, point{n, b})
		}
	}
	rates := make([][]float64, len(points))
	for seed := 1; seed <= seeds; seed++ {
		var all sync.WaitGroup
		for i, at := range points {
			run := parsed(
				t, &runCmd{}, "--clock=emulated", fmt.Sprint("--p=", p), fmt.Sprint("-n", at.n), fmt.Sprint("--batch=fixed:1,", at.b),
				fmt.Sprint("--seed=", seed), "--no-record", "--routers="+t.TempDir(),
			)
			c, err := run.build(work{horizon: length})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				d, err := c.drive(t.Context(), drive{warmUp: warmUp})
				if err != nil || d.reason != "done" {
					t.Error(d.reason, err)
				}
				rates[i] = append(rates[i], d.summary.TokensPerS)
				all := float64(d.seen.tokens) / d.wall.Seconds()
				t.Logf("seed %d  N %d  B 1,%d  %6.2f tok/s in the window, %6.2f in %.2f s of the wall's time, %d late steps",
					seed, at.n, at.b, d.summary.TokensPerS, all, d.wall.Seconds(), d.late)
			})
		}
		all.Wait()
	}
	for _, n := range []int{2, 3, 4} {
		measured, predicted := make([]float64, n), make([]float64, n)
		for i, at := range points {
			if at.n != n {
				continue
			}
			slices.Sort(rates[i])
			measured[at.b-1] = rates[i][seeds/2]
			r, err := plan.Chain(&plan.Spec{
				N: n, P: [][]float64{{1 - p, p}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
				Step: []plan.Latency{{Base: 6}, {Base: 27.9}}, B: []int{1, at.b},
			})
			if err != nil {
				t.Fatal(err)
			}
			predicted[at.b-1] = r.Throughput
			off := 100 * (measured[at.b-1]/r.Throughput - 1)
			t.Logf("N %d  B 1,%d  measured %7.2f  predicted %7.2f  %+.2f %%", n, at.b, measured[at.b-1], r.Throughput, off)
			if off < -3 || off > 3 {
				t.Errorf("N %d, B 1,%d is %.2f %% off", n, at.b, off)
			}
		}
		if best(measured) != best(predicted) {
			t.Errorf("N %d: B1 = %d is measured to be best, %d predicted", n, best(measured)+1, best(predicted)+1)
		}
	}
}

// best is the index of the largest.
func best(xs []float64) int { return slices.Index(xs, slices.Max(xs)) }
