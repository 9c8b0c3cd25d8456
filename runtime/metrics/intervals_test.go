package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/runtime/event"
)

// runsOf makes runs of a law until the sends are seen; after a share end of the
// other steps the request ends.
func runsOf(l *lengths, r *rand.Rand, of law, sends int, end float64) {
	req := event.ReqID(1)
	for n := 0; n < sends; {
		k := of(r)
		for step := 1; ; step++ {
			l.add(req, step, step == k)
			if step == k {
				n++
				break
			}
			if r.Float64() < end {
				l.forget(req)
				req++
				break
			}
		}
	}
}

func lengthsOf(l *lengths) Lengths {
	e := NewEstimator(2, EstimatorOptions{Whole: true})
	e.cores[0].lengths = l
	return e.Lengths(0)
}

// Against its own law a sample is refused in one of a hundred, and the correlation
// of runs that are drawn apart is 0 but for chance.
func TestLengthsFitTheirLaw(t *testing.T) {
	const samples = 300
	r := rand.New(rand.NewPCG(3, 4))
	far, mean := 0, 0.0
	for range samples {
		var l lengths
		runsOf(&l, r, geometric(0.2), 400, 0.03)
		got := lengthsOf(&l)
		if got.Runs != 400 || got.Pairs < 200 || math.Abs(got.Next) > 5/math.Sqrt(float64(got.Pairs)) {
			t.Fatalf("%d runs, %d pairs with a correlation of %v", got.Runs, got.Pairs, got.Next)
		}
		_, _, p, ok := got.Fit(func(int) float64 { return 0.2 }, 0)
		if !ok {
			t.Fatal("not tested")
		}
		if mean += p / samples; p < significance {
			far++
		}
	}
	if far > 12 || math.Abs(mean-0.5) > 0.07 {
		t.Errorf("%d of %d are refused at 1 %%, the mean p is %.3f", far, samples, mean)
	}
}

// Another law is refused; runs that copy the one before are correlated.
func TestLengthsSeeWhatIsNotSo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var l lengths
	runsOf(&l, r, geometric(0.2), 2000, 0)
	got := lengthsOf(&l)
	if _, _, p, ok := got.Fit(func(k int) float64 { return 0.3 - 0.02*float64(min(k, 10)) }, 2); !ok || p > 1e-4 {
		t.Errorf("p is %v, %v", p, ok)
	}
	var same lengths
	for range 500 {
		k := geometric(0.2)(r)
		for range 2 {
			for step := 1; step <= k; step++ {
				same.add(1, step, step == k)
			}
		}
	}
	if got := lengthsOf(&same); got.Next < 0.35 || got.Next > 0.65 {
		t.Errorf("runs come in pairs that are equal: the correlation is %v", got.Next)
	}
}

// What is beyond the longest run that is followed is lost from sight, and steps
// never grow from one to the next.
func TestLengthsOfLongRuns(t *testing.T) {
	var l lengths
	for step := 1; step <= MaxLength+10; step++ {
		l.add(1, step, step == MaxLength+10)
	}
	l.add(1, 1, true)
	got := lengthsOf(&l)
	if got.Runs != 1 || len(got.Made) != MaxLength || got.Made[0] != 2 || got.Made[MaxLength-1] != 1 {
		t.Errorf("%d runs, %d steps at most", got.Runs, len(got.Made))
	}
	if e := NewEstimator(2, EstimatorOptions{}); e.Lengths(0).Made != nil || e.Lengths(7).Steps != 0 {
		t.Error("lengths of an estimator that was not asked for them")
	}
}
