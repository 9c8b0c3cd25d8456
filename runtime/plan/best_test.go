package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestBestVectors: the B* of the vectors file, with the threshold of model 0
// fixed and free, and its throughput.
func TestBestVectors(t *testing.T) {
	for _, v := range readGiven(t) {
		for _, free := range []bool{false, true} {
			want, at := v.want.BestB01, v.want.AtBestB01
			if free {
				want, at = v.want.Best, v.want.AtBest
			}
			a, err := Best(v.spec, Options{FreeB0: free})
			if err != nil {
				t.Fatal(v.id, err)
			}
			if !slices.Equal(a.B, want) {
				t.Errorf("%s: B* = %v, want %v", v.id, a.B, want)
			}
			near(t, v.id+" at B*", a.Throughput, at, 1e-5)
			near(t, v.id+" eager", a.Eager.Throughput, v.want.Eager, 1e-5)
		}
	}
}

// TestBestMethods: B* of R2R at 6.0 / 27.9 ms and p = 0.35 by each method.
func TestBestMethods(t *testing.T) {
	for n, want := range map[int]int{2: 2, 3: 2, 4: 3, 8: 5} {
		for _, m := range []Method{ByChain, ByCountSim, ""} {
			a, err := Best(pair(n, .35, 6, 27.9), Options{Method: m})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(a.B, []int{1, want}) {
				t.Errorf("N = %d by %q: B* = %v, want %d", n, m, a.B, want)
			}
			if len(a.Curve) != n || !slices.IsSortedFunc(a.Curve, func(x, y Point) int { return slices.Compare(x.B, y.B) }) {
				t.Errorf("N = %d by %q: the curve is %v", n, m, a.Curve)
			}
			// Lock-step: N / (t0 + t1 (1 - (1-p)^N)).
			near(t, "lock-step", a.Lockstep.Throughput, 1000*float64(n)/(6+27.9*(1-math.Pow(.65, float64(n)))), 2e-3)
		}
	}
	few := pair(12, .35, 6, 27.9)
	few.Cap, few.B = []int{4, 12}, []int{4, 1}
	full, err := Chain(few)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Best(few, Options{Method: ByChain})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "lock-step with 4 seats for 12", a.Lockstep.Throughput, full.Throughput, 1e-9)
	a, err = Best(pair(1024, .35, 6, 27.9), Options{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "gain at N = 1024", a.Gain(), .031, .05)
	if a.Method != ByFluid || a.Error == 0 || !slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, "fluid limit") }) {
		t.Errorf("N = 1024 by %s, error %v, %q", a.Method, a.Error, a.Warnings)
	}
}

// TestBestIsTheBest: no vector at all is better, for systems of every kind.
func TestBestIsTheBest(t *testing.T) {
	for _, c := range shapes() {
		n := 5
		if len(c.spec.P) > 2 {
			n = 3
		}
		for _, free := range []bool{false, true} {
			q, err := newSearch(c.with(n), Options{FreeB0: free})
			if err != nil {
				t.Fatal(c.name, err)
			}
			if err := q.screen(); err != nil {
				t.Fatal(c.name, err)
			}
			star, best, err := q.final(q)
			if err != nil {
				t.Fatal(c.name, err)
			}
			for _, b := range q.vectors(1000) {
				r, err := Chain(q.with(b))
				if err != nil {
					t.Fatal(c.name, err)
				}
				if r.Throughput > best.Throughput*(1+1e-6) {
					t.Errorf("%s: B* = %v has %v tokens/s, %v has %v", c.name, star, best.Throughput, b, r.Throughput)
				}
				if math.Abs(r.Throughput/best.Throughput-1) < 1e-12 && beats(Point{B: b, Throughput: 1}, Point{B: star, Throughput: 1}) {
					t.Errorf("%s: B* = %v, but the smaller %v is as good", c.name, star, b)
				}
			}
		}
	}
}

