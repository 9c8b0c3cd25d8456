package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// law draws the steps of a visit.
type law func(*rand.Rand) int

func geometric(p float64) law {
	return func(r *rand.Rand) int {
		k := 1
		for r.Float64() >= p {
			k++
		}
		return k
	}
}

// visitsOf makes visits of a law until the sends are seen; after a share end of
// the other steps the request ends.
func visitsOf(v *intervals, r *rand.Rand, l law, sends int, end float64) {
	for n := 0; n < sends; {
		k := l(r)
		for step := 1; ; step++ {
			v.add(step, step == k)
			if step == k {
				n++
				break
			}
			if r.Float64() < end {
				break
			}
		}
	}
}

func TestStepBins(t *testing.T) {
	next := 1
	for i := range stepBins {
		from, to := binRange(i)
		if from != next || to < from {
			t.Fatalf("bin %d is %d to %d, want it to begin at %d", i, from, to, next)
		}
		if stepBin(from) != i || stepBin(to) != i {
			t.Fatalf("steps %d and %d fall into bins %d and %d, want %d", from, to, stepBin(from), stepBin(to), i)
		}
		next = to + 1
	}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.Int().Draw(t, "step")
		if i := stepBin(k); i < 0 || i >= stepBins {
			t.Fatalf("step %d falls into bin %d", k, i)
		}
	})
}

// Geometric routers are refused in one window of a hundred, whether requests end
// early or not: over 1,000 windows 10 +- 3.1 (standard deviation) are expected.
func TestGeometricIsRefusedAtItsRate(t *testing.T) {
	const runs = 1000
	for _, c := range []struct {
		p, end float64
		sends  int
	}{{0.35, 0, 300}, {0.35, 0.05, 300}, {0.1, 0.02, 200}, {0.8, 0, 1500}, {0.02, 0.02, 100}} {
		r := rand.New(rand.NewPCG(5, 77))
		far, mean, p := 0, 0.0, 0.0
		for range runs {
			var v intervals
			visitsOf(&v, r, geometric(c.p), c.sends, c.end)
			got := v.interval()
			if !got.Tested {
				t.Fatalf("%+v: not tested", c)
			}
			if got.Far {
				far++
			}
			mean += got.Mean / runs
			p += got.PValue / runs
		}
		if far < 1 || far > 21 {
			t.Errorf("%+v: %d of %d geometric windows are refused at 1 %%", c, far, runs)
		}
		closeTo(t, "mean p-value", p, 0.5, 0.04)
		closeTo(t, "mean", mean*c.p, 1, 0.03)
	}
}

// What the model cannot describe as geometric is refused, with a mean of three
// steps each: every third, two points, uniform 1 to 5, at least two, and a
// mixture of two geometric laws.
func TestOtherLawsAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	two := geometric(0.5)
	for _, c := range []struct {
		name  string
		law   law
		cv2   float64
		sends int
	}{
		{"every third", func(*rand.Rand) int { return 3 }, 0, minSends},
		{"two points", func(r *rand.Rand) int { return 1 + 4*r.IntN(2) }, 4.0 / 9, 100},
		{"uniform 1 to 5", func(r *rand.Rand) int { return 1 + r.IntN(5) }, 2.0 / 9, 200},
		{"at least two", func(r *rand.Rand) int { return 1 + two(r) }, 2.0 / 9, 200},
		{"mixture", func(r *rand.Rand) int {
			if r.IntN(2) == 0 {
				return geometric(0.8)(r)
			}
			return geometric(1 / 4.75)(r)
		}, 1.354, 1000},
	} {
		var v intervals
		visitsOf(&v, r, c.law, c.sends, 0)
		got := v.interval()
		if !got.Tested || !got.Far || got.PValue >= significance {
			t.Errorf("%s is taken for geometric: %+v", c.name, got)
		}
		closeTo(t, c.name+": mean", got.Mean, 3, 6*math.Sqrt(max(c.cv2, 0.01)*9/float64(c.sends)))
		closeTo(t, c.name+": CV2", got.CV2, c.cv2, 0.25*c.cv2+1e-9)
		closeTo(t, c.name+": geometric CV2", got.Geom, 1-1/got.Mean, 1e-12)
	}
}

// Requests that end early do not shorten the intervals.
func TestIntervalsOfShortRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	const p, end = 0.1, 0.08
	var mean, cv2 float64
	const runs = 100
	for range runs {
		var v intervals
		visitsOf(&v, r, geometric(p), 900, end)
		got := v.interval()
		mean += got.Mean / runs
		cv2 += got.CV2 / runs
		if got.N != 900 {
			t.Fatalf("%d sends", got.N)
		}
	}
	// The mean of the complete intervals alone is 1/(1-(1-p)(1-end)) = 5.8.
	closeTo(t, "mean", mean, 1/p, 0.2)
	closeTo(t, "CV2", cv2, 1-p, 0.05)
}

// A subserver that sends after every step has nothing that could be refused.
func TestIntervalsOfOne(t *testing.T) {
	var v intervals
	if got := v.interval(); got.N != 0 || got.Far || got.PValue != 1 || got.Mean != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	v.add(1, false)
	if got := v.interval(); got.N != 0 || got.Steps != 1 || got.Mean != 0 {
		t.Errorf("of one step: %+v", got)
	}
	v.restart()
	for range 500 {
		v.add(1, true)
	}
	got := v.interval()
	if got.Tested || got.Far || got.Mean != 1 || got.CV2 != 0 || got.Geom != 0 || len(got.Bins) != 1 || got.Bins[0].Share != 1 {
		t.Errorf("%+v", got)
	}
}

// The window holds the last one to two thousand sends, so a new law is seen.
func TestIntervalWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	var v intervals
	visitsOf(&v, r, geometric(0.5), 20_000, 0)
	if got := v.interval(); got.N < blockSends || got.N > 2*blockSends {
		t.Errorf("%d sends in the window", got.N)
	}
	visitsOf(&v, r, geometric(0.125), 2*blockSends, 0)
	closeTo(t, "mean", v.interval().Mean, 8, 0.8)
}

// Whatever is counted, shares of intervals add up to at most one and figures are
// finite; the bars add up to the counts.
func TestAnyIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v intervals
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			v.add(rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(1, 100), rapid.Int()).Draw(t, "k"), rapid.IntRange(0, 3).Draw(t, "sent") == 0)
		}
		got := v.interval()
		share, geom, made, sent := 0.0, 0.0, 0, 0
		for _, b := range got.Bins {
			share += b.Share
			geom += b.Geom
			made += b.Made
			sent += b.Sent
			if b.Share < 0 || b.Geom < -1e-12 || b.Sent > b.Made {
				t.Fatalf("%+v", b)
			}
		}
		if share > 1+1e-9 || geom > 1+1e-9 || (got.N > 0 && (made != got.Steps || sent != got.N)) {
			t.Fatalf("%+v", got)
		}
		for _, x := range []float64{got.Mean, got.CV2, got.Geom, got.Chi2, got.PValue} {
			if !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%+v", got)
			}
		}
		if got.N > 0 && got.Mean < 1 {
			t.Fatalf("%+v", got)
		}
	})
}
