package ladder

import (
	"math"
	"slices"

	"tokenrouter/runtime/metrics"
)

// Causes of a difference between two rungs.
const (
	Batching  = "batching"   // more than one request at a time
	Reprefill = "re-prefill" // KV is kept where a request was
	AsyncRuns = "async"      // nobody waits for another model's batch
	Delayed   = "delayed"    // batches wait for B*
)

// Causes in the order in which they are switched.
func Causes() []string { return []string{Reprefill, Batching, AsyncRuns, Delayed} }

// above gives, for each rung but the highest, the one that differs from it in one
// thing alone, and that thing.
var above = map[string]struct{ rung, cause string }{
	Stateless:  {Sequential, Reprefill},
	Recompute:  {Lockstep, Reprefill},
	Resubmit:   {Async, Reprefill},
	Sequential: {Lockstep, Batching},
	Lockstep:   {Async, AsyncRuns},
	Async:      {TokenRouter, Delayed},
}

// Path is the way from a rung to that of TokenRouter, one thing switched at a
// step: both ends and what lies between. It is nil where there is none.
func Path(from string) []string {
	path := []string{from}
	for from != TokenRouter {
		next, ok := above[from]
		if !ok {
			return nil
		}
		from = next.rung
		path = append(path, from)
	}
	return path
}

// Split is by how much TokenRouter's figure is that of a lower rung, and what of
// it each cause brings: measured by switching one at a time, from the lower rung
// up. The parts multiply to the total, exactly, as all are means over the same
// seeds of logarithms. Another order of switching would give other parts: what a
// cause is worth depends on what is there already.
type Split struct {
	Key   string // of the figure
	From  string // the lower rung
	N     int
	Total Ratio
	Parts []Part
}

// Part is what one cause brings.
type Part struct {
	Cause string
	Ratio Ratio
}

// Split takes the way from a rung up to TokenRouter apart, at one concurrency. Its
// seeds are those that all rungs on the way were run with. ok is false if there is
// none, or no way.
func (t *Table) Split(cells []Cell, key, from string, n int) (s Split, ok bool) {
	path := Path(from)
	at := slices.IndexFunc(t.Figures, func(f Figure) bool { return f.Key == key })
	if len(path) < 2 || at < 0 {
		return s, false
	}
	xs := make([][]float64, len(path))
	for i, name := range path {
		k := slices.IndexFunc(t.Grid.Rungs, func(r Rung) bool { return r.Name == name })
		if k < 0 {
			return s, false
		}
		xs[i] = t.numbers(cells, &t.Figures[at], t.Grid.Rungs[k], n)
	}
	for k := range t.Grid.Seeds {
		for i := range xs {
			if !(xs[i][k] > 0) || math.IsInf(xs[i][k], 0) {
				for j := range xs { // a seed counts on the whole way or not at all
					xs[j][k] = math.NaN()
				}
				break
			}
		}
	}
	ratio := func(from, to int) Ratio {
		r := Ratio{Of: path[to], To: path[from], N: n, ToN: n, Key: key}
		r.Mean, r.Lo, r.Hi, r.Pairs = metrics.PairedRatio(xs[from], xs[to])
		return r
	}
	last := len(path) - 1
	s = Split{Key: key, From: from, N: n, Total: ratio(0, last)}
	for i := range last {
		s.Parts = append(s.Parts, Part{above[path[i]].cause, ratio(i, i+1)})
	}
	return s, s.Total.Pairs > 0
}

// Part gives what a cause brings, ok false where it is not on the way.
func (s *Split) Part(cause string) (Ratio, bool) {
	for _, p := range s.Parts {
		if p.Cause == cause {
			return p.Ratio, true
		}
	}
	return Ratio{}, false
}
