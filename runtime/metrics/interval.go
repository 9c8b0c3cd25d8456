package metrics

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/stat/distuv"

	"tokenrouter/runtime/tape"
)

const (
	significance = 0.01
	minSends     = 50   // sends before the law is tested
	blockSends   = 1000 // sends after which a block of intervals is full
	blockSteps   = 1 << 17
	minExpected  = 5 // of a cell of the test, on both sides
	exactSteps   = 32
	perOctave    = 8
	stepBins     = exactSteps - 1 + 11*perOctave // up to 65,536 steps
)

// stepBin is where step k (from 1) of a visit is counted: alone below 32, then in
// eighths of an octave.
func stepBin(k int) int {
	if k < exactSteps {
		return max(k, 1) - 1
	}
	o := bits.Len(uint(k)) - 1
	i := exactSteps - 1 + (o-5)*perOctave + (k>>(o-3))&(perOctave-1)
	return min(i, stepBins-1)
}

// binRange gives the first and last step of a bin.
func binRange(i int) (from, to int) {
	if i < exactSteps-1 {
		return i + 1, i + 1
	}
	i -= exactSteps - 1
	o := 5 + i/perOctave
	width := 1 << (o - 3)
	from = 1<<o + i%perOctave*width
	return from, from + width - 1
}

// steps counts, by how many steps a request has made at a subserver since it
// came, the steps and those of them after which it was sent on.
type steps struct {
	made, sent [stepBins]int
	all, sends int
}

func (s *steps) plus(o *steps) {
	for i := range s.made {
		s.made[i] += o.made[i]
		s.sent[i] += o.sent[i]
	}
	s.all += o.all
	s.sends += o.sends
}

// intervals follows the steps between a request's coming to a subserver and its
// being sent on.
//
// What is counted is not intervals but steps at risk: step k of a visit was made,
// and the request was sent on after it or not. A visit that goes on, or in which
// the request ended, has then contributed exactly what is known of it, and long
// intervals are not missed because requests end (life table; Kaplan and Meier
// 1958).
//
// The last one to two thousand sends are kept, in two blocks. With two thousand a
// share of 0.35 that is 0.45 on the first step is always seen, and one that is
// 0.40 in two windows of five; with many more every real router would fail.
type intervals struct{ cur, prev steps }

// add counts step k of a visit.
func (v *intervals) add(k int, sent bool) {
	if v.cur.sends >= blockSends || v.cur.all >= blockSteps {
		v.prev, v.cur = v.cur, steps{}
	}
	i := stepBin(k)
	v.cur.all++
	v.cur.made[i]++
	if sent {
		v.cur.sends++
		v.cur.sent[i]++
	}
}

func (v *intervals) restart() { *v = intervals{} }

// Interval describes the decode steps that a request makes at a subserver between
// coming and being sent on, of the last one to two thousand sends. Mean and CV2
// are corrected for requests that ended before they were sent on.
//
// The geometric law, which the planner assumes, is that of a share of steps which
// does not depend on how many the request has made since it came. So the test is
// one of equal shares: steps are put into cells by their number k, neighbours
// joined until a cell is expected to hold at least 5 that are sent on and 5 that
// are not, and Chi2 is the sum over cells of
// (sent - made x share)^2 / (made x share x (1 - share)), with one degree of
// freedom less than cells. Given the steps made, the sends of a cell are
// binomial, so requests that end early do not disturb it. Far means refused at
// 1 %: one in a hundred geometric routers is refused as well. A drift of the
// share within the window is refused too.
type Interval struct {
	N      int // sends
	Steps  int // steps made
	Mean   float64
	CV2    float64 // variance / mean squared
	Geom   float64 // that of the geometric law of the same mean
	Tested bool    // there are 50 sends and two cells
	Chi2   float64
	DF     int
	PValue float64 // of a Chi2 as large or larger under the geometric law, 1 if not tested
	Far    bool
	Bins   []StepBin
}

// Tape is the interval as a plan records it.
func (v *Interval) Tape() tape.Interval {
	return tape.Interval{N: v.N, Mean: v.Mean, CV2: v.CV2, Geom: v.Geom, Far: v.Far}
}

