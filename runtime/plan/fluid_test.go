package plan

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fluidErrors compares the fluid limit with the count simulator at 13 thresholds
// from 1 to n: mean and largest relative error, and what the best of the 13 by
// the limit loses against the best by the simulator.
func fluidErrors(t testing.TB, n int, p float64, events int) (mean, most, regret float64) {
	const thresholds = 13
	s := pair(n, p, 6, 27.9)
	g, err := newStage(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	var best, bestSeen, top float64
	for i := range thresholds {
		b := []int{1, max(1, int(math.Round(float64(n*i)/(thresholds-1))))}
		f, err := g.fluid(s.Step, n, b)
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := g.throughput(n, b, events)
		if err != nil {
			t.Fatal(err)
		}
		off := math.Abs(f.Throughput/c - 1)
		mean, most, top = mean+off/thresholds, max(most, off), max(top, c)
		if f.Throughput > best {
			best, bestSeen = f.Throughput, c
		}
	}
	return mean, most, 1 - bestSeen/top
}

// TestFluidError states the error of the fluid limit and bounds it. The table in
// the documentation of Fluid is this one.
func TestFluidError(t *testing.T) {
	for _, c := range []struct {
		n                  int
		mean, most, regret float64
	}{
		{16, .025, .075, .010},
		{32, .013, .045, .005},
		{64, .010, .045, .007},
		{256, .009, .035, .003},
		{1024, .008, .040, .003},
	} {
		var mean, most, regret float64
		for _, p := range []float64{.1, .2, .35} {
			a, b, r := fluidErrors(t, c.n, p, 20_000)
			mean, most, regret = mean+a/3, max(most, b), max(regret, r)
		}
		t.Logf("N = %4d: mean error %.2f %%, largest %.2f %%, regret %.2f %%", c.n, 100*mean, 100*most, 100*regret)
		if mean > c.mean || most > c.most || regret > c.regret {
			t.Errorf("N = %d: mean error %.4f, largest %.4f, regret %.4f; want at most %v, %v, %v", c.n, mean, most, regret, c.mean, c.most, c.regret)
		}
	}
}

// TestFluidNeverDeadlocks where whole requests cannot: masses below each of the
// thresholds never hold everything.
func TestFluidNeverDeadlocks(t *testing.T) {
	all := shapes()
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "shape")]
		n := rapid.IntRange(1, 40).Draw(t, "n")
		b := ones(len(c.spec.P))
		for range n - 1 {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "model")]++
		}
		r, err := Fluid(c.with(n, b...))
		if err != nil {
			t.Fatal(err)
		}
		for m, busy := range r.Busy {
			if busy < 0 || busy > 1+1e-3 || r.MeanBatch[m] > float64(n) {
				t.Fatalf("model %d is busy %v of the time with %v rows in the mean", m, busy, r.MeanBatch[m])
			}
		}
	})
	if _, err := Fluid(pair(4, .35, 6, 27.9, 3, 4)); !errors.Is(err, ErrDeadlock) {
		t.Errorf("B = (3, 4) for 4 requests: %v", err)
	}
}

// TestFluidIsExactWithoutChance: where nothing is drawn masses are counts.
func TestFluidIsExactWithoutChance(t *testing.T) {
	s := pair(6, 1, 10, 30)
	f, err := Fluid(s)
	if err != nil {
		t.Fatal(err)
	}
	c, err := CountSim(s, 5000, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "throughput", f.Throughput, c.Throughput, 1e-3)
}

// TestFlow: the step rates of all methods keep X_j = sum_i X_i P_ij (TokenRouter
// paper, throughput model).
func TestFlow(t *testing.T) {
	for _, c := range shapes() {
		if c.spec.Send != nil {
			continue // P alone does not say how often a request stays
		}
		s := c.with(6)
		for name, solve := range map[string]func() (Result, error){
			"fluid":    func() (Result, error) { return Fluid(s) },
			"countsim": func() (Result, error) { return CountSim(s, 50_000, 3) },
			"follow":   func() (Result, error) { return Follow(s, 50_000, 3) },
		} {
			r, err := solve()
			if err != nil {
				t.Fatal(c.name, name, err)
			}
			tol := map[string]float64{"fluid": .01, "countsim": .003, "follow": .03}[name]
			for j := range s.P {
				in := 0.0
				for i := range s.P {
					in += r.Steps[i] * s.P[i][j]
				}
				near(t, c.name+" by "+name, in, r.Steps[j], tol)
			}
		}
	}
}

func TestFluidIsAFunction(t *testing.T) {
	one, err := Fluid(pair(64, .35, 6, 27.9, 1, 40))
	if err != nil {
		t.Fatal(err)
	}
	two, _ := Fluid(pair(64, .35, 6, 27.9, 1, 40))
	if d := cmp.Diff(one, two); d != "" {
		t.Error(d)
	}
}
