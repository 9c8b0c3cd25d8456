package workload

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// made unwraps a constructor of arrivals.
func made(t testing.TB) func(Arrivals, error) Arrivals {
	return func(a Arrivals, err error) Arrivals {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// seconds gives the first n offsets.
func seconds(t testing.TB, a Arrivals, n int) []float64 {
	t.Helper()
	out := make([]float64, n)
	for i := range out {
		at, ok := a.Next()
		if !ok {
			t.Fatalf("%s ends after %d arrivals", a, i)
		}
		out[i] = at.Seconds()
	}
	return out
}

// dispersion is the index of dispersion of counts over windows of w seconds:
// their variance over their mean.
func dispersion(times []float64, w float64) (idc float64, windows int) {
	windows = int(times[len(times)-1] / w)
	counts := make([]float64, windows)
	for _, at := range times {
		if k := int(at / w); k < windows {
			counts[k]++
		}
	}
	m, v := moments(counts)
	return v / m, windows
}

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x)-1)
}

func gapsOf(times []float64) []float64 {
	gaps := make([]float64, len(times))
	before := 0.0
	for i, at := range times {
		gaps[i], before = at-before, at
	}
	return gaps
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if off := got/want - 1; math.Abs(off) > tolerance || math.IsNaN(off) {
		t.Errorf("%s is %.5g, want %.5g: %+.2f %% off", what, got, want, 100*off)
	}
}

const (
	rateWithin       = 0.01
	dispersionWithin = 0.05
)

// A Poisson process has the asked rate, and counts whose variance is their mean
// in windows of any length; so it has no memory.
func TestPoissonRateAndDispersion(t *testing.T) {
	for seed := range uint64(statSeeds) {
		times := seconds(t, made(t)(Poisson(seed, 8)), statArrivals)
		near(t, "rate", float64(len(times))/times[len(times)-1], 8, rateWithin)
		for _, w := range []float64{0.05, 0.5, 2, statWindow} {
			idc, _ := dispersion(times, w)
			near(t, fmt.Sprintf("seed %d: IDC(%gs)", seed, w), idc, 1, dispersionWithin)
		}
	}
}

// Gamma gaps have the asked mean and coefficient of variation; over long windows
// the index of dispersion comes to cv^2 + (1-cv^4)/(6 rate w), Cox, "Renewal
// Theory" (1962), section 4.5.
func TestGammaRateAndDispersion(t *testing.T) {
	const rate = 8
	for seed := range uint64(statSeeds) {
		for _, cv := range []float64{0.3, 1, 2, 3} {
			times := seconds(t, made(t)(Gamma(seed, rate, cv)), statArrivals)
			near(t, fmt.Sprintf("cv %g: rate", cv), float64(len(times))/times[len(times)-1], rate, rateWithin)
			mean, variance := moments(gapsOf(times))
			near(t, "cv", math.Sqrt(variance)/mean, cv, dispersionWithin)
			w := statWindow
			idc, _ := dispersion(times, w)
			theory := cv*cv + (1-math.Pow(cv, 4))/(6*rate*w)
			near(t, fmt.Sprintf("seed %d, cv %g: IDC(%gs)", seed, cv, w), idc, theory, dispersionWithin)
		}
	}
}

// mmppIDC is the index of dispersion of counts of a stationary two-state process.
func mmppIDC(s MMPPSpec, w float64) float64 {
	low, high := s.Rates()
	tc := s.Correlation.Seconds()
	x := w / tc
	return 1 + 2*s.High*(1-s.High)*(high-low)*(high-low)*tc/s.Rate*(1-(1-math.Exp(-x))/x)
}

func TestMMPPRateAndDispersion(t *testing.T) {
	for _, s := range []MMPPSpec{
		{Rate: 8, Ratio: 3, High: 0.2, Correlation: 2 * time.Second},
		{Rate: 8, Ratio: 6, High: 0.2, Correlation: 2 * time.Second},
		{Rate: 20, Ratio: 10, High: 0.5, Correlation: 500 * time.Millisecond},
	} {
		for seed := range uint64(statSeeds) {
			times := seconds(t, made(t)(MMPP(seed, s)), statArrivals)
			near(t, fmt.Sprintf("%+v: rate", s), float64(len(times))/times[len(times)-1], s.Rate, rateWithin)
			for _, w := range []float64{0.1, 0.5, 1, 2, statWindow} {
				idc, _ := dispersion(times, w)
				near(t, fmt.Sprintf("%+v, seed %d: IDC(%gs)", s, seed, w), idc, mmppIDC(s, w), dispersionWithin)
			}
		}
	}
}

