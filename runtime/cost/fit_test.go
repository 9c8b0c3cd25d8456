package cost

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func milli(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

func near(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > eps {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// A machine that follows a profile is given back.
func TestFitFindsTheProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Float64Range(0, 50)
		p := Profile{Rows: []Row{{
			Base: rapid.Float64Range(0.1, 100).Draw(t, "base"), PerDecodeRow: ms.Draw(t, "row"), PerPrefillToken: ms.Draw(t, "token"),
		}}}
		f := NewFitter(rapid.Float64Range(10, 300).Draw(t, "half-life"))
		most := rapid.IntRange(2, 40).Draw(t, "largest batch")
		for range 4 {
			for rows := 1; rows <= most; rows++ {
				f.Add(rows, 0, p.Step(0, feeding(rows, 0)))
			}
			f.Add(1, 30, p.Step(0, feeding(1, 30)))
			f.Add(0, 7, p.Step(0, feeding(0, 7)))
		}
		fit := f.Fit()
		for _, c := range []struct{ got, want float64 }{{fit.Base, p.Rows[0].Base}, {fit.PerRow, p.Rows[0].PerDecodeRow}, {fit.PerToken, p.Rows[0].PerPrefillToken}} {
			if math.Abs(c.got-c.want) > 1e-5 {
				t.Fatalf("fit of %+v is %+v", p.Rows[0], fit)
			}
		}
		if !fit.Slope || fit.Joint != (4*most < 2) || fit.Low != 1 || fit.High != most || fit.TokensLow != 7 || fit.TokensHigh != 30 || len(fit.Sizes) != most || fit.N != 4*most || fit.PrefillN != 8 || fit.MAPE > 1e-5 || fit.PrefillMAPE > 1e-5 {
			t.Fatalf("%+v", fit)
		}
	})
}

// Noise of 3 % and one step in fifty that stalls for ten times as long: the line
// is that of the steps that did not stall.
func TestFitIsNotMovedByStalls(t *testing.T) {
	const base, row, trials = 6.0, 0.2, 200
	rng := rand.New(rand.NewPCG(1, 2))
	var worst, mean, mape, stretch float64
	for range trials {
		f := NewFitter(50)
		for range 2000 {
			rows := 1 + rng.IntN(8)
			ms := (base + row*float64(rows)) * (1 + 0.03*rng.NormFloat64())
			if rng.IntN(50) == 0 {
				ms *= 10
			}
			f.Add(rows, 0, milli(ms))
		}
		fit := f.Fit()
		ms, inside := fit.Of(4, 0)
		off := ms/(base+4*row) - 1
		worst, mean = max(worst, math.Abs(off)), mean+off/trials
		if !inside || math.Abs(fit.PerRow-row) > 0.1 {
			t.Errorf("fit %+v", fit)
		}
		if share := float64(fit.Clipped) / 2000; share < 0.01 || share > 0.04 {
			t.Errorf("%v of the steps are outliers, 0.02 stall", share)
		}
		mape += fit.MAPE / trials
		stretch += fit.Stretch / trials
	}
	// The mean of the stalled steps themselves is 18 % higher.
	if worst > 0.02 || mean < 0 || mean > 0.006 {
		t.Errorf("steps of four rows are off by %v in the mean, %v at worst", mean, worst)
	}
	// The error does not hide them: 3 % sqrt(2/pi) of noise, and 0.9 of each fiftieth.
	near(t, "MAPE", mape, 0.98*0.0239+0.02*0.9, 0.005)
	near(t, "Stretch", stretch, 1+0.02*9, 0.02)
}

// With one size of batch nothing is known of the slope, and it is said.
func TestFitOfOneSize(t *testing.T) {
	f := NewFitter(0)
	unknown := f.Fit()
	if _, inside := unknown.Of(1, 0); unknown.Known() || inside {
		t.Errorf("an empty fitter knows %+v", unknown)
	}
	for range 10 {
		f.Add(8, 0, 7*time.Millisecond)
	}
	fit := f.Fit()
	ms, inside := fit.Of(8, 0)
	if fit.Slope || fit.PerRow != 0 || ms != 7 || !inside || !fit.Known() {
		t.Errorf("%+v", fit)
	}
	if ms, inside := fit.Of(1, 0); ms != 7 || inside {
		t.Errorf("a batch of one, never seen, takes %v (inside %v)", ms, inside)
	}
	if _, inside := fit.Of(8, 1); inside {
		t.Error("prefill tokens were never seen")
	}
	// One batch of another size, and a stalled one, is no slope; three are.
	f.Add(1, 0, 60*time.Millisecond)
	if fit := f.Fit(); fit.Slope || fit.High != 8 || fit.Low != 8 || len(fit.Sizes) != 2 {
		t.Errorf("%+v", fit)
	}
	f.Add(1, 0, 3500*time.Microsecond)
	f.Add(1, 0, 3500*time.Microsecond)
	fit = f.Fit()
	near(t, "base", fit.Base, 3, 1e-9)
	near(t, "slope", fit.PerRow, 0.5, 1e-9)
	if !fit.Slope || fit.Low != 1 {
		t.Errorf("%+v", fit)
	}
}

