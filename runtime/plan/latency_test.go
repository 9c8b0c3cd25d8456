package plan

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestP99 compares with a simulation that was written apart from this one, with
// step times that vary by 3 % and messages of 0.2 ms. Here times are exact, so
// that gaps fall on few values and the percentile on one of them: within 3 %.
func TestP99(t *testing.T) {
	for _, c := range []struct {
		n, b int
		ms   float64
	}{{4, 1, 59.5}, {4, 3, 75.8}, {4, 4, 88.7}, {8, 1, 59.8}, {8, 5, 72.9}, {8, 8, 100.4}} {
		r, err := Follow(pair(c.n, .35, 6, 27.9, 1, c.b), 150_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("N = %d, B = %d: P99 is %.1f ms", c.n, c.b, r.P99)
		near(t, "P99", r.P99, c.ms, .03)
	}
}

// TestP99ByHand: one request makes a small step of 6 ms and with p = 0.005 a
// large one of 27.9 before the next token. 0.995 of the gaps are then 6 ms, at
// p = 0.02 only 0.98.
func TestP99ByHand(t *testing.T) {
	for p, want := range map[float64]float64{.005: 6, .02: 33.9} {
		r, err := Follow(pair(1, p, 6, 27.9), 50_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "P99", r.P99, want, 1e-9)
	}
	// Three requests take turns at a model with two seats: each waits for 2/3 of
	// the steps of 10 ms, so gaps are 10 and 20 ms.
	r, err := Follow(&Spec{N: 3, P: [][]float64{{1}}, Step: flat(10), Cap: []int{2}}, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "P99", r.P99, 20, 1e-9)
	near(t, "throughput", r.Throughput, 200, 1e-9)
}

// TestFollowAgainstChain: first come first served is not seen by the throughput.
// Mean z-squared over all systems is about 1.
func TestFollowAgainstChain(t *testing.T) {
	sum, n := 0.0, 0
	for _, c := range shapes() {
		if c.spec.Cap != nil && c.spec.Send != nil {
			continue // which requests a full batch takes matters for their phases
		}
		for _, size := range []int{1, 3} {
			b := ones(len(c.spec.P))
			b[len(b)-1] = size
			s := c.with(size, b...)
			exact, err := ChainWithin(s, 20_000)
			if err != nil {
				t.Fatal(c.name, err)
			}
			got, err := Follow(s, 60_000, uint64(n))
			if err != nil {
				t.Fatal(c.name, err)
			}
			z := (got.Throughput - exact.Throughput) / got.Error
			sum, n = sum+z*z, n+1
			if math.Abs(z) > 4 {
				t.Errorf("%s, N = %d: %v +- %v tokens/s, the chain says %v", c.name, size, got.Throughput, got.Error, exact.Throughput)
			}
		}
	}
	if sum/float64(n) > 1.8 {
		t.Errorf("mean z-squared is %.2f over %d systems", sum/float64(n), n)
	}
}

// TestMeanGap: throughput / N is the mean speed of a user, so the mean gap is
// N / throughput.
func TestMeanGap(t *testing.T) {
	s := pair(4, .35, 6, 27.9, 1, 3)
	g, err := newStage(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := g.enqueue(s.N, s.B)
	if err := x.until(1000); err != nil {
		t.Fatal(err)
	}
	from, tokens := x.clock, x.tokens
	x.gaps = []int{}
	if err := x.until(100_000); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, gap := range x.gaps {
		sum += gap
	}
	near(t, "mean gap", float64(sum)/float64(len(x.gaps)), float64(4*(x.clock-from))/(x.tokens-tokens), 1e-3)
}

func TestFollowRefuses(t *testing.T) {
	if _, err := Follow(pair(4, .35, 6, 27.9, 2, 4), 100_000, 1); !errors.Is(err, ErrDeadlock) {
		t.Errorf("infeasible thresholds: %v", err)
	}
	mute := pair(2, .5, 6, 27.9)
	mute.K = [][]float64{{0, 0}, {0, 0}}
	if _, err := Follow(mute, 1000, 1); err == nil || !strings.Contains(err.Error(), "commits no token") {
		t.Errorf("a system that commits nothing: %v", err)
	}
}
