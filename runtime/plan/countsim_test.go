package plan

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestCountSimVectors: every vector within half a unit of the fourth digit. The
// expectation is the file's, the standard error says that it is no luck.
func TestCountSimVectors(t *testing.T) {
	for _, v := range readGiven(t) {
		events := 400_000
		if len(v.spec.P) > 2 {
			events = 2_000_000
		}
		r, err := CountSim(v.spec, events, 1)
		if err != nil {
			t.Fatal(v.id, err)
		}
		tol := halfUnit(v.want.Throughput)
		if math.Abs(r.Throughput-v.want.Throughput) > tol {
			t.Errorf("%s: %v tokens/s, want %v within %v", v.id, r.Throughput, v.want.Throughput, tol)
		}
		if r.Error > .6*tol {
			t.Errorf("%s: the standard error is %v, too much to show %v", v.id, r.Error, tol)
		}
		for m := range v.spec.P {
			near(t, v.id+" steps/s", r.Steps[m], v.want.Steps[m], 1e-3)
			near(t, v.id+" busy", r.Busy[m], v.want.Busy[m], 3e-3)
			near(t, v.id+" mean batch", r.MeanBatch[m], v.want.Batch[m], 3e-3)
		}
	}
}

// TestCountSimAgainstChain: the simulator draws from the law that the chain
// solves, for every kind of system.
func TestCountSimAgainstChain(t *testing.T) {
	sum, n := 0.0, 0
	for _, c := range shapes() {
		for _, size := range []int{1, 2, 4} {
			b := ones(len(c.spec.P))
			b[len(b)-1] = (size + 1) / 2
			s := c.with(size, b...)
			exact, err := ChainWithin(s, 20_000)
			if errors.Is(err, ErrTooLarge) {
				continue
			}
			if err != nil {
				t.Fatal(c.name, err)
			}
			got, err := CountSim(s, 50_000, uint64(10*n))
			if err != nil {
				t.Fatal(c.name, err)
			}
			z := (got.Throughput - exact.Throughput) / got.Error
			if math.Abs(z) > 4 {
				t.Errorf("%s, N = %d: %v +- %v tokens/s, the chain says %v", c.name, size, got.Throughput, got.Error, exact.Throughput)
			}
			sum, n = sum+z*z, n+1
			for m := range s.P {
				near(t, c.name+" busy", got.Busy[m], exact.Busy[m], .02)
				near(t, c.name+" mean batch", got.MeanBatch[m], exact.MeanBatch[m], .02)
			}
		}
	}
	if n < 25 || sum/float64(n) > 1.6 {
		t.Errorf("mean z-squared is %.2f over %d systems, want about 1", sum/float64(n), n)
	}
}

// TestCountSimConserves: after every event all requests wait or run, no model
// waits above its threshold while idle, no batch is below its threshold or above
// its cap.
func TestCountSimConserves(t *testing.T) {
	all := shapes()
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "shape")]
		n := rapid.IntRange(1, 12).Draw(t, "n")
		b := ones(len(c.spec.P))
		for range rapid.IntRange(0, n-1).Draw(t, "raise") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "model")]++
		}
		g, err := newStage(c.with(n), rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		x := g.open(n, b)
		for range 200 {
			if err := x.step(); err != nil {
				t.Fatal(err)
			}
			total, kinds := 0, 0
			for m, a := range x.at {
				total += a.waiting + a.rows
				if a.rows == 0 && a.waiting >= a.b {
					t.Fatalf("model %d idles with %d ready at threshold %d", m, a.waiting, a.b)
				}
				if a.rows > 0 && (a.rows < min(a.b, a.cap) || a.rows > a.cap || a.left < 1) {
					t.Fatalf("model %d runs %d rows for %d ticks more; threshold %d, cap %d", m, a.rows, a.left, a.b, a.cap)
				}
			}
			for k := range x.wait {
				kinds += x.wait[k] + x.runs[k]
			}
			if total != n || kinds != n {
				t.Fatalf("%d requests by model, %d by kind, want %d", total, kinds, n)
			}
		}
	})
}

func TestCountSimIsAFunction(t *testing.T) {
	s := pair(8, .35, 6, 27.9, 1, 5)
	one, err := CountSim(s, 5000, 7)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := CountSim(s, 5000, 7)
	if d := cmp.Diff(one, two); d != "" {
		t.Errorf("the same arguments, another result:\n%s", d)
	}
	if other, _ := CountSim(s, 5000, 8); other.Throughput == one.Throughput {
		t.Error("another seed, the same throughput to the last digit")
	}
}