// StepBin is one bar of the histogram: intervals of From to To steps.
type StepBin struct {
	From, To   int
	Made, Sent int     // steps number From to To of a visit, and how many were the last before a send
	Share      float64 // of intervals that end here
	Geom       float64 // of them under the geometric law of the same mean
}

// interval gives the figures.
func (v *intervals) interval() Interval {
	s := v.cur
	s.plus(&v.prev)
	out := Interval{N: s.sends, Steps: s.all, PValue: 1}
	if s.sends == 0 {
		return out
	}
	s.moments(&out)
	s.test(&out)
	s.bars(&out)
	return out
}

// From the first bin with fewer than tailSteps steps on, all share one figure,
// towards that of the whole by as much as tailSends sends: shares of a handful of
// steps would make the mean too large by several percent.
const (
	tailSteps = 10
	tailSends = 5
)

// shares gives, for each bin up to the last that has steps, the share of steps
// after which requests are sent on.
func (s *steps) shares() []float64 {
	last := stepBins
	for last > 0 && s.made[last-1] == 0 {
		last--
	}
	out := make([]float64, last)
	i := 0
	for ; i < last && s.made[i] >= tailSteps; i++ {
		out[i] = float64(s.sent[i]) / float64(s.made[i])
	}
	made, sent := tailSends*float64(s.all)/float64(s.sends), float64(tailSends)
	for k := i; k < last; k++ {
		made += float64(s.made[k])
		sent += float64(s.sent[k])
	}
	for ; i < last; i++ {
		out[i] = sent / made
	}
	return out
}

// moments sums the mean and the second moment over P(interval > k). Behind the
// last step seen the law goes on with the share of the whole.
func (s *steps) moments(out *Interval) {
	var mean, square float64
	stay, k := 1.0, 0 // P(interval > k)
	for i, share := range s.shares() {
		from, to := binRange(i)
		for range to - from + 1 {
			mean += stay
			square += float64(2*k+1) * stay
			stay *= 1 - share
			k++
		}
		if stay == 0 {
			break
		}
	}
	h := float64(s.sends) / float64(s.all)
	mean += stay / h
	square += stay * (float64(2*k+1)/h + 2*(1-h)/(h*h))
	out.Mean = mean
	out.CV2 = max(square/(mean*mean)-1, 0)
	out.Geom = max(1-1/mean, 0)
}

// test is the chi-squared test of equal shares.
func (s *steps) test(out *Interval) {
	if s.sends < minSends {
		return
	}
	h := float64(s.sends) / float64(s.all)
	big := func(made int) bool {
		return float64(made)*h >= minExpected && float64(made)*(1-h) >= minExpected
	}
	term := func(made, sent int) float64 {
		off := float64(sent) - float64(made)*h
		return off * off / (float64(made) * h * (1 - h))
	}
	var cells int
	var chi2 float64
	var made, sent, restMade, restSent int // the running cell, and what follows it
	restMade, restSent = s.all, s.sends
	for i := range s.made {
		made += s.made[i]
		sent += s.sent[i]
		restMade -= s.made[i]
		restSent -= s.sent[i]
		switch {
		case !big(made):
		case big(restMade):
			chi2 += term(made, sent)
			cells++
			made, sent = 0, 0
		default: // too little is left for a cell: it belongs to this one
			chi2 += term(made+restMade, sent+restSent)
			cells++
			s.judge(out, chi2, cells)
			return
		}
	}
}

func (s *steps) judge(out *Interval, chi2 float64, cells int) {
	if cells < 2 {
		return
	}
	out.Tested, out.Chi2, out.DF = true, chi2, cells-1
	out.PValue = distuv.ChiSquared{K: float64(out.DF)}.Survival(chi2)
	out.Far = out.PValue < significance
}

// bars gives the histogram.
func (s *steps) bars(out *Interval) {
	shares := s.shares()
	out.Bins = make([]StepBin, 0, len(shares))
	stay := 1.0
	g := 1 / out.Mean
	for i, share := range shares {
		from, to := binRange(i)
		width := float64(to - from + 1)
		left := stay * math.Pow(1-share, width)
		out.Bins = append(out.Bins, StepBin{
			From: from, To: to, Made: s.made[i], Sent: s.sent[i],
			Share: stay - left,
			Geom:  math.Pow(1-g, float64(from-1)) - math.Pow(1-g, float64(to)),
		})
		stay = left
	}
}
