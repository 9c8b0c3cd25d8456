package cost

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tokenrouter/runtime/rng"
)

// Stalls are what no coefficient follows: a share of all steps is longer by one
// of some lengths, all equally likely.
type Stalls struct {
	Share float64   `json:"share"`
	Ms    []float64 `json:"ms"` // shortest first
}

// strata is how many lengths stand for all that were measured.
const strata = 32

// mostStrata bounds the lengths of a file.
const mostStrata = 1 << 16

// Mean is how much longer a step is that stalls, in ms; 0 where none does.
func (s *Stalls) Mean() float64 {
	if s == nil {
		return 0
	}
	return mean(s.Ms)
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// perStep is how much longer steps are, over all of them, in ms.
func (s *Stalls) perStep() float64 {
	if s == nil {
		return 0
	}
	return s.Share * s.Mean()
}

// of is the stall of a step by two draws of the key, from the n-th on.
func (s *Stalls) of(key rng.Key, n int) time.Duration {
	if s == nil || key.Float64(n) >= s.Share {
		return 0
	}
	return millis(s.Ms[int(key.Float64(n+1)*float64(len(s.Ms)))])
}

// Stalling says whether any step stalls.
func (p *Profile) Stalling() bool {
	return slices.ContainsFunc(p.Rows, func(r Row) bool { return r.Stalls != nil || r.OverheadStalls != nil })
}

// Stall draws by how much the step of a model with that number is longer than Step
// says, and by how much what follows is longer than Overhead. It is a function of
// its arguments: whoever asks for the same step, on whatever clock, meets the
// same stall.
func (p *Profile) Stall(seed uint64, model int, step uint64) (longer, later time.Duration) {
	r := &p.Rows[model]
	key := rng.Key{Seed: seed, Pos: int(step), Model: model, Purpose: rng.Stall}
	return r.Stalls.of(key, 0), r.OverheadStalls.of(key, 2)
}

// MeanStall is what stalls add to a step and to what follows it, over all steps,
// in ms.
func (p *Profile) MeanStall(model int) float64 {
	r := &p.Rows[model]
	return r.Stalls.perStep() + r.OverheadStalls.perStep()
}

// stallsOf sums up by how much some of n steps were longer, in ms; nil for none.
// Where there are many, each length is the mean of a part of them, so that steps
// are in the mean as long as they were.
func stallsOf(longer []float64, n int) *Stalls {
	if len(longer) == 0 {
		return nil
	}
	slices.Sort(longer)
	s := &Stalls{Share: round(float64(len(longer)) / float64(n))}
	parts := min(strata, len(longer))
	for i := range parts {
		s.Ms = append(s.Ms, round(mean(longer[i*len(longer)/parts:(i+1)*len(longer)/parts])))
	}
	return s
}

// sift takes the times that are stalls, more than six deviations above their fit,
// out of a sum: it returns what they were longer by, in ms, and what all others
// took over what the fit says of them.
type sift struct {
	limit           float64 // of (time - fit) / fit
	least           float64 // of time - fit, ms
	longer          []float64
	fitted, measure float64
}

// clockMs is below what clocks tell apart: times that differ by less are equal.
const clockMs = 1e-3

func (s *sift) add(fit, y float64) {
	if y-fit > max(s.limit*fit, s.least) {
		s.longer = append(s.longer, y-fit)
		return
	}
	s.fitted, s.measure = s.fitted+fit, s.measure+y
}

// level is what times beside stalls are of their fit.
func (s *sift) level() float64 {
	if s.fitted == 0 || s.measure == 0 {
		return 1
	}
	return s.measure / s.fitted
}

func (s *Stalls) check(field string) error {
	switch {
	case s == nil:
		return nil
	case !(s.Share > 0 && s.Share <= 1):
		return fmt.Errorf("share of %s is %v; give a share above 0, 1 at most", field, s.Share)
	case len(s.Ms) == 0 || len(s.Ms) > mostStrata:
		return fmt.Errorf("ms of %s has %d lengths; give 1 to %d, all equally likely", field, len(s.Ms), mostStrata)
	}
	for _, ms := range s.Ms {
		if !within(ms, maxMillis) || math.IsNaN(ms) {
			return fmt.Errorf("ms of %s has %v; a stall lies in 0 to %v", field, ms, maxMillis)
		}
	}
	return nil
}
