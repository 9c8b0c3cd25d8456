package plan

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestBinomialLaw compares the distribution function with sums of probabilities
// by the gamma function.
func TestBinomialLaw(t *testing.T) {
	for _, n := range []int{1, 2, 7, 40, 1000} {
		for _, p := range []float64{1e-6, .02, .35, .5, .99} {
			var c cdf
			c.fill(n, p)
			sum := 0.0
			for x := range n + 1 {
				sum += math.Exp(logChoose(n, x) + float64(x)*math.Log(p) + float64(n-x)*math.Log1p(-p))
				got := 0.0
				switch i := x - c.lo; {
				case i >= len(c.at):
					got = 1
				case i >= 0:
					got = c.at[i]
				}
				if math.Abs(got-sum) > 1e-11 {
					t.Fatalf("n = %d, p = %v: P(X <= %d) is %v, want %v", n, p, x, got, sum)
				}
			}
		}
	}
}

// TestBinomialInverts: a draw is the least x whose distribution function exceeds
// u, whether or not its row is kept.
func TestBinomialInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		u := rapid.Float64Range(0, 0.999999).Draw(t, "u")
		kept := binomial{p: rapid.Float64Range(0.001, 0.999).Draw(t, "p")}
		loose := binomial{p: kept.p, kept: keptValues}
		x := kept.draw(n, u)
		if again := kept.draw(n, u); again != x {
			t.Fatalf("%d, then %d", x, again)
		}
		if y := loose.draw(n, u); y != x {
			t.Fatalf("%d when kept, %d when not", x, y)
		}
		if len(loose.rows) != 0 {
			t.Fatal("a row was kept beyond the bound")
		}
		var c cdf
		c.fill(n, kept.p)
		i := x - c.lo
		if i < 0 || i >= len(c.at) || c.at[i] <= u || (i > 0 && c.at[i-1] > u) {
			t.Fatalf("%d is not the inverse of %v", x, u)
		}
	})
}

// TestHypergeometricLaw sums the draws over a grid of u.
func TestHypergeometricLaw(t *testing.T) {
	const grid = 20_000
	for _, c := range []struct{ have, rest, take int }{{3, 5, 4}, {5, 1, 4}, {1, 6, 2}, {4, 4, 7}} {
		counts := make([]int, c.take+1)
		for i := range grid {
			counts[hypergeometric(c.have, c.rest, c.take, (float64(i)+.5)/grid)]++
		}
		for n, got := range counts {
			want := 0.0
			if n <= c.have && c.take-n <= c.rest {
				want = math.Exp(logChoose(c.have, n) + logChoose(c.rest, c.take-n) - logChoose(c.have+c.rest, c.take))
			}
			if math.Abs(float64(got)/grid-want) > 2./grid {
				t.Errorf("%d of %+v: %v, want %v", n, c, float64(got)/grid, want)
			}
		}
	}
}