// The process is stationary from its first moment: among many seeds the high
// state is first as often as it is later, so early windows hold as much as any.
func TestMMPPStartsStationary(t *testing.T) {
	s := MMPPSpec{Rate: 10, Ratio: 6, High: 0.2, Correlation: 4 * time.Second}
	const runs = 20_000
	high, early := 0, 0
	for seed := range uint64(runs) {
		a := made(t)(MMPP(seed, s))
		high += a.(*mmpp).state
		for at, ok := a.Next(); ok && at < time.Second; at, ok = a.Next() {
			early++
		}
	}
	deviation := math.Sqrt(runs * s.High * (1 - s.High))
	if off := float64(high) - runs*s.High; math.Abs(off) > 4*deviation {
		t.Errorf("%d of %d runs begin in the high state, want a share of %g", high, runs, s.High)
	}
	deviation = math.Sqrt(runs * s.Rate * mmppIDC(s, 1))
	if off := float64(early) - runs*s.Rate; math.Abs(off) > 4*deviation {
		t.Errorf("%d arrivals in the first second of %d runs, want %g", early, runs, runs*s.Rate)
	}
}

// With equal rates the state says nothing, and the process is Poisson.
func TestMMPPOfRatioOneIsPoisson(t *testing.T) {
	times := seconds(t, made(t)(MMPP(3, MMPPSpec{Rate: 8, Ratio: 1, High: 0.3, Correlation: time.Second})), 400_000)
	if d := distance(gapsOf(times), func(x float64) float64 { return 1 - math.Exp(-8*x) }); d > kolmogorov(len(times)) {
		t.Errorf("gaps are %.5f from the exponential law", d)
	}
}

