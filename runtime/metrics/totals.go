package metrics

import "time"

// totals are what the tokens of requests add up to within the measured part.
type totals struct {
	tokens    []int64 // by subserver
	switches  int64
	atFirst   int64   // tokens at the very time at which the window begins
	last      int64   // running time of the last token
	times     []int64 // of all tokens
	ttft, itl []float64
	queue     []float64 // from arrival to admission
	e2e       []float64
	speed     []float64 // tokens/s of a request
	gaps      int64     // gaps between tokens of those requests
	reading   int64     // ns that the gaps took
}

// minPiece is how many tokens in the window a request needs for a speed of its
// own where the window cuts it or it has not ended: of a handful of tokens the
// time says little.
const minPiece = 32

// add counts the first kept tokens of a request. The window of rates begins at
// lo; done says that the request ended by itself.
func (s *totals) add(e *entry, kept int, lo int64, span *bounds, done bool) {
	n, from, to := 0, int64(0), int64(0) // tokens in the window, the first and the last
	for i := range kept {
		t := e.times[i]
		if !span.in(t) {
			continue
		}
		if n == 0 {
			from = t
		}
		n, to = n+1, t
		s.tokens[e.writers[i]]++
		s.times = append(s.times, t)
		switch {
		case i > 0:
			s.itl = append(s.itl, float64(max(t-e.times[i-1], 0)))
			if e.writers[i] != e.writers[i-1] {
				s.switches++
			}
		case e.known:
			s.ttft = append(s.ttft, float64(max(t-e.arrived, 0)))
		}
		if t <= lo {
			s.atFirst++
		}
		s.last = max(s.last, t)
	}
	if n > 1 && to > from && (done && n == kept || n >= minPiece) {
		s.speed = append(s.speed, perSecond(float64(n-1), time.Duration(to-from)))
		s.gaps += int64(n - 1)
		s.reading += to - from
	}
	if e.waited && span.in(e.admit) {
		s.queue = append(s.queue, float64(max(e.admit-e.arrived, 0)))
	}
	if done && kept > 0 && e.known && span.in(e.times[kept-1]) {
		s.e2e = append(s.e2e, float64(max(e.times[kept-1]-e.arrived, 0)))
	}
}

// clone copies what add changes.
func (s *totals) clone() totals {
	c := *s
	c.tokens = append([]int64(nil), s.tokens...)
	for _, xs := range []*[]float64{&c.ttft, &c.itl, &c.queue, &c.e2e, &c.speed} {
		*xs = append([]float64(nil), *xs...)
	}
	c.times = append([]int64(nil), s.times...)
	return c
}

// exact gives the quantiles of durations in ns.
func exact(ns []float64) Quantiles {
	return Quantiles{
		N: len(ns), P50: Percentile(ns, 0.5) / 1e6, P95: Percentile(ns, 0.95) / 1e6, P99: Percentile(ns, 0.99) / 1e6,
	}
}

// Speeds are how fast N requests were written, in tokens/s from the first token
// of a request to its last. Mean is of the time: all their tokens but the first
// ones over all that time, so a request of three tokens that took a moment weighs
// a moment. P5 is the 5th percentile of requests: nineteen of twenty are at least
// that fast.
type Speeds struct {
	N             int
	Mean, P50, P5 float64
}

func (s *totals) speeds() Speeds {
	return Speeds{
		N: len(s.speed), Mean: perSecond(float64(s.gaps), time.Duration(s.reading)),
		P50: Percentile(s.speed, 0.5), P5: Percentile(s.speed, 0.05),
	}
}