// TestCountSimDeterministicRouting: with p = 1 nothing is drawn. Two requests
// that start together stay together: 2 tokens per 1 + 3 ms.
func TestCountSimDeterministicRouting(t *testing.T) {
	s := pair(2, 1, 1, 3)
	s.Quantum = 1
	r, err := CountSim(s, 2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "throughput", r.Throughput, 500, 1e-12)
	if r.Error > 1e-9 {
		t.Errorf("an error of %v without any draw", r.Error)
	}
}

func TestCountSimDeadlock(t *testing.T) {
	_, err := CountSim(pair(4, .35, 6, 27.9, 2, 4), 100_000, 1)
	if !errors.Is(err, ErrDeadlock) {
		t.Fatalf("B = (2, 4) for 4 requests: %v", err)
	}
	const want = "deadlock: all 4 requests came to wait, [1 3] at models with thresholds B = [2 4]; lower one, the sum of B-1 must be below N"
	if err.Error() != want {
		t.Errorf("got  %q\nwant %q", err, want)
	}
}

func TestCountSimRefuses(t *testing.T) {
	if _, err := CountSim(pair(4, .35, 6, 27.9), 10, 1); err == nil {
		t.Error("10 events were accepted")
	}
	if _, err := CountSim(&Spec{N: 1}, 1000, 1); err == nil {
		t.Error("a spec without models was accepted")
	}
}

// TestLuckIsTakenOut: over many seeds the spread around the chain is what
// Result.Error says or less, and less than half of what the plain ratio of tokens
// to time has.
func TestLuckIsTakenOut(t *testing.T) {
	for _, s := range []*Spec{pair(4, .35, 6, 27.9, 1, 3), pair(8, .2, 6, 27.9), shapes()[1].with(4, 1, 2)} {
		exact, err := Chain(s)
		if err != nil {
			t.Fatal(err)
		}
		const seeds, events = 60, 5000
		var freed, plain, said float64
		for seed := range uint64(seeds) {
			g, err := newStage(s, seed)
			if err != nil {
				t.Fatal(err)
			}
			x := g.open(s.N, s.vector())
			var p sample
			if err := p.take(x, events); err != nil {
				t.Fatal(err)
			}
			v, se := p.rate(colTokens)
			p.basis = nil
			w, _ := p.rate(colTokens)
			want := exact.Throughput * g.tick / 1000
			freed += (v/want - 1) * (v/want - 1) / seeds
			plain += (w/want - 1) * (w/want - 1) / seeds
			said += se * se / want / want / seeds
		}
		t.Logf("N = %d, B = %v: error %.2e, %.2e as said, plain %.2e", s.N, s.B, math.Sqrt(freed), math.Sqrt(said), math.Sqrt(plain))
		if freed > 1.5*said || freed < said/20 {
			t.Errorf("N = %d, B = %v: the error is %.2e, said to be %.2e", s.N, s.B, math.Sqrt(freed), math.Sqrt(said))
		}
		if freed > plain/4 {
			t.Errorf("N = %d, B = %v: the error is %.2e, without taking out the luck %.2e", s.N, s.B, math.Sqrt(freed), math.Sqrt(plain))
		}
	}
}

// TestRareSends: with p = 0.02 a short run sees few sends, and drifts that need
// two at once none. The estimate is then no better than the plain one, but no
// worse either.
func TestRareSends(t *testing.T) {
	for _, s := range []*Spec{pair(2, .02, 6, 18, 1, 2), pair(3, .02, 6, 27.9, 1, 2), pair(2, .02, 6, 27.9, 1, 1)} {
		exact, err := Chain(s)
		if err != nil {
			t.Fatal(err)
		}
		const seeds = 100
		freed, plain := 0.0, 0.0
		for seed := range uint64(seeds) {
			g, err := newStage(s, seed)
			if err != nil {
				t.Fatal(err)
			}
			var p sample
			if err := p.take(g.open(s.N, s.B), tableEvents); err != nil {
				t.Fatal(err)
			}
			want := exact.Throughput * g.tick / 1000
			v, _ := p.rate(colTokens)
			p.basis = nil
			w, _ := p.rate(colTokens)
			freed += (v/want - 1) * (v/want - 1) / seeds
			plain += (w/want - 1) * (w/want - 1) / seeds
		}
		t.Logf("N = %d, B = %v: error %.2e, plain %.2e", s.N, s.B, math.Sqrt(freed), math.Sqrt(plain))
		if freed > 1.2*plain {
			t.Errorf("N = %d, B = %v: the error is %.2e, without taking out the luck %.2e", s.N, s.B, math.Sqrt(freed), math.Sqrt(plain))
		}
	}
}
