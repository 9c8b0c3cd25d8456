package plan

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// hilly are systems of every kind whose thresholds make several hills: step times
// flat, in proportion to the batch, and with a little per row.
func hilly(few bool) []shape {
	grow := func(by int, base ...float64) (out []Latency) {
		little := []float64{.1, .5, .8}
		for m, ms := range base {
			out = append(out, Latency{ms, []float64{0, .02 * ms, little[m]}[by]})
		}
		return out
	}
	p, ratio := []float64{.05, .2, .35, .6}, []float64{2, 4.65, 12}
	if few {
		p, ratio = []float64{.2, .35}, []float64{4.65, 12}
	}
	var out []shape
	add := func(by int, name string, to [][]float64, ms ...float64) {
		out = append(out, shape{fmt.Sprintf("%s, growth %d", name, by), Spec{P: to, Step: grow(by, ms...)}})
	}
	for by := range 3 {
		if few && by == 1 {
			continue
		}
		for _, p := range p {
			for _, ratio := range ratio {
				add(by, fmt.Sprintf("R2R %v, ratio %v", p, ratio), [][]float64{{1 - p, p}, {1, 0}}, 6, 6*ratio)
			}
		}
		for _, x := range []float64{.4, .1} {
			add(by, fmt.Sprintf("R-Stitch %v", x), [][]float64{{1 - x, x}, {1.5 * x, 1 - 1.5*x}}, 6, 48)
		}
		me := []float64{.6, .25, .15}
		add(by, "ME", [][]float64{me, me, me}, 6, 12.3, 27.9)
		add(by, "cascade", [][]float64{{.5, .5, 0}, {.7, 0, .3}, {1, 0, 0}}, 6, 12.3, 48.3)
	}
	return out
}

// regrets compares what a search finds for n requests with all feasible vectors:
// the best few of short runs over all of them, and what was found, are run for
// long, with luck of its own. Losses are in percent. Where o has a vector to look
// around it is eager, a bad one.
func regrets(t *testing.T, all []shape, n int, o Options) (mean, most float64) {
	t.Helper()
	for _, c := range all {
		s := c.with(n)
		if o.Near != nil {
			o.Near = ones(len(s.P))
		}
		q, err := newSearch(s, o)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := q.screen(); err != nil {
			t.Fatal(c.name, err)
		}
		found, _, err := q.final(q)
		if err != nil {
			t.Fatal(c.name, err)
		}
		short, err := newSearch(s, Options{Method: ByCountSim, FreeB0: o.FreeB0, Seed: 99, Events: 2000})
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := short.each(short.vectors(1 << 20)); err != nil {
			t.Fatal(c.name, err)
		}
		long := short.brief(30_000)
		own, err := long.value(found)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, p := range short.ranked()[:min(3, len(short.points))] {
			if _, err := long.value(p.B); err != nil {
				t.Fatal(c.name, err)
			}
		}
		best := long.best()
		loss := 100 * (1 - own.Throughput/best.Throughput)
		mean, most = mean+loss/float64(len(all)), max(most, loss)
		if loss > .25 {
			t.Errorf("N = %d, %s: found B = %v with %.1f tokens/s, %v has %.1f, %.2f %% more", n, c.name, found, own.Throughput, best.B, best.Throughput, loss)
		}
	}
	t.Logf("N = %2d, B0 free %v, near a vector %v: regret over %d systems: mean %.3f %%, largest %.3f %%", n, o.FreeB0, o.Near != nil, len(all), mean, most)
	return mean, most
}

// TestNoHigherHill: no vector far from the one that is found is better, whether
// all are looked at or not.
func TestNoHigherHill(t *testing.T) {
	for _, c := range []struct {
		n int
		o Options
	}{{9, Options{FreeB0: true}}, {16, Options{}}} {
		if mean, _ := regrets(t, hilly(true), c.n, c.o); mean > .02 {
			t.Errorf("N = %d: the mean regret is %.3f %%", c.n, mean)
		}
	}
	two := hilly(true)[:2]
	if mean, _ := regrets(t, two, 32, Options{FreeB0: true}); mean > .05 {
		t.Errorf("N = 32: the mean regret is %.3f %%", mean)
	}
}

