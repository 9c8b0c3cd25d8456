package calibrate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/rng"
)

// world is answers whose scores depend on who wrote before, as those of models do:
// what follows a large model's token is surer. grid rounds scores, so that they tie.
type world struct {
	seed  uint64
	small bool
	grid  float64
}

func (w world) run(s *Score) func(threshold float64) (*Routed, error) {
	return func(threshold float64) (*Routed, error) {
		const tasks, tokens = 30, 40
		out := &Routed{Large: make([]int, tasks), Tokens: make([]int, tasks), Right: make([]bool, tasks)}
		for task := range tasks {
			calm := 1.0
			for pos := range tokens {
				key := rng.Key{Seed: w.seed, Req: uint64(task), Pos: pos}
				u := math.Pow(key.Float64(0), 3) * calm
				if w.grid > 0 {
					u = math.Floor(u/w.grid) * w.grid
				}
				if w.small {
					u = 1 - u
				}
				out.Scores = append(out.Scores, u)
				out.Tokens[task]++
				if calm = 1; s.large(u, threshold) {
					out.Large[task]++
					calm = 0.5
				}
			}
		}
		return out, nil
	}
}

// Every target is met where scores are fine, in few runs, in both directions; the
// share that is reported is that of the threshold that is reported.
func TestFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{seed: rapid.Uint64().Draw(t, "seed"), small: rapid.Bool().Draw(t, "small")}
		target := rapid.Float64Range(0.02, 0.5).Draw(t, "target")
		s := Score{Small: w.small}
		runs := 0
		got, err := find(target, w.small, w.run(&s), func(int) { runs++ })
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Share-target) > Tolerance(target)/2 || got.Tied || runs > 1+maxRuns {
			t.Fatalf("target %v: %+v in %d runs", target, got.Runs, runs)
		}
		again, _ := w.run(&s)(got.Threshold)
		if again.Share() != got.Share || !slices.Equal(again.Large, got.Run.Large) {
			t.Fatalf("the threshold %v gives %v, reported is %v", got.Threshold, again.Share(), got.Share)
		}
	})
}

// Where scores tie, what is found is one of the two shares around the target, and
// both are named.
func TestTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{seed: rapid.Uint64().Draw(t, "seed"), small: rapid.Bool().Draw(t, "small"), grid: 0.25}
		target := rapid.Float64Range(0.02, 0.5).Draw(t, "target")
		s := Score{Small: w.small}
		got, err := find(target, w.small, w.run(&s), func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1) // of all thresholds that differ
		for k := range 6 {
			at := float64(k) * w.grid
			if w.small {
				at = math.Nextafter(1-at, 2)
			}
			r, _ := w.run(&s)(at)
			if r.Share() > 0 { // none at all is no calibration
				best = min(best, math.Abs(r.Share()-target))
			}
		}
		if d := math.Abs(got.Share - target); d > best+1e-12 {
			t.Fatalf("target %v: found %v, there is one at a distance of %v", target, got.Share, best)
		}
		if got.Tied != (best > Tolerance(target)/2) || got.Tied && !(got.Below < target && target < got.Above) {
			t.Fatalf("target %v: tied %v, between %v and %v, best distance %v", target, got.Tied, got.Below, got.Above, best)
		}
	})
}

// The shortest decimal lies between the bounds, and is no longer than it has to be.
func TestShortest(t *testing.T) {
	for _, c := range []struct{ lo, hi, want float64 }{
		{0.49, 0.51, 0.5},
		{0.4, 0.5, 0.45},
		{0.123456, 0.123457, 0.1234565},
		{-0.5, 0.25, 0.2},
		{2, 3, 2.5},
		{0.5, math.Nextafter(0.5, 1), math.Nextafter(0.5, 1)}, // nothing lies between
	} {
		if got := shortest(c.lo, c.hi); got != c.want {
			t.Errorf("%v to %v: %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-30, 30).Draw(t, "lo")
		hi := lo + rapid.Float64Range(1e-12, 2).Draw(t, "width")
		got := shortest(lo, hi)
		if !(got > lo && got < hi) {
			t.Fatalf("%v to %v: %v", lo, hi, got)
		}
		// A decimal of that many digits lies in every interval of this width.
		digits := int(math.Ceil(math.Log10(max(math.Abs(lo), math.Abs(hi))/(hi-lo)))) + 2
		if n := len(strings.TrimLeft(strings.ReplaceAll(strings.Split(strconv.FormatFloat(got, 'e', -1, 64), "e")[0], ".", ""), "-")); n > min(max(digits, 1), 17) {
			t.Fatalf("%v to %v: %v has %d digits, %d would do", lo, hi, got, n, digits)
		}
	})
}

// The interval holds the share and narrows with the number of tasks.
func TestInterval(t *testing.T) {
	r := &Routed{}
	width := math.Inf(1)
	for n := range 400 {
		r.Large, r.Tokens = append(r.Large, n%3), append(r.Tokens, 20+n%7)
		if n == 24 || n == 399 {
			low, high := r.Interval(500, 1)
			if s := r.Share(); !(low < s && s < high) || high-low > width/2 {
				t.Errorf("%d tasks: %v in %v to %v, before %v wide", n+1, s, low, high, width)
			}
			width = high - low
		}
	}
}
