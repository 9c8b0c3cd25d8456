//go:build soak

package frontier_test

import (
	"testing"

	"tokenrouter/runtime/frontier"
)

// The intervals keep what they promise: over many sets of problems of one world, what
// is true of the world lies within 95 % of them, give or take three standard errors
// and what a percentile bootstrap of 300 problems lacks.
func TestCoverage(t *testing.T) {
	const worlds, n = 600, 300
	truth := table(t, world{n: 200_000, seed: 1 << 40}.sweep(), frontier.Options{Against: []string{"random"}})
	hit := map[string]int{}
	count := func(what string, f frontier.Figure, want float64) {
		if f.Lo <= want && want <= f.Hi {
			hit[what]++
		}
	}
	for i := range worlds {
		tab := table(t, world{n: n, seed: uint64(i)}.sweep(), frontier.Options{Resamples: 500, Seed: uint64(i), Against: []string{"random"}})
		count("accuracy", tab.Rows[3].Accuracy, truth.Rows[3].Accuracy.Value)
		count("of large", tab.Rows[3].OfLarge, truth.Rows[3].OfLarge.Value)
		count("lead", tab.Rows[3].Lead, truth.Rows[3].Lead.Value)
		count("area", tab.Curves[0].Area, truth.Curves[0].Area.Value)
		count("APGR", tab.Curves[0].APGR, truth.Curves[0].APGR.Value)
		count("difference", tab.Versus[0].Difference, truth.Versus[0].Difference.Value)
	}
	if len(hit) != 6 {
		t.Errorf("figures that were never hit: %v", hit)
	}
	for what, k := range hit {
		part := float64(k) / worlds
		t.Logf("%s: %.3f", what, part)
		if part < 0.95-0.027-0.01 || part > 0.95+0.027 {
			t.Errorf("%s: %.3f of the intervals hold what is true", what, part)
		}
	}
}
