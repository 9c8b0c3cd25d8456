package frontier_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/frontier"
)

// Closed cases: a straight line, a step, a point in the middle, a clipped range.
func TestAreas(t *testing.T) {
	line := frontier.NewCurve(frontier.XY{X: 0, Y: 0.4}, frontier.XY{X: 1, Y: 0.8})
	near(t, "line", line.Area(0, 1), 0.6, 1e-15)
	near(t, "its first fifth", line.Area(0, 0.2), 0.44, 1e-15)
	tent := frontier.NewCurve(frontier.XY{X: 1, Y: 0.8}, frontier.XY{X: 0, Y: 0.4}, frontier.XY{X: 0.1, Y: 0.9})
	near(t, "tent", tent.Area(0, 1), 0.1*0.65+0.9*0.85, 1e-15)
	near(t, "its slope", tent.At(0.05), 0.65, 1e-15)
	step := frontier.NewCurve(frontier.XY{X: 0, Y: 0}, frontier.XY{X: 0.5, Y: 0}, frontier.XY{X: 0.5, Y: 1}, frontier.XY{X: 1, Y: 1})
	near(t, "step", step.Area(0, 1), 0.5, 1e-15)
	near(t, "at the step", step.At(0.5), 0.5, 1e-15)
	near(t, "reach of the step", step.Reach(0.3), 0.5, 1e-15)
	near(t, "reach of the tent", tent.Reach(0.65), 0.05, 1e-15)
	near(t, "reach of the begin", tent.Reach(0.1), 0, 0)
	for what, x := range map[string]float64{
		"outside": line.Area(0, 1.1), "empty range": line.Area(0.3, 0.3), "no curve": frontier.Curve(nil).Area(0, 1),
		"beyond": line.At(1.5), "never reached": line.Reach(0.9), "no gap": frontier.Recovered(0.5, 0.7, 0.7),
	} {
		if !math.IsNaN(x) {
			t.Errorf("%s: %v", what, x)
		}
	}
	near(t, "recovered", frontier.Recovered(0.7, 0.4, 0.8), 0.75, 1e-15)
}

func curves(t *rapid.T) frontier.Curve {
	points := []frontier.XY{{X: 0, Y: rapid.Float64Range(0, 1).Draw(t, "first")}, {X: 1, Y: rapid.Float64Range(0, 1).Draw(t, "last")}}
	for range rapid.IntRange(0, 8).Draw(t, "n") {
		points = append(points, frontier.XY{X: rapid.Float64Range(0, 1).Draw(t, "x"), Y: rapid.Float64Range(0, 1).Draw(t, "y")})
	}
	return frontier.NewCurve(points...)
}

// The area is that of a sum of many thin slices, lies within the curve, adds up over
// parts of the range, and grows with any point of the curve.
func TestAreaProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curves(t)
		lo := rapid.Float64Range(0, 0.5).Draw(t, "lo")
		hi := rapid.Float64Range(lo+0.1, 1).Draw(t, "hi")
		area := c.Area(lo, hi)
		const thin = 20_000
		naive := 0.0
		for i := range thin {
			naive += c.At(lo+(hi-lo)*(float64(i)+0.5)/thin) / thin
		}
		if math.Abs(area-naive) > 1e-3 { // a jump falls within one slice
			t.Fatalf("area %v, by slices %v: %v", area, naive, c)
		}
		low := slices.MinFunc(c, func(a, b frontier.XY) int { return cmp.Compare(a.Y, b.Y) }).Y
		high := slices.MaxFunc(c, func(a, b frontier.XY) int { return cmp.Compare(a.Y, b.Y) }).Y
		if area < low-1e-12 || area > high+1e-12 {
			t.Fatalf("area %v outside of %v to %v", area, low, high)
		}
		mid := rapid.Float64Range(lo+0.01, hi-0.01).Draw(t, "mid")
		if parts := (c.Area(lo, mid)*(mid-lo) + c.Area(mid, hi)*(hi-mid)) / (hi - lo); math.Abs(parts-area) > 1e-9 {
			t.Fatalf("in parts %v, in one %v", parts, area)
		}
		up := slices.Clone(c)
		up[rapid.IntRange(0, len(c)-1).Draw(t, "which")].Y += rapid.Float64Range(0, 1).Draw(t, "by")
		if frontier.NewCurve(up...).Area(lo, hi) < area-1e-12 {
			t.Fatalf("a higher point lowers the area: %v", c)
		}
	})
}

// Reach gives the first place: the curve is at y there, and below it before.
func TestReachProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curves(t)
		y := rapid.Float64Range(0, 1).Draw(t, "y")
		x := c.Reach(y)
		if math.IsNaN(x) {
			if i := slices.IndexFunc(c, func(p frontier.XY) bool { return p.Y >= y }); i >= 0 {
				t.Fatalf("%v reaches %v at point %d", c, y, i)
			}
			return
		}
		for i := range 200 {
			if at := x * float64(i) / 200; at < x-1e-9 && c.At(at) > y+1e-6 {
				t.Fatalf("%v is above %v at %v, before %v", c, y, at, x)
			}
		}
	})
}

// The Pareto set is what a sweep from the best side leaves: going by x, a point
// counts if it is higher than all with a better x, and as high as any with its own.
func TestPareto(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := rapid.IntRange(0, 6) // ties are common
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) frontier.XY {
			return frontier.XY{X: float64(grid.Draw(t, "x")), Y: float64(grid.Draw(t, "y"))}
		}), 1, 12).Draw(t, "points")
		more := rapid.Bool().Draw(t, "more")
		got := frontier.Pareto(points, more)
		for i, p := range points {
			better, own := math.Inf(-1), math.Inf(-1)
			for _, q := range points {
				if q.X < p.X && !more || q.X > p.X && more {
					better = max(better, q.Y)
				}
				if q.X == p.X {
					own = max(own, q.Y)
				}
			}
			if want := p.Y > better && p.Y == own; got[i] != want {
				t.Fatalf("%v of %v: %v, want %v (more %v)", p, points, got[i], want, more)
			}
		}
	})
	if got := frontier.Pareto([]frontier.XY{{X: math.NaN(), Y: 1}, {X: 1, Y: math.NaN()}, {X: 1, Y: 0}}, false); got[0] || got[1] || !got[2] {
		t.Errorf("what is no number: %v", got)
	}
}
