package metrics

import (
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Before and after are compared by the means of 1-s bins.
const (
	binNs   = int64(time.Second)
	maxBins = 120 // latest bins of a side that are kept
	minBins = 5   // on each side, below it says what is missing
	maxWarm = 10 * time.Second
)

// tally is what happened in one bin.
type tally struct{ tokens, large int64 }

// stretch is the time between two changes.
type stretch struct {
	from    int64 // running time of the change
	warm    int64 // running time at which its bins begin
	bins    []tally
	open    tally
	end     int64 // of the open bin
	answers answers
}

func newStretch(from, warm int64) stretch {
	return stretch{from: from, warm: warm, end: warm + binNs}
}

// roll closes the bins that are over at t.
func (s *stretch) roll(t int64) {
	over := (t - s.end + binNs) / binNs
	if t < s.end {
		return
	}
	if over > maxBins {
		s.end += (over - maxBins - 1) * binNs
	}
	for ; t >= s.end; s.end += binNs {
		if len(s.bins) == maxBins {
			s.bins = slices.Delete(s.bins, 0, 1)
		}
		s.bins = append(s.bins, s.open)
		s.open = tally{}
	}
}

func (s *stretch) add(t int64, large bool, n int64) {
	if t < s.warm {
		return
	}
	s.roll(t)
	s.open.tokens += n
	if large {
		s.open.large += n
	}
}

// changes keeps what changed, and how it ran before and after.
type changes struct {
	marks      []Mark
	marked     []change // what the last mark stands for
	live       string   // router that decides, with its hash
	file       string   // its file
	thresholds string
	mean       float64 // ns a request takes, of the latest
	changed    bool
	what       []change // between before and after
	before     stretch
	after      stretch
}

func newChanges() changes { return changes{thresholds: eager} }

// start begins the first stretch.
func (c *changes) start(t int64) {
	c.after = newStretch(t, t+c.warm())
}

// warm is how long after a change requests still come from before it.
func (c *changes) warm() int64 {
	return int64(min(max(c.mean, float64(time.Second)), float64(maxWarm)))
}

// lasted notes how long a request took.
func (c *changes) lasted(ns int64) {
	const weight = 0.1
	if c.mean == 0 {
		c.mean = float64(ns)
		return
	}
	c.mean += weight * (float64(ns) - c.mean)
}

func (c *changes) add(t int64, large bool, n int64) { c.after.add(t, large, n) }

func (c *changes) answered(right bool) {
	c.after.answers.checked++
	if right {
		c.after.answers.right++
	}
}

// change ends the stretch. One that was too short to compare with does not
// become "before": then what changed adds up.
func (c *changes) change(ch change, t, at int64) {
	c.mark(ch, at)
	c.after.roll(t)
	if !c.changed || len(c.after.bins) >= minBins {
		c.before, c.what = c.after, nil
	}
	c.what = joinChanges(c.what, ch)
	c.changed, c.after = true, newStretch(t, t+c.warm())
}

// Figure is how it ran on one side of a change.
type Figure struct {
	TokensPerS       float64
	LargeShare       float64
	Right, Checked   int     // answers of requests that saw one router and one setting of its knobs
	RightLo, RightHi float64 // 95 %
	Seconds          int     // whole seconds measured, the latest 120 at most
}

// Comparison is before | after of the last change.
type Comparison struct {
	Label         string        // what changed
	At            int64         // session time of the last change, ns
	Age           time.Duration // running time since
	WarmUp        time.Duration // after the change, left out of After
	Before, After Figure
	Delta         float64 // change of tokens/s, relative to before
	DeltaCI       float64 // half-width of its 95 % interval
	LargeDelta    float64 // change of the large share, a difference of shares
	LargeDeltaCI  float64
	Ready         bool   // the deltas are set
	Need          string // what is missing while it is not ready
}

// Compare sets the time since the last change against the time before it: means
// of 1-s bins of running time with Welch's interval for their quotient, and for
// the difference of their large shares. The warm-up
// after a change is left out: the mean time of a request, at least 1 s, at most
// 10 s. It is ready with 5 bins on both sides. A router's change is when the last
// subserver has swapped to it.
func (b *Board) Compare(now int64) Comparison {
	c := &b.changes
	if !c.changed {
		return Comparison{Need: "nothing has changed yet"}
	}
	t := b.clock.at(sessionTime(now))
	after := c.after
	after.bins = slices.Clone(after.bins)
	after.roll(t)
	x, y := rates(c.before.bins), rates(after.bins)
	out := Comparison{
		Label:  labels(c.what),
		At:     b.clock.session(after.from),
		Age:    time.Duration(max(t-after.from, 0)),
		WarmUp: time.Duration(after.warm - after.from),
		Before: figure(&c.before, x),
		After:  figure(&after, y),
	}
	switch {
	case len(x) < minBins:
		out.Need = fmt.Sprintf("only %d s of %d before the change", len(x), minBins)
	case out.Before.TokensPerS <= 0:
		out.Need = "no tokens before the change"
	case t < after.warm:
		out.Need = fmt.Sprintf("warm-up, %.1f s", time.Duration(after.warm-t).Seconds())
	case len(y) < minBins:
		out.Need = fmt.Sprintf("%d of %d s after the change", len(y), minBins)
	default:
		out.Ready = true
		out.Delta, out.DeltaCI = WelchRatio(x, y)
		out.LargeDelta, out.LargeDeltaCI = Welch(shares(c.before.bins), shares(after.bins))
	}
	return out
}

// rates gives the tokens per second of each bin.
func rates(bins []tally) []float64 {
	out := make([]float64, len(bins))
	for i, b := range bins {
		out[i] = float64(b.tokens) / time.Duration(binNs).Seconds()
	}
	return out
}

// shares gives the large share of each bin that has tokens.
func shares(bins []tally) []float64 {
	out := make([]float64, 0, len(bins))
	for _, b := range bins {
		if b.tokens > 0 {
			out = append(out, share(b.large, b.tokens))
		}
	}
	return out
}

func figure(s *stretch, rates []float64) Figure {
	f := Figure{Right: s.answers.right, Checked: s.answers.checked, Seconds: len(rates)}
	f.RightLo, f.RightHi = Wilson(f.Right, f.Checked)
	if len(rates) == 0 {
		return f
	}
	f.TokensPerS = max(stat.Mean(rates, nil), 0)
	var sum tally
	for _, b := range s.bins {
		sum.tokens += b.tokens
		sum.large += b.large
	}
	f.LargeShare = share(sum.large, sum.tokens)
	return f
}

// share is part/all, 0 if there is nothing.
func share(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(max(part, 0)) / float64(all)
}
