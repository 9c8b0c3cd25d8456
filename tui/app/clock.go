package app

import (
	"math"
	"slices"

	"tokenrouter/tui/board"
)

// nextClock is the other clock that a running session can have, "" for none:
// what no model writes cannot go live, and virtual time is no wall time.
func nextClock(c string) string {
	switch c {
	case "live":
		return "paced"
	case "paced":
		return "live"
	}
	return ""
}

// speeds are those that the keys walk through; virtual time has more of them, and
// no bound behind the last.
var (
	speeds    = []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 16}
	simSpeeds = append(slices.Clone(speeds), 32, 64, 125, 250, 500, 1000, 2000, 5000, 10_000, math.Inf(1))
)

// nextSpeed is the next faster or slower of the speeds; 0 is as fast as it can.
func nextSpeed(s *board.Status, d int) float64 {
	all, now := speeds, s.Speed
	if s.Virtual() {
		all = simSpeeds
		if now == 0 {
			now = math.Inf(1)
		}
	}
	next := now
	if d > 0 {
		if i := slices.IndexFunc(all, func(v float64) bool { return v > now*1.001 }); i >= 0 {
			next = all[i]
		}
	} else {
		for _, v := range slices.Backward(all) {
			if v < now*0.999 {
				next = v
				break
			}
		}
	}
	if math.IsInf(next, 1) {
		return 0
	}
	return next
}
