package ladder

import (
	"math"

	"tokenrouter/runtime/metrics"
)

// Figure is one number of a run. NaN is where a run has none.
type Figure struct {
	Key  string // stable
	Unit string
	of   func(*metrics.Summary) float64
}

// Keys of figures that are used by name.
const (
	Throughput = "tokens_per_s"
	UserMean   = "user_mean_tokens_per_s"
	UserP5     = "user_p5_tokens_per_s"
)

// figures gives all figures of runs whose subservers have the given roles.
func figures(roles []string) []Figure {
	out := []Figure{
		{Throughput, "tok/s", func(s *metrics.Summary) float64 { return s.TokensPerS }},
		{"peak_tokens_per_s", "tok/s", func(s *metrics.Summary) float64 { return s.PeakPerS }},
		{UserMean, "tok/s", func(s *metrics.Summary) float64 { return some(s.User.N, s.User.Mean) }},
		{"user_p50_tokens_per_s", "tok/s", func(s *metrics.Summary) float64 { return some(s.User.N, s.User.P50) }},
		{UserP5, "tok/s", func(s *metrics.Summary) float64 { return some(s.User.N, s.User.P5) }},
		{"large_share", "", func(s *metrics.Summary) float64 { return some(s.Tokens, s.LargeShare) }},
		{"switches_per_token", "", func(s *metrics.Summary) float64 { return some(s.Tokens, s.SwitchesPerToken) }},
		{"extended_per_token", "", func(s *metrics.Summary) float64 { return some(s.Tokens, per(s.Extended, s.Tokens)) }},
		{"recomputed_per_token", "", func(s *metrics.Summary) float64 { return some(s.Tokens, per(s.Recomputed, s.Tokens)) }},
		{"prefix_hits", "", func(s *metrics.Summary) float64 { return some(s.PromptTokens, per(s.CachedTokens, s.PromptTokens)) }},
		{"requests", "", func(s *metrics.Summary) float64 { return float64(s.Requests) }},
	}
	for _, l := range []struct {
		key string
		of  func(*metrics.Summary) *metrics.Quantiles
	}{
		{"ttft_ms", func(s *metrics.Summary) *metrics.Quantiles { return &s.TTFTms }},
		{"itl_ms", func(s *metrics.Summary) *metrics.Quantiles { return &s.ITLms }},
		{"latency_ms", func(s *metrics.Summary) *metrics.Quantiles { return &s.E2Ems }},
		{"queue_ms", func(s *metrics.Summary) *metrics.Quantiles { return &s.Queuems }},
	} {
		out = append(
			out,
			Figure{l.key + "_p50", "ms", func(s *metrics.Summary) float64 { return some(l.of(s).N, l.of(s).P50) }},
			Figure{l.key + "_p95", "ms", func(s *metrics.Summary) float64 { return some(l.of(s).N, l.of(s).P95) }},
			Figure{l.key + "_p99", "ms", func(s *metrics.Summary) float64 { return some(l.of(s).N, l.of(s).P99) }},
		)
	}
	for p, role := range roles {
		of := func(f func(*metrics.RoleSummary) float64) func(*metrics.Summary) float64 {
			return func(s *metrics.Summary) float64 {
				if p >= len(s.TokensByRole) {
					return math.NaN()
				}
				return f(&s.TokensByRole[p])
			}
		}
		out = append(
			out,
			Figure{"idle_" + role, "", of(func(r *metrics.RoleSummary) float64 { return r.Idle })},
			Figure{"mean_batch_" + role, "rows", of(func(r *metrics.RoleSummary) float64 { return some(r.Batches, r.MeanBatch) })},
		)
	}
	return out
}

// some is x, or NaN where it is of nothing.
func some(n int, x float64) float64 {
	if n == 0 {
		return math.NaN()
	}
	return x
}

func per(n, all int) float64 { return float64(n) / float64(max(all, 1)) }