// After a half-life the old law counts half, if the change is no outlier.
func TestFitForgets(t *testing.T) {
	for _, halfLife := range []int{10, 50, 200} {
		f := NewFitter(float64(halfLife))
		for range 30 * halfLife {
			f.Add(2, 0, milli(10))
		}
		for range halfLife {
			f.Add(2, 0, milli(10.2))
		}
		near(t, "half way", f.Fit().Base, 10.1, 1e-3)
		if f.Fit().Clipped != 0 {
			t.Error("2 % more is an outlier")
		}
	}
}

// A new level is taken at the eighth step of each size, whatever the half-life.
func TestFitTakesANewLevelAtOnce(t *testing.T) {
	f := NewFitter(200)
	both := func(n int, ms float64) {
		for range n {
			f.Add(1, 0, milli(ms))
			f.Add(4, 0, milli(ms+3))
		}
	}
	both(500, 6)
	both(recent-1, 12)
	if fit := f.Fit(); fit.Base > 6 {
		t.Errorf("base is %v after seven outliers", fit.Base)
	}
	both(1, 12)
	fit := f.Fit()
	near(t, "base", fit.Base, 11, 1e-9)
	near(t, "slope", fit.PerRow, 1, 1e-9)
	near(t, "error", fit.MAPE, 0, 1e-9)
	both(recent, 6)
	near(t, "base", f.Fit().Base, 5, 1e-9)
}

// While batches of eight run for long, what a batch of one took is remembered,
// but not for ever.
func TestFitRemembersOtherSizes(t *testing.T) {
	f := NewFitter(10)
	rng := rand.New(rand.NewPCG(3, 4))
	add := func(rows int) { f.Add(rows, 0, milli((5+float64(rows))*(1+0.02*rng.NormFloat64()))) }
	for range 50 {
		add(1)
		add(2)
	}
	for range 600 {
		add(8)
	}
	fit := f.Fit()
	near(t, "base", fit.Base, 5, 0.2)
	near(t, "slope", fit.PerRow, 1, 0.05)
	if fit.Low != 1 || fit.High != 8 {
		t.Errorf("%+v", fit)
	}
	for range 2000 {
		add(8)
	}
	if fit := f.Fit(); fit.Slope || fit.Low != 8 {
		t.Errorf("sizes of long ago are still in the box: %+v", fit)
	}
}

// At a model whose visits all bring a suffix no batch is pure decode: the three
// coefficients come from one fit.
func TestFitWithoutDecodeBatches(t *testing.T) {
	const base, row, token = 20.0, 0.5, 0.1
	rng := rand.New(rand.NewPCG(5, 6))
	f := NewFitter(50)
	step := func(rows int) {
		tokens := 1 + rng.IntN(3*rows)
		ms := (base + row*float64(rows) + token*float64(tokens)) * (1 + 0.01*rng.NormFloat64())
		if rng.IntN(20) == 0 {
			ms *= 4
		}
		f.Add(rows, tokens, milli(ms))
	}
	for range 30 {
		step(5)
	}
	if fit := f.Fit(); fit.Slope || !fit.Joint || fit.PerRow != 0 || fit.Low != 5 || fit.High != 5 {
		t.Errorf("one size, yet %+v", fit)
	}
	step(1)
	step(1)
	if fit := f.Fit(); fit.Slope {
		t.Errorf("two batches of another size make a slope: %+v", fit)
	}
	for range 500 {
		step(1 + rng.IntN(6))
	}
	fit := f.Fit()
	if !fit.Slope || !fit.Joint || fit.N != 0 || !fit.Known() || fit.Low != 1 || fit.High != 6 {
		t.Errorf("%+v", fit)
	}
	for rows := 1; rows <= 6; rows++ {
		ms, inside := fit.Of(rows, 2*rows)
		if want := base + row*float64(rows) + token*float64(2*rows); math.Abs(ms/want-1) > 0.01 || !inside {
			t.Errorf("%d rows take %v, want %v", rows, ms, want)
		}
	}
}