// TestHighestHill: systems where one model waiting for a few is better than none
// waiting, and another waiting for many is better than that.
func TestHighestHill(t *testing.T) {
	slope := pair(16, .35, 6, 27.9)
	slope.Step = []Latency{{6, .1}, {27.9, .5}}
	for _, c := range []struct {
		s    *Spec
		want float64
	}{
		{pair(32, .35, 6, 27.9), 1526.6}, // (1, 20); (3, 1) has 1467.7
		{slope, 664.9},                   // (2, 8); (1, 3) has 656.0
		{pair(1024, .35, 6, 27.9), 48_231},
	} {
		a, err := Best(c.s, Options{FreeB0: true, NoTails: true})
		if err != nil {
			t.Fatal(err)
		}
		if a.Throughput < .999*c.want {
			t.Errorf("N = %d: B* = %v has %.1f tokens/s, want %.1f", c.s.N, a.B, a.Throughput, c.want)
		}
	}
}

// TestNear: a search around a vector, a good one or a bad one, answers as one from
// nothing does, within noise.
func TestNear(t *testing.T) {
	const n = 16
	for _, c := range hilly(true)[4:8] {
		s := c.with(n)
		table, err := Tabulate(s, n, Options{})
		if err != nil {
			t.Fatal(c.name, err)
		}
		a, err := Best(s, Options{Near: table.Rows[n-1].B, NoTails: true})
		if err != nil {
			t.Fatal(c.name, err)
		}
		if a.P99 != 0 || a.Low > a.Throughput || a.High < a.Throughput {
			t.Errorf("%s: P99 %v, band %v to %v around %v", c.name, a.P99, a.Low, a.High, a.Throughput)
		}
	}
	if _, err := Best(pair(4, .35, 6, 27.9), Options{Near: []int{1, 2, 1}}); err == nil {
		t.Error("three thresholds for two models were accepted")
	}
	if mean, _ := regrets(t, hilly(true)[8:], n, Options{Near: []int{}}); mean > .02 {
		t.Errorf("the mean regret is %.3f %%", mean)
	}
}

// TestFluidSaysItsError: by itself and when asked to, the search at N = 1024 uses
// the fluid limit and says by how much it is off at B*.
func TestFluidSaysItsError(t *testing.T) {
	for _, o := range []Options{{NoTails: true}, {NoTails: true, Method: ByFluid, FreeB0: true}} {
		s := pair(1024, .35, 6, 27.9)
		a, err := Best(s, o)
		if err != nil {
			t.Fatal(err)
		}
		s.B = a.B
		f, err := Fluid(s)
		if err != nil {
			t.Fatal(err)
		}
		c, err := CountSim(s, 100_000, 5)
		if err != nil {
			t.Fatal(err)
		}
		said := -1.0
		for _, w := range a.Warnings {
			if _, after, ok := strings.Cut(w, "the search used the fluid limit, which is "); ok {
				if _, err := fmt.Sscanf(after, "%f %% off at B*", &said); err != nil {
					t.Fatalf("%q: %v", w, err)
				}
			}
		}
		if off := 100 * math.Abs(f.Throughput/c.Throughput-1); a.Method != ByFluid || math.Abs(said-off) > .1 {
			t.Errorf("by %s at B* = %v: %.2f %% off is said, it is %.2f %%; %q", a.Method, a.B, said, off, a.Warnings)
		}
		near(t, "throughput", a.Throughput, c.Throughput, 2e-3)
	}
}

// TestClimbWithBound: a bound that eager keeps is not refused because the climb
// went elsewhere.
func TestClimbWithBound(t *testing.T) {
	for _, s := range []*Spec{pair(40, .35, 6, 27.9), pair(80, .35, 6, 27.9)} {
		under := *s
		under.B = ones(2)
		eager, err := Follow(&under, followTokens, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Best(s, Options{MaxP99: eager.P99, FreeB0: true})
		if err != nil {
			t.Fatal(err)
		}
		if a.P99 > eager.P99 || a.Throughput < a.Eager.Throughput {
			t.Errorf("N = %d, P99 <= %v ms: B* = %v has %v and %v tokens/s, eager %v", s.N, eager.P99, a.B, a.P99, a.Throughput, a.Eager.Throughput)
		}
	}
}
