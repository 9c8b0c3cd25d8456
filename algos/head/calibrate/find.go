package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"tokenrouter/algos/head/pair"
	"tokenrouter/runtime/rng"
)

// Result is a threshold and what it gave.
type Result struct {
	Target    float64
	Threshold float64
	Share     float64 // of the tasks it was chosen on
	Run       *Routed // under Threshold
	Runs      []Try   // in turn, without the first one of the small model alone
	// Where many rows have the same score no threshold may come near: Below and
	// Above are then the nearest shares that there are. Tied is false else.
	Tied         bool
	Below, Above float64
}

// Try is one threshold and its share.
type Try struct {
	Threshold float64 `json:"threshold"`
	Share     float64 `json:"share"`
}

// Tolerance is how far a share may be from a target: half a point, or a tenth of the
// target where that is more.
func Tolerance(target float64) float64 { return max(0.005, target/10) }

// maxRuns bounds a search; half of the scores between the bounds are ruled out by
// each run at worst.
const maxRuns = 24

// Find chooses a threshold for a target share by runs over the same tasks. tell is
// called before each run.
func Find(ctx context.Context, p *pair.Pair, tasks *Tasks, s Score, target float64, tell func(run int)) (*Result, error) {
	return find(target, s.Small, func(threshold float64) (*Routed, error) { return tasks.Under(ctx, p, s, threshold) }, tell)
}

// find works on keys that speak for the large model: a key is a score, or its
// negative where the score speaks for the small one.
func find(target float64, small bool, run func(threshold float64) (*Routed, error), tell func(run int)) (*Result, error) {
	if !(target > 0 && target < 1) {
		return nil, fmt.Errorf("a share of %v; give one between 0 and 1", target)
	}
	never := math.Inf(1)
	if small {
		never = math.Inf(-1)
	}
	tell(0)
	last, err := run(never)
	if err != nil {
		return nil, err
	}
	out := &Result{Target: target}
	best := math.Inf(1)
	lo, hi := math.Inf(-1), math.Inf(1) // keys: the share at lo is too large, at hi too small
	above, below := 1.0, 0.0
	for n := 1; n <= maxRuns; n++ {
		keys := last.keys(small)
		at, ok := next(keys, target, lo, hi)
		if !ok {
			break
		}
		threshold := between(keys, at, small)
		tell(n)
		if last, err = run(threshold); err != nil {
			return nil, err
		}
		share := last.Share()
		out.Runs = append(out.Runs, Try{threshold, share})
		if d := math.Abs(share - target); d < best {
			best, out.Threshold, out.Share, out.Run = d, threshold, share, last
		}
		if best <= target/100 {
			break
		}
		if share > target {
			lo, above = at, share
		} else {
			hi, below = at, share
		}
	}
	if best > Tolerance(target)/2 {
		out.Tied, out.Below, out.Above = true, below, above
	}
	return out, nil
}

// keys are the scores in the direction of the large model, rising.
func (r *Routed) keys(small bool) []float64 {
	out := slices.Clone(r.Scores)
	if small {
		for i := range out {
			out[i] = -out[i]
		}
	}
	slices.Sort(out)
	return out
}

// next is the key to try: the quantile of the target among the keys of the last
// run, or, where that is outside of the bounds, the middle of those between them.
func next(keys []float64, target, lo, hi float64) (float64, bool) {
	if len(keys) == 0 {
		return 0, false
	}
	n := len(keys)
	if at := keys[min(n-1, max(0, n-int(math.Round(target*float64(n)))))]; at > lo && at < hi {
		return at, true
	}
	from, to := slices.IndexFunc(keys, func(k float64) bool { return k > lo }), n
	if i, _ := slices.BinarySearch(keys, hi); i < to {
		to = i
	}
	if from < 0 || from >= to {
		return 0, false
	}
	return keys[from+(to-from)/2], true
}

// between is a threshold that tells the rows with keys from at on from those below:
// the shortest decimal that does, whether a router's comparison takes the threshold
// itself in (R2R) or not (Co-LLM).
func between(keys []float64, at float64, small bool) float64 {
	i, _ := slices.BinarySearch(keys, at)
	lo := math.Inf(-1)
	if i > 0 {
		lo = keys[i-1]
	}
	hi := at
	if small { // score < threshold for keys >= at: -at < threshold <= -lo
		lo, hi = -at, -lo
	}
	return shortest(lo, hi)
}

// shortest is the decimal of the fewest digits between lo and hi, or hi where there
// is none; one of them is finite.
func shortest(lo, hi float64) float64 {
	if math.IsInf(lo, -1) || math.IsInf(hi, 1) { // all rows or none
		if math.IsInf(hi, 1) {
			return math.Nextafter(lo, math.Inf(1))
		}
		return hi
	}
	for digits := range 17 {
		for _, x := range []float64{hi, lo + (hi-lo)/2} {
			v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits, 64), 64)
			if err == nil && v > lo && v < hi {
				return v
			}
		}
	}
	return hi
}

// Interval is the middle 95 % of the share over resampled tasks.
func (r *Routed) Interval(resamples int, seed uint64) (low, high float64) {
	n := len(r.Tokens)
	shares := make([]float64, resamples)
	for k := range shares {
		key := rng.Key{Seed: seed, Req: uint64(k), Purpose: rng.Resample}
		var large, tokens int
		for i := range n {
			j := int(key.Float64(i) * float64(n))
			large, tokens = large+r.Large[j], tokens+r.Tokens[j]
		}
		shares[k] = float64(large) / float64(max(tokens, 1))
	}
	if resamples == 0 {
		return r.Share(), r.Share()
	}
	slices.Sort(shares)
	at := func(q float64) float64 { return shares[int(q*float64(resamples-1)+0.5)] }
	return at(0.025), at(0.975)
}