// TestClimb: where not all vectors are looked at, what is found is within 0.2 %
// of the best of all.
func TestClimb(t *testing.T) {
	for _, s := range []*Spec{pair(48, .35, 6, 27.9), pair(48, .2, 6, 72), shapes()[2].with(10), shapes()[3].with(10)} {
		climbed, err := newSearch(s, Options{Method: ByFluid})
		if err != nil {
			t.Fatal(err)
		}
		if err := climbed.climb(); err != nil {
			t.Fatal(err)
		}
		all, err := newSearch(s, Options{Method: ByFluid})
		if err != nil {
			t.Fatal(err)
		}
		if err := all.look(all.vectors(1000)); err != nil {
			t.Fatal(err)
		}
		if x, y := climbed.best(), all.best(); x.Throughput < .998*y.Throughput {
			t.Errorf("%d models, N = %d: climbed to %v in %d of %d vectors, %v is better by %.2f %%", len(s.P), s.N, x.B, len(climbed.points), len(all.points), y.B, 100*(y.Throughput/x.Throughput-1))
		}
	}
}

// TestBestWithBound: the bound on P99 chooses between the tails of eager (59.7
// ms) and of B* (73.8 ms), and cannot be kept below the first.
func TestBestWithBound(t *testing.T) {
	s := pair(8, .35, 6, 27.9)
	for _, c := range []struct{ bound, p99 float64 }{{60, 59.7}, {74, 73.8}, {1000, 73.8}} {
		a, err := Best(s, Options{MaxP99: c.bound})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "P99", a.P99, c.p99, 1e-9)
		if c.bound > 73 && a.B[1] != 5 {
			t.Errorf("P99 <= %v ms: B* = %v, want 5", c.bound, a.B)
		}
		if a.Throughput < a.Eager.Throughput {
			t.Errorf("P99 <= %v ms: %v tokens/s, eager has %v and keeps it", c.bound, a.Throughput, a.Eager.Throughput)
		}
	}
	if _, err := Best(s, Options{MaxP99: 40}); !errors.Is(err, ErrBound) || !strings.Contains(err.Error(), "59.7 ms") {
		t.Errorf("P99 <= 40 ms: %v", err)
	}
}

