package sim_test

import (
	"testing"

	"tokenrouter/runtime/plan"
)

// What the plan predicts as B* is, on the real cores, within 1 % of the best
// threshold of the large model that trying all of them finds, over paired seeds:
// as exact as the plan takes the world, and with 3 % jitter and messages of
// 0.2 ms.
func TestPredictedBestIsBest(t *testing.T) {
	for n := 8; n <= predictMost; n *= 2 {
		spec := r2r(n, 0.35, 6, 27.9)
		predicted, err := plan.Best(&spec, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, world := range []struct {
			name    string
			jitter  float64
			latency int64
		}{{"exact", 0, 0}, {"3 % jitter, 0.2 ms", 0.03, ms / 5}} {
			rates := make([][]float64, n+1)
			best := 1
			for b := 1; b <= n; b++ {
				for seed := range uint64(predictSeeds) {
					cfg := of(t, r2r(n, 0.35, 6, 27.9, 1, b), seed, predictSeconds*second)
					cfg.Jitter, cfg.Latency = world.jitter, world.latency
					rates[b] = append(rates[b], run(t, cfg).Rate)
				}
				t.Logf("N=%d, %s: B1=%d %.2f tok/s", n, world.name, b, mean(rates[b]))
				if mean(rates[b]) > mean(rates[best]) {
					best = b
				}
			}
			star := predicted.B[1]
			off, half := paired(rates[best], rates[star])
			gain, ghalf := paired(rates[1], rates[star])
			t.Logf("N=%d, %s, %d paired seeds: predicted B*=%d (%.2f tok/s predicted) makes %.2f; the best of all is B1=%d, %.2f; off by %+.3f ± %.3f %%; against eager %+.2f ± %.2f %%",
				n, world.name, predictSeeds, star, predicted.Throughput, mean(rates[star]), best, mean(rates[best]), off, half, gain, ghalf)
			if predicted.B[0] != 1 || off < -1 {
				t.Errorf("N=%d, %s: B* = %v loses %.2f ± %.2f %% against B1 = %d", n, world.name, predicted.B, -off, half, best)
			}
		}
	}
}
