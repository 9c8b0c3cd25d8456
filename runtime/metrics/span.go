package metrics

import (
	"math"
	"slices"
	"time"
)

// Span is the part of a run that is measured, in running time since its first
// request arrived. The zero value is all of it.
type Span struct {
	From time.Duration // what lies before is warm-up
	To   time.Duration // where it ends; 0 is with the last token
}

// Measure leaves what lies outside of s out of the summary. It is called before
// the first record is added.
func (r *Run) Measure(s Span) { r.span.Span = s }

// bounds places a Span in running time.
type bounds struct {
	Span
	origin int64 // running time of the first arrival
	known  bool
}

// begin is called with the time of all that may be the first work.
func (b *bounds) begin(t int64) {
	if !b.known {
		b.origin, b.known = t, true
	}
}

func (b *bounds) lo() int64 {
	if b.From <= 0 {
		return math.MinInt64
	}
	return b.origin + int64(b.From)
}

func (b *bounds) hi() int64 {
	if b.To <= 0 {
		return math.MaxInt64
	}
	return b.origin + int64(b.To)
}

// in says that what ended at t is measured.
func (b *bounds) in(t int64) bool { return b.lo() <= t && t <= b.hi() }

// lapse is a piece of running time.
type lapse struct{ from, to int64 }

// within is how much of s lies between lo and hi.
func (s lapse) within(lo, hi int64) int64 { return max(min(s.to, hi)-max(s.from, lo), 0) }

// busy is for how long batches ran at a subserver within the measured part. As
// the run may turn out to have ended with its last token, batches that ended
// after it are kept as they were.
type busy struct {
	sum  int64
	tail []lapse
}

// settle counts what ended before a token, of which only the part after lo is
// measured.
func (b *busy) settle(lo, hi int64) {
	for _, s := range b.tail {
		b.sum += s.within(lo, hi)
	}
	b.tail = b.tail[:0]
}

// until gives the sum where the measured part goes from lo to hi and a batch has
// run for the time of now, if any.
func (b *busy) until(lo, hi int64, now lapse) int64 {
	sum := b.sum + now.within(lo, hi)
	for _, s := range b.tail {
		sum += s.within(lo, hi)
	}
	return sum
}

// measured is the window of rates: from lo to hi without the times in quiet, in
// which no request was active.
type measured struct {
	lo, hi int64
	quiet  []lapse // ascending, apart
}

func (m *measured) length() int64 {
	n := max(m.hi-m.lo, 0)
	for _, q := range m.quiet {
		n -= q.within(m.lo, m.hi)
	}
	return max(n, 0)
}

// peak is the most tokens/s in a part of the window. The parts are equal and a
// second long or, as they fill it, up to two; a window below two seconds is one.
// So the peak is never below the rate of the whole. times are of the tokens.
func (m *measured) peak(times []int64) float64 {
	length := m.length()
	if length == 0 {
		return 0
	}
	parts := max(length/int64(time.Second), 1)
	count := make([]int, parts)
	times = slices.Clone(times)
	slices.Sort(times)
	quiet, skipped := m.quiet, int64(0)
	most := 0
	for _, t := range times {
		if t <= m.lo || t > m.hi {
			continue
		}
		for len(quiet) > 0 && quiet[0].to <= t {
			skipped += quiet[0].within(m.lo, m.hi)
			quiet = quiet[1:]
		}
		part := (float64(t-m.lo-skipped) * float64(parts)) / float64(length)
		i := min(max(int64(math.Ceil(part))-1, 0), parts-1)
		count[i]++
		most = max(most, count[i])
	}
	return perSecond(float64(most), time.Duration(length/parts))
}
