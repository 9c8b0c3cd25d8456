package plan

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lived draws runs of a law until so many are sent on; after a share lost of the
// other steps a run is lost from sight.
func lived(f *Phases, runs int, lost float64, seed uint64) Life {
	r := rand.New(rand.NewPCG(seed, 9))
	pick := func(p []float64) int {
		u := r.Float64()
		for i, x := range p {
			if u < x {
				return i
			}
			u -= x
		}
		return -1
	}
	var l Life
	for n := 0; n < runs; {
		at := pick(f.Start)
		for k := 0; ; k++ {
			if k == len(l.Made) {
				l.Made, l.Sent = append(l.Made, 0), append(l.Sent, 0)
			}
			l.Made[k]++
			if at = pick(f.Next[at]); at < 0 {
				l.Sent[k]++
				n++
				break
			}
			if r.Float64() < lost {
				break
			}
		}
	}
	return l
}

// known are laws of the kinds that a fit has to find again.
func known() map[string]*Phases {
	return map[string]*Phases{
		"hyper-geometric": {Start: []float64{0.6, 0.4}, Next: [][]float64{{0.3, 0}, {0, 0.93}}},
		"Erlang-like":     {Start: []float64{1, 0}, Next: [][]float64{{0.55, 0.45}, {0, 0.55}}},
		"three phases":    {Start: []float64{0.7, 0, 0.3}, Next: [][]float64{{0.2, 0.5, 0}, {0, 0.8, 0.2}, {0, 0, 0.5}}},
		"every third":     {Start: []float64{1, 0, 0}, Next: [][]float64{{0, 1, 0}, {0, 0, 1}, {0, 0, 0}}},
	}
}

// A law that runs were drawn from is found again: by its mean, its spread and, step
// by step, the share that is sent on, though every fiftieth step loses its run.
func TestFitFindsTheLaw(t *testing.T) {
	const runs = 20_000
	for name, f := range known() {
		life := lived(f, runs, 0.02, 7)
		got, err := FitLaw(life)
		if err != nil {
			t.Fatal(err)
		}
		truth := Law{Phases: f}
		mean, cv2 := got.Moments()
		wantMean, wantCV2 := truth.Moments()
		t.Logf("%s: %v, %d parameters, mean %.3f of %.3f, CV2 %.3f of %.3f", name, &got, got.Params, mean, wantMean, cv2, wantCV2)
		near(t, name+": mean", mean, wantMean, 0.02)
		if math.Abs(cv2-wantCV2) > 0.03*max(1, wantCV2) {
			t.Errorf("%s: CV2 is %.4f, want %.4f", name, cv2, wantCV2)
		}
		if got.Kind == Geometric {
			t.Errorf("%s is taken for geometric", name)
		}
		shares, want := got.Shares(len(life.Made)), truth.Shares(len(life.Made))
		for k, made := range life.Made {
			// A fit with few parameters is nearer than a share counted alone would be.
			if se := math.Sqrt(want[k] * (1 - want[k]) / float64(max(made, 1))); made > 200 && math.Abs(shares[k]-want[k]) > 4*se+1e-6 {
				t.Errorf("%s: %.4f of steps %d are sent on, want %.4f ± %.4f", name, shares[k], k+1, want[k], se)
			}
		}
	}
}

// Runs that are geometric ask for no phase.
func TestFitKeepsTheGeometricLaw(t *testing.T) {
	for _, p := range []float64{0.05, 0.35, 0.8, 1} {
		other := 0
		const lives = 20
		for seed := range uint64(lives) {
			l, err := FitLaw(lived(&Phases{Start: []float64{1}, Next: [][]float64{{1 - p}}}, 2000, 0.01, seed))
			if err != nil {
				t.Fatal(err)
			}
			if l.Kind != Geometric {
				other++
			}
		}
		if other > lives/10 {
			t.Errorf("p = %v: %d of %d geometric lives are given another law", p, other, lives)
		}
	}
}

// A round of expectation maximisation never makes runs less likely, and what comes
// out is a law.
func TestFitClimbs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Life
		made := rapid.IntRange(1, 2000).Draw(t, "runs")
		for made > 0 && len(l.Made) < 40 {
			sent := rapid.IntRange(0, made).Draw(t, "sent")
			l.Made, l.Sent = append(l.Made, made), append(l.Sent, sent)
			made = rapid.IntRange(0, made-sent).Draw(t, "go on")
		}
		steps, sends := l.steps()
		if sends == 0 {
			if _, err := FitLaw(l); err == nil {
				t.Fatal("a life without a send has a law")
			}
			return
		}
		n := rapid.IntRange(1, 4).Draw(t, "phases")
		for _, f := range beginnings(n, float64(sends)/float64(steps)) {
			e := newEM(&l, f)
			last := math.Inf(-1)
			for range 30 {
				log := e.round()
				if log < last-1e-9*float64(steps)-1e-9*math.Abs(last) {
					t.Fatalf("the log likelihood falls from %v to %v", last, log)
				}
				last = log
			}
			s := &Spec{N: 1, P: [][]float64{{0.5, 0.5}, {1, 0}}, Step: flat(1, 1), Send: []*Phases{f, nil}}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		best, err := FitLaw(l)
		if err != nil {
			t.Fatal(err)
		}
		if best.BIC > GeometricLaw(l).BIC {
			t.Fatalf("%v is worse than the geometric law", &best)
		}
	})
}

func TestFitRefuses(t *testing.T) {
	for want, l := range map[string]Life{
		"2 counts of steps and 1":  {Made: []int{2, 1}, Sent: []int{1}},
		"step 2 was made 3 times":  {Made: []int{4, 3}, Sent: []int{2, 1}},
		"step 1 was made 1 times":  {Made: []int{1}, Sent: []int{2}},
		"no run ended with a send": {Made: []int{3, 2}, Sent: []int{0, 0}},
	} {
		if _, err := FitLaw(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := FitPhases(Life{Made: []int{1}, Sent: []int{1}}, 0); err == nil {
		t.Error("a law of no phase is fitted")
	}
}

// Moments of a law are those of its shares, summed up.
func TestLawMoments(t *testing.T) {
	for name, f := range known() {
		l := Law{Phases: f}
		mean, square, stay := 0.0, 0.0, 1.0
		for k, h := range l.Shares(4000) {
			mean += float64(k+1) * stay * h
			square += float64(k+1) * float64(k+1) * stay * h
			stay *= 1 - h
		}
		gotMean, gotCV2 := l.Moments()
		near(t, name+": mean", gotMean, mean, 1e-9)
		if want := square/(mean*mean) - 1; math.Abs(gotCV2-want) > 1e-9 {
			t.Errorf("%s: CV2 is %v, want %v", name, gotCV2, want)
		}
	}
}

func BenchmarkFitLaw(b *testing.B) {
	life := lived(known()["three phases"], 2000, 0.02, 3)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FitLaw(life); err != nil {
			b.Fatal(err)
		}
	}
}
