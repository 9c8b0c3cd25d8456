package metrics_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/metrics"
)

// The values follow from the formula by hand: for 8 of 10, z = 1.959964,
// (0.8 + 0.19207)/(1 + 0.38415) -+ 1.959964/1.38415 sqrt(0.016 + 0.0096037).
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		right, n int
		lo, hi   float64
	}{
		{8, 10, 0.490162, 0.943318},
		{0, 10, 0, 0.277533},
		{10, 10, 0.722467, 1},
		{0, 0, 0, 1},
		{113, 118, 0.904614, 0.981815},
	} {
		lo, hi := metrics.Wilson(c.right, c.n)
		near(t, "lo", lo, c.lo, 1e-4)
		near(t, "hi", hi, c.hi, 1e-4)
	}
}

func TestWilsonHoldsTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		lo, hi := metrics.Wilson(k, n)
		if p := float64(k) / float64(n); !(0 <= lo && lo <= p && p <= hi && hi <= 1) {
			t.Fatalf("Wilson(%d, %d) = %v, %v", k, n, lo, hi)
		}
		// What is not right is wrong: the interval mirrors.
		l2, h2 := metrics.Wilson(n-k, n)
		if math.Abs(l2-(1-hi)) > 1e-12 || math.Abs(h2-(1-lo)) > 1e-12 {
			t.Fatalf("Wilson(%d, %d) does not mirror: %v %v, %v %v", k, n, lo, hi, l2, h2)
		}
	})
}

// The textbook example of the nearest rank.
func TestPercentile(t *testing.T) {
	for p, want := range map[float64]float64{0.05: 15, 0.3: 20, 0.4: 20, 0.5: 35, 1: 50} {
		near(t, "percentile", metrics.Percentile([]float64{50, 15, 40, 20, 35}, p), want, 0)
	}
	near(t, "of nothing", metrics.Percentile(nil, 0.5), 0, 0)
	xs := make([]float64, 200)
	for i := range xs {
		xs[i] = float64(200 - i)
	}
	near(t, "p99 of 1..200", metrics.Percentile(xs, 0.99), 198, 0)
}

// a: mean 3, variance 2.5, n 5; b: mean 8, variance 10, n 5. se^2 = 0.5 + 2,
// df = 2.5^2/(0.25/4 + 4/4) = 5.8824, t(0.975, df) = 2.4586, half 3.8874.
func TestWelch(t *testing.T) {
	a, b := []float64{1, 2, 3, 4, 5}, []float64{4, 6, 8, 10, 12}
	diff, half := metrics.Welch(a, b)
	near(t, "diff", diff, 5, 1e-12)
	near(t, "half", half, 3.8874, 2e-3)

	// b/a: r = 8/3; se^2 = r^2*0.5/9 + 2/9 = 0.617284,
	// df = 0.617284^2/(0.395062^2/4 + 0.222222^2/4) = 7.4170, t = 2.3380.
	rel, half := metrics.WelchRatio(a, b)
	near(t, "rel", rel, 5.0/3, 1e-12)
	near(t, "half", half, 2.3380*math.Sqrt(0.617284), 2e-3)
}

func TestWelchEdges(t *testing.T) {
	if _, half := metrics.Welch([]float64{1}, []float64{1, 2}); !math.IsInf(half, 1) {
		t.Errorf("one sample gives ± %v", half)
	}
	if _, half := metrics.WelchRatio(nil, []float64{1, 2}); !math.IsInf(half, 1) {
		t.Errorf("no sample gives ± %v", half)
	}
	if _, half := metrics.WelchRatio([]float64{0, 0}, []float64{1, 2}); !math.IsInf(half, 1) {
		t.Errorf("a ratio to 0 gives ± %v", half)
	}
	rel, half := metrics.WelchRatio([]float64{10, 10}, []float64{12, 12, 12})
	near(t, "rel of constants", rel, 0.2, 1e-12)
	near(t, "half of constants", half, 0, 0)
}

// Scaling both sides leaves the relative change and its interval alone.
func TestWelchRatioHasNoUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SliceOfN(rapid.Float64Range(1, 100), 2, 20)
		a, b := side.Draw(t, "a"), side.Draw(t, "b")
		k := rapid.Float64Range(0.01, 1000).Draw(t, "k")
		r1, h1 := metrics.WelchRatio(a, b)
		scale := func(xs []float64) []float64 {
			out := slices.Clone(xs)
			for i := range out {
				out[i] *= k
			}
			return out
		}
		r2, h2 := metrics.WelchRatio(scale(a), scale(b))
		if math.Abs(r1-r2) > 1e-6*(1+math.Abs(r1)) || math.Abs(h1-h2) > 1e-6*(1+h1) {
			t.Fatalf("%v ± %v becomes %v ± %v", r1, h1, r2, h2)
		}
	})
}

// Differences 1, 2, 3 around a common level: mean 2, s = 1, t(0.975, 2) = 4.302653.
func TestMeanInterval(t *testing.T) {
	mean, half := metrics.MeanInterval([]float64{1, 2, 3})
	near(t, "mean", mean, 2, 1e-12)
	near(t, "half", half, 4.302653/math.Sqrt(3), 1e-5)
	if _, half := metrics.MeanInterval([]float64{7}); !math.IsInf(half, 1) {
		t.Errorf("one value gives ± %v", half)
	}
}

// Logs of the ratios are ln 2 - 0.1, ln 2, ln 2 + 0.1: s = 0.1, half
// 4.302653 x 0.1/sqrt 3 = 0.248414. The pairs themselves lie far apart.
func TestPairedRatio(t *testing.T) {
	a := []float64{1, 50, 4000, 0}
	b := []float64{2 * math.Exp(-0.1), 100, 8000 * math.Exp(0.1), 5}
	ratio, lo, hi, n := metrics.PairedRatio(a, b)
	same(t, "pairs", n, 3)
	near(t, "ratio", ratio, 2, 1e-12)
	near(t, "lo", lo, 2*math.Exp(-0.248414), 1e-5)
	near(t, "hi", hi, 2*math.Exp(0.248414), 1e-5)
	ratio, lo, hi, _ = metrics.PairedRatio(a[:1], b[:1])
	near(t, "ratio of one", ratio, 2*math.Exp(-0.1), 1e-12)
	if lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("one pair gives %v to %v", lo, hi)
	}
	if ratio, _, _, n := metrics.PairedRatio(nil, b); n != 0 || !math.IsNaN(ratio) {
		t.Errorf("no pair gives %v of %d", ratio, n)
	}
}

// The other way round it is the inverse, and nothing has a unit.
func TestPairedRatioMirrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		side := rapid.SliceOfN(rapid.Float64Range(1, 100), n, n)
		a, b := side.Draw(t, "a"), side.Draw(t, "b")
		r, lo, hi, _ := metrics.PairedRatio(a, b)
		back, l2, h2, _ := metrics.PairedRatio(b, a)
		if math.Abs(r*back-1) > 1e-9 || math.Abs(lo*h2-1) > 1e-9 || math.Abs(hi*l2-1) > 1e-9 || lo > r || r > hi {
			t.Fatalf("%v (%v to %v) against %v (%v to %v)", r, lo, hi, back, l2, h2)
		}
	})
}