// distance is that of Kolmogorov and Smirnov between a sample and a law.
func distance(sample []float64, law func(float64) float64) (d float64) {
	x := slices.Sorted(slices.Values(sample))
	n := float64(len(x))
	for i, v := range x {
		f := law(v)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d
}

// kolmogorov is the distance that a sample of n exceeds once in 1,000 times.
func kolmogorov(n int) float64 { return 1.95 / math.Sqrt(float64(n)) }

// The whole law of the gaps, where it has a closed form: shapes 1/2, 1 and 2, so
// on both sides of the shape at which the method of drawing changes.
func TestGapLaws(t *testing.T) {
	const n = 300_000
	for name, c := range map[string]struct {
		cv  float64
		law func(x float64) float64 // of gaps with mean 1
	}{
		"shape 1/2": {math.Sqrt2, func(x float64) float64 { return math.Erf(math.Sqrt(x / 2)) }},
		"shape 1":   {1, func(x float64) float64 { return 1 - math.Exp(-x) }},
		"shape 2":   {1 / math.Sqrt2, func(x float64) float64 { return 1 - math.Exp(-2*x)*(1+2*x) }},
	} {
		gaps := gapsOf(seconds(t, made(t)(Gamma(11, 1, c.cv)), n))
		if d := distance(gaps, c.law); d > kolmogorov(n) {
			t.Errorf("%s: gaps are %.5f from their law", name, d)
		}
		// Gaps of a renewal process do not know one another.
		mean, variance := moments(gaps)
		var joint float64
		for i := range n - 1 {
			joint += (gaps[i] - mean) * (gaps[i+1] - mean)
		}
		if r := joint / (n - 1) / variance; math.Abs(r) > 4/math.Sqrt(n) {
			t.Errorf("%s: neighbouring gaps correlate by %.4f", name, r)
		}
	}
}

func TestUniformIsExact(t *testing.T) {
	a := made(t)(Uniform(3))
	for i := 1; i <= 100_000; i++ {
		at, ok := a.Next()
		if want := time.Duration(float64(i) / 3 * 1e9); !ok || at != want {
			t.Fatalf("arrival %d at %s, want %s", i, at, want)
		}
	}
}

func TestArrivalsRefuse(t *testing.T) {
	good := MMPPSpec{Rate: 8, Ratio: 3, High: 0.2, Correlation: time.Second}
	spoil := func(f func(*MMPPSpec)) MMPPSpec {
		s := good
		f(&s)
		return s
	}
	nan := math.NaN()
	for name, err := range map[string]error{
		"rate 0":           second(Poisson(1, 0)),
		"rate -1":          second(Uniform(-1)),
		"rate NaN":         second(Poisson(1, nan)),
		"rate too high":    second(Gamma(1, 1e6, 1)),
		"cv 0":             second(Gamma(1, 1, 0)),
		"cv NaN":           second(Gamma(1, 1, nan)),
		"cv too high":      second(Gamma(1, 1, 11)),
		"ratio":            second(MMPP(1, spoil(func(s *MMPPSpec) { s.Ratio = 0.5 }))),
		"ratio NaN":        second(MMPP(1, spoil(func(s *MMPPSpec) { s.Ratio = nan }))),
		"high 0":           second(MMPP(1, spoil(func(s *MMPPSpec) { s.High = 0 }))),
		"high 1":           second(MMPP(1, spoil(func(s *MMPPSpec) { s.High = 1 }))),
		"correlation":      second(MMPP(1, spoil(func(s *MMPPSpec) { s.Correlation = 0 }))),
		"too many changes": second(MMPP(1, spoil(func(s *MMPPSpec) { s.Rate, s.Correlation = 0.01, time.Millisecond }))),
		"mmpp rate":        second(MMPP(1, spoil(func(s *MMPPSpec) { s.Rate = nan }))),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func second(_ Arrivals, err error) error { return err }

// Arrivals of any form rise, and are a function of form and seed.
func TestArrivalsRiseAndRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(minRate, maxRate).Draw(t, "rate")
		form := rapid.SampledFrom([]string{
			fmt.Sprintf("poisson:%g", rate),
			fmt.Sprintf("uniform:%g", rate),
			fmt.Sprintf("gamma:%g,cv=%g", rate, rapid.Float64Range(minCV, maxCV).Draw(t, "cv")),
			fmt.Sprintf("mmpp:%g,r=%g,h=%g,tc=%s", rate, rapid.Float64Range(1, 100).Draw(t, "r"),
				rapid.Float64Range(0.001, 0.999).Draw(t, "h"), time.Duration(max(1e6, 2e9*minStay/rate)+float64(rapid.Int64Range(0, 1e12).Draw(t, "tc")))),
		}).Draw(t, "form")
		seed := rapid.Uint64().Draw(t, "seed")
		a, err := ParseArrivals(form, seed)
		if err != nil {
			t.Fatal(err)
		}
		if a.String() != form || a.Rate() != rate {
			t.Fatalf("%s became %s at %g/s", form, a, a.Rate())
		}
		b, err := ParseArrivals(a.String(), seed)
		if err != nil {
			t.Fatal(err)
		}
		before := time.Duration(0)
		for i := range 50 {
			at, ok := a.Next()
			again, ok2 := b.Next()
			if at != again || ok != ok2 {
				t.Fatalf("arrival %d of %s at %s, then at %s", i, form, at, again)
			}
			if !ok {
				break
			}
			if at < before {
				t.Fatalf("arrival %d of %s at %s comes before %s", i, form, at, before)
			}
			before = at
		}
	})
}

// A stream that leaves the range of a Duration ends instead.
func TestArrivalsEnd(t *testing.T) {
	p := &poisson{rate: minRate, seconds: farthest.Seconds()}
	if at, ok := p.Next(); ok {
		t.Errorf("an arrival at %s, more than 200 years in", at)
	}
}

func TestSeedsDiffer(t *testing.T) {
	for _, form := range []string{"poisson:2", "gamma:2", "mmpp:2"} {
		a, _ := made(t)(ParseArrivals(form, 1)).Next()
		b, _ := made(t)(ParseArrivals(form, 2)).Next()
		if a == b {
			t.Errorf("%s: seeds 1 and 2 both begin at %s", form, a)
		}
	}
}

func BenchmarkArrivals(b *testing.B) {
	for _, form := range []string{"uniform:8", "poisson:8", "gamma:8,cv=2", "mmpp:8"} {
		b.Run(form, func(b *testing.B) {
			a := made(b)(ParseArrivals(form, 1))
			b.ReportAllocs()
			for b.Loop() {
				a.Next()
			}
		})
	}
}