// TestBand: with 12.0 ms a large step takes just two small ones. B* is 1 there
// and 2 as soon as it takes less; with 27.9 ms B* stands.
func TestBand(t *testing.T) {
	a, err := Best(pair(4, .35, 6, 12), Options{})
	if err != nil {
		t.Fatal(err)
	}
	shorter, err := Best(pair(4, .35, 6, 12*.98), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !a.Flips || a.B[1] != 1 || shorter.B[1] != 2 {
		t.Errorf("B* = %v, flips %v; with a shorter step %v", a.B, a.Flips, shorter.B)
	}
	if lost := 1 - shorter.Eager.Throughput/shorter.Throughput; a.Regret < lost-1e-9 || a.Low > shorter.Eager.Throughput+1e-9 {
		t.Errorf("regret %v, low %v; with a shorter step B* = 1 loses %v and has %v", a.Regret, a.Low, lost, shorter.Eager.Throughput)
	}
	a, err = Best(pair(4, .35, 6, 27.9), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Flips || !(a.Low < a.Throughput && a.Throughput < a.High) || a.Low < .97*a.Throughput || a.High > 1.03*a.Throughput {
		t.Errorf("flips %v, %v in %v to %v", a.Flips, a.Throughput, a.Low, a.High)
	}
}

// TestBandOfTheFirst: where the small model never waits, its step time alone sets
// the pace, so a band that left it out would be a single value.
func TestBandOfTheFirst(t *testing.T) {
	three := [][]float64{{.75, .25, 0}, {.9, 0, .1}, {1, 0, 0}}
	for _, s := range []*Spec{
		pair(1024, .35, 6, 27.9),
		{N: 512, P: three, Step: flat(6, 14.7, 48.3)},
	} {
		a, err := Best(s, Options{NoTails: true})
		if err != nil {
			t.Fatal(err)
		}
		for f, got := range map[float64]float64{.98: a.High, 1.02: a.Low} {
			m := *s
			m.B, m.Step, m.Quantum = a.B, slices.Clone(s.Step), .01
			m.Step[0].Base *= f
			r, err := CountSim(&m, 20_000, 1)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "the band", got, r.Throughput, 4e-3)
			near(t, "the pace", r.Throughput, a.Throughput/f, 4e-3)
		}
	}
}

// TestWarnings: each has a system that raises it, and the plain one raises none.
func TestWarnings(t *testing.T) {
	slope := pair(8, .35, 6, 27.9)
	slope.Step = []Latency{{5, 1}, {24, 4}}
	parity := pair(2, 1, 1, 3)
	parity.Quantum = 1
	for _, c := range []struct {
		name string
		spec *Spec
		want []string
	}{
		{"plain", pair(4, .35, 6, 27.9), nil},
		{"one request", pair(1, .35, 6, 27.9), nil},
		{"idle", pair(4, .02, 6, 27.9), []string{"idles here"}},
		{"slope", slope, []string{"idles here", "grow with the batch"}},
		{"lock-step", pair(2, .5, 6, 70), []string{"eager loses to lock-step"}},
		{"whole ratio", pair(4, .35, 6, 30), []string{"5.00 times"}},
	} {
		a, err := Best(c.spec, Options{})
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, w := range c.want {
			if !strings.Contains(strings.Join(a.Warnings, "\n"), w) {
				t.Errorf("%s: no %q among %q", c.name, w, a.Warnings)
			}
		}
		if c.want == nil && len(a.Warnings) > 0 {
			t.Errorf("%s: %q", c.name, a.Warnings)
		}
	}
}

func TestBestRefuses(t *testing.T) {
	s := pair(4, .35, 6, 27.9)
	for name, o := range map[string]Options{
		"method": {Method: "guess"}, "bound": {MaxP99: math.NaN()}, "events": {Events: 10},
	} {
		if _, err := Best(s, o); err == nil {
			t.Errorf("a wrong %s was accepted", name)
		}
	}
	if _, err := Best(pair(0, .35, 6, 27.9), Options{}); err == nil {
		t.Error("N = 0 was accepted")
	}
	s.B = []int{9, 9} // is not looked at
	if _, err := Best(s, Options{}); err != nil {
		t.Error(err)
	}
}

// TestCapBoundsB: no threshold above what a batch can take.
func TestCapBoundsB(t *testing.T) {
	s := pair(8, .5, 6, 60)
	s.Cap = []int{8, 3}
	a, err := Best(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.B[1] > 3 || len(a.Curve) != 3 {
		t.Errorf("B* = %v of %v", a.B, a.Curve)
	}
}

// Steps that take tokens back change no thresholds as long as more is written: steps
// are shared out the same whatever K is. Where nothing is left in the long run there
// is nothing to be best at, and what is the best vector else would be the worst.
func TestBestWhereTokensAreTakenBack(t *testing.T) {
	s := pair(8, .35, 6, 27.9)
	want, err := Best(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.K = [][]float64{{1, -0.5}, {1, 1}} // a draft that is cut
	got, err := Best(s, Options{})
	if err != nil || !slices.Equal(got.B, want.B) || got.Throughput >= want.Throughput {
		t.Errorf("B* = %v at %.4g tokens/s, %v; without %v at %.4g", got.B, got.Throughput, err, want.B, want.Throughput)
	}
	for _, cut := range []float64{-5, -1e9} {
		s.K[0][1] = cut
		if _, err := Best(s, Options{}); err == nil || !strings.Contains(err.Error(), "look at K") {
			t.Errorf("%g taken back: %v", cut, err)
		}
		if _, err := Tabulate(s, 4, Options{}); err == nil || !strings.Contains(err.Error(), "look at K") {
			t.Errorf("a table with %g taken back: %v", cut, err)
		}
	}
}

func ExampleBest() {
	a, err := Best(&Spec{
		N:    4,
		P:    [][]float64{{0.65, 0.35}, {1, 0}},
		K:    [][]float64{{1, 0}, {1, 1}},
		Step: []Latency{{Base: 6.0}, {Base: 27.9}},
	}, Options{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("B* = %v: %.1f tokens/s, %.1f %% over eager, %.1f %% over lock-step\n", a.B, a.Throughput, 100*a.Gain(), 100*a.GainOverLockstep())
	// Output: B* = [1 3]: 208.0 tokens/s, 11.1 % over eager, 50.3 % over lock-step
}
