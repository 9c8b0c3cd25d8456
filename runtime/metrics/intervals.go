package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tokenrouter/runtime/event"
)

// MaxLength is the longest run of steps that [Lengths] follows: one that goes on
// is lost from sight there, as if its request had ended.
const MaxLength = 1 << 12

// Lengths counts steps by how many a request has made at a subserver since it
// came, over a whole session: Made[k-1] is the number of k-th steps, Sent[k-1] of
// them those after which the request was sent on. So a request that ended before
// it was sent has contributed what is known of it (see [Interval]).
type Lengths struct {
	Made, Sent  []int
	Steps, Runs int // sums of Made and of Sent

	// Next is the correlation of a run with the next one of the same request at the
	// same subserver, over Pairs of them; 0 of fewer than three. The plan takes runs
	// for independent.
	Next  float64
	Pairs int

	// All is what the last one to two thousand sends are of an estimator that
	// forgets: figures, test and histogram, here of the whole session.
	All Interval
}

// lengths collects what Lengths gives.
type lengths struct {
	made, sent []int
	last       map[event.ReqID]int // run before, of requests that have one
	n          int
	x, y       float64 // sums over pairs
	xx, yy, xy float64
}

func (l *lengths) add(req event.ReqID, k int, sent bool) {
	if k > MaxLength {
		return
	}
	i := k - 1
	for len(l.made) <= i {
		l.made, l.sent = append(l.made, 0), append(l.sent, 0)
	}
	l.made[i]++
	if !sent {
		return
	}
	l.sent[i]++
	if before, ok := l.last[req]; ok {
		x, y := float64(before), float64(k)
		l.n++
		l.x, l.y = l.x+x, l.y+y
		l.xx, l.yy, l.xy = l.xx+x*x, l.yy+y*y, l.xy+x*y
	}
	if l.last == nil {
		l.last = map[event.ReqID]int{}
	}
	l.last[req] = k
}

func (l *lengths) forget(req event.ReqID) { delete(l.last, req) }

// Lengths gives the runs at subserver p over the whole session. It is of an
// estimator with the option Whole; else it is empty.
func (e *Estimator) Lengths(p event.Peer) Lengths {
	if p < 0 || int(p) >= len(e.cores) || e.cores[p].lengths == nil {
		return Lengths{}
	}
	l := e.cores[p].lengths
	out := Lengths{Made: append([]int{}, l.made...), Sent: append([]int{}, l.sent...), Pairs: l.n}
	var s steps
	for i, made := range l.made {
		out.Steps += made
		out.Runs += l.sent[i]
		b := stepBin(i + 1)
		s.made[b] += made
		s.sent[b] += l.sent[i]
	}
	s.all, s.sends = out.Steps, out.Runs
	v := intervals{cur: s}
	out.All = v.interval()
	if n := float64(l.n); l.n > 2 {
		cov, vx, vy := l.xy-l.x*l.y/n, l.xx-l.x*l.x/n, l.yy-l.y*l.y/n
		if vx > 0 && vy > 0 {
			out.Next = cov / math.Sqrt(vx*vy)
		}
	}
	return out
}

// Fit says how far the steps are from those under a law of so many free
// parameters, whose share of k-th steps after which a request is sent on is
// share(k): the chi-squared test of [Interval] with the shares of the law in the
// place of equal ones. tested is false where there are too few sends or cells.
func (l *Lengths) Fit(share func(k int) float64, params int) (chi2 float64, df int, p float64, tested bool) {
	if l.Runs < minSends {
		return 0, 0, 1, false
	}
	var sent, want, spread, stay float64
	var off, wide []float64
	flush := func() {
		off, wide = append(off, sent-want), append(wide, spread)
		sent, want, spread, stay = 0, 0, 0, 0
	}
	for i, made := range l.Made {
		h, m := share(i+1), float64(made)
		sent += float64(l.Sent[i])
		want += m * h
		stay += m * (1 - h)
		spread += m * h * (1 - h)
		if want >= minExpected && stay >= minExpected {
			flush()
		}
	}
	if n := len(off); n > 0 { // what is left belongs to the last cell
		off[n-1] += sent - want
		wide[n-1] += spread
	}
	for i := range off {
		if wide[i] > 0 {
			chi2 += off[i] * off[i] / wide[i]
		}
	}
	if df = len(off) - params; df < 1 {
		return chi2, df, 1, false
	}
	return chi2, df, distuv.ChiSquared{K: float64(df)}.Survival(chi2), true
}
