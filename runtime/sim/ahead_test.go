package sim_test

import (
	"testing"

	"tokenrouter/runtime/event"
)

// Look-ahead is faster than the best fixed thresholds where those gain nothing:
// 6.0 / 12.3 ms, 8 requests, 3 % jitter, 0.2 ms messages. B* is eager there
// (§6.2; a simulation written apart gave 601.1 tok/s against 667.3).
func TestLookAheadBeatsFixed(t *testing.T) {
	const latency = ms / 5
	spec := r2r(8, 0.35, 6, 12.3)
	w := int64(2 * 12.3 * float64(ms))
	best := bestTable(t, 8, 0.35, 6, 12.3)[7]
	var fixed, ahead []float64
	for seed := range uint64(pairedSeeds) {
		rate := func(p event.Policy) float64 {
			cfg := of(t, spec, seed, pairedSeconds*second)
			cfg.Policy, cfg.Jitter, cfg.Latency = p, 0.03, latency
			return run(t, cfg).Rate
		}
		fixed = append(fixed, rate(event.Policy{Kind: event.Fixed, B: best, W: w}))
		ahead = append(ahead, rate(event.Policy{Kind: event.LookAhead, Forecast: forecast(spec, latency), W: w}))
	}
	gain, half := paired(fixed, ahead)
	t.Logf("B* = %v: fixed %.1f tok/s, look-ahead %.1f, %+.2f ± %.2f %% over %d paired seeds", best, mean(fixed), mean(ahead), gain, half, pairedSeeds)
	if gain-half < 8 {
		t.Errorf("look-ahead gains %.2f ± %.2f %%, want at least 8", gain, half)
	}
}