// Prompts among decode batches give PerToken and leave the line of decode alone.
func TestFitOfPrompts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	f, plain := NewFitter(50), NewFitter(50)
	for i := range 1000 {
		rows := 1 + rng.IntN(4)
		decode := 6 + 0.2*float64(rows)
		if i%3 == 0 {
			tokens := 20 + rng.IntN(100)
			f.Add(rows, tokens, milli((decode+0.05*float64(tokens))*(1+0.05*rng.NormFloat64())))
			continue
		}
		d := milli(decode * (1 + 0.03*rng.NormFloat64()))
		f.Add(rows, 0, d)
		plain.Add(rows, 0, d)
	}
	fit, want := f.Fit(), plain.Fit()
	if fit.Base != want.Base || fit.PerRow != want.PerRow || fit.Joint {
		t.Errorf("prompts move the line of decode: %+v, %+v", fit, want)
	}
	near(t, "ms per token", fit.PerToken, 0.05, 0.002)
	near(t, "error", fit.PrefillMAPE, 0.04, 0.02)
	near(t, "bias", fit.PrefillBias, 0, 0.02)
}

// Whatever is measured, coefficients are finite and 0 or more, and the box is
// that of what was added.
func TestFitOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFitter(rapid.Float64Range(-1, 100).Draw(t, "half-life"))
		n := 0
		for range rapid.IntRange(0, 200).Draw(t, "batches") {
			rows, tokens := rapid.IntRange(-1, 12).Draw(t, "rows"), rapid.IntRange(-3, 20).Draw(t, "tokens")
			d := time.Duration(rapid.OneOf(rapid.Int64Range(-2, 5), rapid.Int64Range(1e5, 1e8), rapid.Int64()).Draw(t, "ns"))
			f.Add(rows, max(tokens, -1), d)
			if d > 0 && rows >= 0 && tokens >= 0 && rows+tokens > 0 {
				n++
			}
		}
		fit := f.Fit()
		if fit.N+fit.PrefillN != n || fit.Known() != (n >= MinBatches) {
			t.Fatalf("%d batches: %+v", n, fit)
		}
		for _, x := range []float64{fit.Base, fit.PerRow, fit.PerToken, fit.MAPE, fit.PrefillMAPE, fit.Bias + 2, fit.PrefillBias + 2} {
			if !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%+v", fit)
			}
		}
		if n > 0 && (fit.Low < 0 || fit.High > 12 || fit.Low > fit.High) {
			t.Fatalf("%+v", fit)
		}
		if diff := cmp.Diff(fit, f.Fit()); diff != "" {
			t.Fatalf("asking changes the fit: %s", diff)
		}
		f.Reset()
		if diff := cmp.Diff(Fit{}, f.Fit()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The result of nonNegative meets the conditions of Karush, Kuhn and Tucker.
func TestNonNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []point
		for range rapid.IntRange(1, 30).Draw(t, "points") {
			points = append(points, newPoint(
				float64(rapid.IntRange(0, 20).Draw(t, "rows")), float64(rapid.IntRange(0, 50).Draw(t, "tokens")),
				rapid.Float64Range(0.1, 50).Draw(t, "ms"), rapid.Float64Range(0.1, 10).Draw(t, "weight")))
		}
		columns := rapid.IntRange(1, 7).Draw(t, "columns")
		c := nonNegative(points, columns)
		for k := range 3 {
			var slope, scale float64
			for i := range points {
				p := &points[i]
				slope += p.w * p.inv * p.x[k] * p.off(&c)
				scale += p.w * p.inv * p.x[k] * p.y * p.inv
			}
			switch {
			case columns&(1<<k) == 0:
				if c[k] != 0 {
					t.Fatalf("column %d was not asked for: %v", k, c)
				}
			case c[k] < 0 || slope > 1e-6*scale:
				t.Fatalf("column %d of %v would gain %v by more", k, c, slope)
			case c[k] > 0 && math.Abs(slope) > 1e-6*scale:
				t.Fatalf("column %d of %v is not at the best: %v", k, c, slope)
			}
		}
	})
}

// A fit belongs to its caller.
func TestFitIsACopy(t *testing.T) {
	f := NewFitter(50)
	for i := range 20 {
		f.Add(1+i%3, 0, time.Millisecond)
	}
	before := f.Fit()
	kept := slices.Clone(before.Sizes)
	for range 50 {
		f.Add(1, 0, 9*time.Millisecond)
	}
	f.Fit()
	if diff := cmp.Diff(kept, before.Sizes); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkFitterAdd(b *testing.B) {
	f := NewFitter(50)
	f.Add(16, 0, time.Millisecond)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.Add(1+i%16, i%4&1*i%64, time.Duration(6_000_000+1000*(i%37)))
	}
}

func BenchmarkFit(b *testing.B) {
	for _, c := range []struct {
		name  string
		joint bool
	}{{"decode", false}, {"joint", true}} {
		b.Run(c.name, func(b *testing.B) {
			f := NewFitter(50)
			for i := range 2000 {
				tokens := 0
				if c.joint || i%5 == 0 {
					tokens = 1 + i%23
				}
				f.Add(1+i%16, tokens, time.Duration(6_000_000+1000*(i*7919%1013)))
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Fit()
			}
		})
	}
}
