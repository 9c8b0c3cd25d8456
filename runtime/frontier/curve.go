package frontier

import (
	"cmp"
	"math"
	"slices"
)

// XY is a point of a curve: x is a share or a cost, y an accuracy.
type XY struct{ X, Y float64 }

// Curve is points joined by straight lines, in the order of X. A line between two
// points is what a coin gets that chooses between the two for each problem, if
// these are about equally long.
type Curve []XY

// NewCurve sorts points, those of equal X by Y. Points that are no numbers are left
// out.
func NewCurve(points ...XY) Curve {
	c := slices.DeleteFunc(slices.Clone(points), func(p XY) bool { return math.IsNaN(p.X) || math.IsNaN(p.Y) })
	slices.SortFunc(c, func(a, b XY) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	return c
}

// At interpolates; NaN outside of the curve. Where points lie above each other it is
// the mean of the lowest and the highest.
func (c Curve) At(x float64) float64 {
	if len(c) == 0 || !(x >= c[0].X && x <= c[len(c)-1].X) {
		return math.NaN()
	}
	i, found := slices.BinarySearchFunc(c, x, func(p XY, x float64) int { return cmp.Compare(p.X, x) })
	if !found {
		return between(c[i-1], c[i], x)
	}
	j := i
	for j+1 < len(c) && c[j+1].X == x {
		j++
	}
	return (c[i].Y + c[j].Y) / 2
}

func between(a, b XY, x float64) float64 { return a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X) }

// Area is the mean of Y over X from lo to hi, by trapezoids: the area below the curve
// over the width. NaN where the curve does not cover that.
func (c Curve) Area(lo, hi float64) float64 {
	if len(c) == 0 || !(lo < hi) || c[0].X > lo || c[len(c)-1].X < hi {
		return math.NaN()
	}
	area := 0.0
	for i := 1; i < len(c); i++ {
		a, b := c[i-1], c[i]
		from, to := max(a.X, lo), min(b.X, hi)
		if from >= to {
			continue
		}
		area += (to - from) * (between(a, b, from) + between(a, b, to)) / 2
	}
	return area / (hi - lo)
}

// Reach is the smallest X at which the curve is at y or above; NaN if it never is.
func (c Curve) Reach(y float64) float64 {
	for i, p := range c {
		if p.Y < y {
			continue
		}
		if i == 0 || c[i-1].X == p.X {
			return p.X
		}
		a := c[i-1] // below y, or it had been reached there
		return a.X + (p.X-a.X)*(y-a.Y)/(p.Y-a.Y)
	}
	return math.NaN()
}

// Recovered is the share of the gap from small to large that y closes: the
// performance gap recovered of RouteLLM (arXiv 2406.18665, section 3.2). Of the area
// under a curve from all small to all large it is the average one, APGR, which that
// paper takes at ten costs and this package by the integral. NaN where the large
// model is not the better one.
func Recovered(y, small, large float64) float64 {
	if !(large > small) {
		return math.NaN()
	}
	return (y - small) / (large - small)
}

// Pareto marks the points that no other one dominates: none is as good in both and
// better in one. Better is a higher y, and a lower x unless more is better. Points
// that are no numbers are never marked.
func Pareto(points []XY, moreX bool) []bool {
	out := make([]bool, len(points))
	for i, p := range points {
		out[i] = !math.IsNaN(p.X) && !math.IsNaN(p.Y)
		for _, q := range points {
			if dominates(q, p, moreX) {
				out[i] = false
				break
			}
		}
	}
	return out
}

func dominates(q, p XY, moreX bool) bool {
	if moreX {
		q.X, p.X = -q.X, -p.X
	}
	return q.X <= p.X && q.Y >= p.Y && (q.X < p.X || q.Y > p.Y)
}
