package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/runtime/event"
)

func closeTo(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > eps {
		t.Errorf("%s is %v, want %v within %v", what, got, want, eps)
	}
}

// The share of a constant law is right within its stated error: over 800 runs
// the mean squared error is one squared standard error, and so is that of the
// drift, which one run in 370 shows at three of them.
func TestRoutingErrorIsAsStated(t *testing.T) {
	const runs = 800
	rng := rand.New(rand.NewPCG(11, 1))
	for _, p := range []float64{0.1, 0.35, 0.8} {
		for _, rows := range []int{30, 400, 1500} {
			var z2, zd2, beyond float64
			for range runs {
				r := newRouting(2, 50)
				for range rows {
					var j event.Peer
					if rng.Float64() < p {
						j = 1
					}
					r.add(0, j, 1)
				}
				z := (r.share(1) - p) / math.Sqrt(p*(1-p)/r.effective())
				z2 += z * z / runs
				d := r.drift(0)
				zd2 += d.Z * d.Z / runs
				if math.Abs(d.Z) > 3 {
					beyond++
				}
			}
			// z^2 has variance 2 and a little more, so its mean over the runs has a
			// standard error of 0.05.
			closeTo(t, "mean z^2", z2, 1, 0.2)
			if rows > 100 {
				closeTo(t, "mean z^2 of the drift", zd2, 1, 0.25)
				if beyond > 0.015*runs {
					t.Errorf("p %v: %v of %v constant laws drift", p, beyond, runs)
				}
			}
		}
	}
}

// Half-life 50 in the long run: weights sum to 1/(1-2^(-1/50)) = 72.6, worth
// 144 rows of equal weight.
func TestRoutingMemory(t *testing.T) {
	r := newRouting(2, 50)
	for range 2000 {
		r.add(0, 0, 1)
	}
	closeTo(t, "effective rows", r.effective(), 144.3, 0.1)
	for range 50 {
		r.add(0, 1, 1)
	}
	closeTo(t, "share after a half-life", r.share(1), 0.5, 1e-6)
	d := r.drift(0)
	if d.Z < 5 || d.Now < 0.49 || d.Before > 0.1 {
		t.Errorf("a jump of the share shows as %+v", d)
	}
}

// Below 20 rows a belief worth one row counts too; from there on the rows alone.
func TestRoutingPrior(t *testing.T) {
	r := newRouting(4, 50)
	for j := range 4 {
		closeTo(t, "prior", r.share(j), 0.25, 0)
	}
	r.add(1, 0, 1)
	closeTo(t, "after a row", r.share(0), 1.25/2, 1e-12)
	for range minRows - 2 {
		r.add(1, 0, 1)
	}
	if r.known() || r.share(0) == 1 {
		t.Error("known too early")
	}
	r.add(1, 0, 1)
	if !r.known() || r.share(0) != 1 || r.share(1) != 0 {
		t.Errorf("a row that always goes home has shares %v and %v", r.share(0), r.share(1))
	}
	r.restart()
	closeTo(t, "belief after a restart", r.share(0), 1, 1e-12)
	r.add(1, 1, 1)
	closeTo(t, "the first new row counts as much", r.share(1), 0.5, 1e-12)
}

// Tokens by the way a row goes, and those its destination appends later.
func TestRoutingTokens(t *testing.T) {
	r := newRouting(2, 50)
	for range 200 {
		r.add(0, 0, 1)
		r.add(0, 1, 0)
		at := r.tokens[1].n
		r.add(0, 0, 1)
		r.add(0, 1, 0)
		r.credit(1, at, 3) // after another one has gone the same way
		r.credit(1, at+1, 3)
	}
	closeTo(t, "staying", r.tokens[0].mean(), 1, 1e-12)
	closeTo(t, "leaving", r.tokens[1].mean(), 3, 1e-9)
	r.restart()
	closeTo(t, "after a restart", r.tokens[1].mean(), 3, 1e-9)
	r.credit(1, 1, 5) // of a row before the restart
	r.add(0, 1, 0)
	closeTo(t, "the first new row decides", r.tokens[1].mean(), 0, 0)
}
