//go:build soak

package plan

import (
	"math"
	"slices"
	"testing"
)

// TestCountSimVectorsLong: with 20 million events the vectors are met within
// four standard errors, and those are below 5e-5.
func TestCountSimVectorsLong(t *testing.T) {
	for _, v := range readGiven(t) {
		exact, err := Chain(v.spec)
		if err != nil {
			t.Fatal(v.id, err)
		}
		r, err := CountSim(v.spec, 20_000_000, 2)
		if err != nil {
			t.Fatal(v.id, err)
		}
		t.Logf("%s: %.5f +- %.5f tokens/s, the chain says %.5f", v.id, r.Throughput, r.Error, exact.Throughput)
		if math.Abs(r.Throughput-exact.Throughput) > 4*r.Error || r.Error > 5e-5*exact.Throughput {
			t.Errorf("%s: %v +- %v tokens/s, the chain says %v", v.id, r.Throughput, r.Error, exact.Throughput)
		}
	}
}

// TestRegretOfTables: over p from 0.02 to 0.5, ratios from 2 to 12 and N from 2
// to 16, ten seeds each.
func TestRegretOfTables(t *testing.T) {
	truth, err := curves()
	if err != nil {
		t.Fatal(err)
	}
	var regret []float64
	for seed := range uint64(10) {
		for i, c := range grid() {
			tab, err := Tabulate(pair(16, c.p, 6, 6*c.ratio), 16, Options{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			for k, n := range sizes {
				regret = append(regret, 100*(1-truth[i][k][tab.Rows[n-1].B[1]-1]/slices.Max(truth[i][k])))
			}
		}
	}
	slices.Sort(regret)
	p95, most := regret[len(regret)*95/100], regret[len(regret)-1]
	t.Logf("regret over %d rows: mean %.3f %%, p95 %.2f %%, largest %.2f %%", len(regret), mean(regret), p95, most)
	if mean(regret) > .05 || p95 > .26 || most > 2 {
		t.Errorf("regret over %d rows: mean %.3f %%, p95 %.2f %%, largest %.2f %%", len(regret), mean(regret), p95, most)
	}
}

// TestNoHigherHillLong is TestNoHigherHill over more systems and N.
func TestNoHigherHillLong(t *testing.T) {
	for _, c := range []struct {
		n    int
		free bool
	}{{3, true}, {6, true}, {11, true}, {16, true}, {20, false}, {24, true}} {
		regrets(t, hilly(false), c.n, Options{FreeB0: c.free})
	}
	var two []shape
	for _, c := range hilly(false) {
		if len(c.spec.P) == 2 {
			two = append(two, c)
		}
	}
	regrets(t, two, 64, Options{FreeB0: true})
}
