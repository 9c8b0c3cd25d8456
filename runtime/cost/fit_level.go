package cost

import (
	"math"
	"slices"
)

const (
	recent  = 8    // times of a level that are kept; as many clipped on one side are a new level
	warm    = 5    // times that are taken by their median
	clipAt  = 4.0  // standard deviations
	perDev  = 1.25 // standard deviation of a normal law / its mean absolute deviation
	leastSD = 0.01 // of the level: a clock without noise would clip everything
)

// level is a mean that forgets and is not moved by single outliers.
type level struct {
	n    int
	w    float64 // what its times count together
	at   float64
	dev  float64 // mean absolute deviation
	last [recent]float64
	run  int // times in a row that were clipped: above 0 on the upper side, below on the lower
	seen int // batch of the fitter that it was last given
}

// add takes a time and says whether it was clipped.
func (l *level) add(x, keep float64) (clipped bool) {
	l.last[l.n%recent] = x
	l.n++
	l.w = keep*l.w + 1
	if l.n <= warm {
		l.start(l.n)
		return false
	}
	limit := clipAt * max(perDev*l.dev, leastSD*l.at)
	r := x - l.at
	c := min(max(r, -limit), limit)
	switch {
	case c == r:
		l.run = 0
	case c > 0:
		l.run = max(l.run, 0) + 1
	default:
		l.run = min(l.run, 0) - 1
	}
	if l.run >= recent || l.run <= -recent {
		l.start(recent)
		l.w, l.run = min(l.w, recent), 0
		return true
	}
	gain := 1 / l.w
	l.at += gain * c
	l.dev += gain * (math.Abs(c) - l.dev)
	return c != r
}

// start takes the level from the n times kept.
func (l *level) start(n int) {
	var buf [recent]float64
	xs := buf[:n]
	copy(xs, l.last[:n])
	l.at = median(xs)
	l.dev = 0
	for _, x := range xs {
		l.dev += math.Abs(x-l.at) / float64(n)
	}
}

// median of at least one number; it sorts xs.
func median(xs []float64) float64 {
	slices.Sort(xs)
	n := len(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}
