package cost

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A step's stall is a function of the step, and over many of them as often and as
// long as the file says.
func TestStallsAreDrawnAsTheyAre(t *testing.T) {
	p, err := Read(strings.NewReader(`{"name": "mine", "roles": [
		{"role": "small", "base_ms": 1, "stalls": {"share": 0.02, "ms": [1, 2, 9]}, "overhead_stalls": {"share": 0.5, "ms": [0.25]}},
		{"role": "large", "base_ms": 9}]}`), "mine.json")
	if err != nil {
		t.Fatal(err)
	}
	const steps = 200_000
	lengths := map[time.Duration]int{}
	both, later := 0, 0
	for n := range uint64(steps) {
		a, b := p.Stall(5, 0, n)
		if again, after := p.Stall(5, 0, n); again != a || after != b {
			t.Fatalf("step %d stalls by %v and %v, then by %v and %v", n, a, b, again, after)
		}
		lengths[a]++
		if b > 0 {
			later++
			if a > 0 {
				both++
			}
			if b != 250*time.Microsecond {
				t.Fatalf("what follows step %d is longer by %v", n, b)
			}
		}
		if a, b := p.Stall(5, 1, n); a != 0 || b != 0 {
			t.Fatalf("a model without stalls stalls by %v and %v", a, b)
		}
	}
	near := func(what string, n int, share float64) {
		t.Helper()
		want := share * steps
		if math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
			t.Errorf("%s: %d of %d, want about %.0f", what, n, steps, want)
		}
	}
	for _, ms := range []time.Duration{1, 2, 9} {
		near("stalls", lengths[ms*time.Millisecond], 0.02/3)
	}
	near("none", lengths[0], 0.98)
	near("behind a step", later, 0.5)
	near("both", both, 0.01)
	if got := p.MeanStall(0); math.Abs(got-(0.02*4+0.5*0.25)) > 1e-12 || p.MeanStall(1) != 0 {
		t.Errorf("stalls add %v and %v ms", got, p.MeanStall(1))
	}
	if other := (Profile{Rows: p.Rows[1:]}); !p.Stalling() || other.Stalling() {
		t.Error("whether a profile stalls is wrong")
	}
}

// Steps drawn by a fit take in the mean what the fitted ones took, executions as
// well as what lies between, although most of them take less.
func TestFitKeepsTheMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 3))
	truth := published(t, 0)
	samples := timed(rng, batches(rng, 4000), truth, 0.03)
	for i := range samples {
		s := &samples[i]
		s.Exec = time.Duration(float64(s.Exec) * (1 + 0.1*rng.ExpFloat64())) // most below the mean
		s.Gap = time.Duration((0.02 + 0.01*rng.ExpFloat64()) * float64(time.Millisecond))
		if rng.IntN(50) == 0 {
			s.Gap += time.Duration(rng.ExpFloat64() * float64(4*time.Millisecond))
		}
	}
	p, err := FitProfile("p", "", legacy, []Measured{{Role: Small, Samples: samples}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var exec, gap, drawnExec, drawnGap time.Duration
	for i := range samples {
		s := &samples[i]
		longer, later := p.Stall(1, 0, uint64(i))
		exec, gap = exec+s.Exec, gap+s.Gap
		drawnExec += p.Step(0, &s.Batch) + longer
		drawnGap += p.Overhead(0, s.Batch.Rows) + later
	}
	if r := float64(drawnExec) / float64(exec); math.Abs(r-1) > 0.01 {
		t.Errorf("drawn steps take %.4f of what was measured", r)
	}
	if r := float64(drawnGap) / float64(gap); math.Abs(r-1) > 0.1 {
		t.Errorf("drawn times between steps are %.4f of what was measured", r)
	}
	if s := p.Rows[0].OverheadStalls; s == nil || math.Abs(s.Share-0.02) > 0.01 || len(s.Ms) != strata {
		t.Errorf("stalls between steps %+v", s)
	}
}

// Messages are as long as they are in the mean, but for the one in a hundred that
// met a machine that stood still.
func TestLatencyIsTheMean(t *testing.T) {
	var messages []time.Duration
	for i := range 1000 {
		d := 10 * time.Microsecond
		switch {
		case i%250 == 0:
			d = time.Second
		case i%10 == 0:
			d = time.Millisecond
		}
		messages = append(messages, d)
	}
	// 990 count: 900 of 10 us, 90 of 1 ms.
	if got, want := fitLatency(messages), (900*0.01+90*1.0)/990; math.Abs(got-want) > 1e-6 {
		t.Errorf("latency %v ms, want %v", got, want)
	}
}
