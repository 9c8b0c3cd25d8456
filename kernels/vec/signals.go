package vec

import (
	"math"

	"tokenrouter/kernels"
)

// Segment is the number of logits that are measured at once: what a row's
// signals are is said by its segments, whoever measured them.
const Segment = 256

// Part is what the signals of a row need to know of one segment. With
// d = logit - max: how many logits have d = 0, and over the others the sums of
// exp(d) and of d*exp(d), of element i in lane i%16. Those at the top are counted
// apart so that a row which is nearly certain loses nothing to rounding.
type Part struct {
	max            float32
	rest, weighted float32
	ties           int32
	bad            int32 // 1 + place of the first NaN or +Inf, whose value is max; 0 if none
}

// Max is the largest logit of the segment.
func (p *Part) Max() float32 { return p.max }

// MeasurePart fills p from the logits of one segment: Segment of them, 1 or more
// in the last segment of a row.
func MeasurePart(p *Part, logits []float32) {
	if len(logits) > Segment {
		panic("vec: a segment has at most 256 logits")
	}
	if len(logits)%16 == 0 {
		measure(p, logits)
	} else {
		measureOdd(p, logits)
	}
	if p.bad = 0; p.weighted == p.weighted {
		return // no logit was NaN or +Inf, which would have spread
	}
	for i, l := range logits {
		if !(l <= math.MaxFloat32) {
			*p = Part{max: l, bad: int32(i) + 1}
			return
		}
	}
}

// measureOdd measures a length that is no multiple of 16 as if logits of -Inf
// followed.
func measureOdd(p *Part, logits []float32) {
	var padded [Segment]float32
	n := copy(padded[:], logits)
	m := (n + 15) &^ 15
	for i := n; i < m; i++ {
		padded[i] = float32(math.Inf(-1))
	}
	measure(p, padded[:m])
}

// measureGo is MeasurePart for whole groups of sixteen. NaN and +Inf make weighted
// NaN.
func measureGo(p *Part, logits []float32) {
	var m [16]float32
	copy(m[:], logits)
	for i, l := range logits {
		if !(m[i&15] > l) {
			m[i&15] = l
		}
	}
	peak := largest(m[:])
	base := max(peak, -math.MaxFloat32) // where no logit is finite all get d = -Inf
	var rest, weighted [16]float32
	ties := int32(0)
	for i, l := range logits {
		d := l - base
		if expLow > d {
			d = expLow
		}
		e := exp(d)
		weighted[i&15] = fma(d, e, weighted[i&15])
		if d < 0 {
			rest[i&15] += e
		} else {
			ties++
		}
	}
	*p = Part{max: peak, rest: joined(&rest), weighted: joined(&weighted), ties: ties}
}

// Top lists the kernels.TopN largest logits that it was offered, falling; ties:
// lower id first. Order and division of the offers do not matter. The zero value
// is empty.
type Top struct {
	n     int
	id    [kernels.TopN]int32
	logit [kernels.TopN]float32
}

// Reset empties t.
func (t *Top) Reset() { t.n = 0 }

// Best is the largest logit's id; false if none was offered.
func (t *Top) Best() (id int32, ok bool) { return t.id[0], t.n > 0 }

// Wants says whether a segment with this largest logit could change t: most
// segments of a row need not be offered.
func (t *Top) Wants(max float32) bool { return t.n < kernels.TopN || max >= t.logit[kernels.TopN-1] }

// Offer offers the logits of the ids from first on. NaN is passed over.
func (t *Top) Offer(first int32, logits []float32) {
	i := 0
	for ; t.n < kernels.TopN && i < len(logits); i++ {
		t.offer(first+int32(i), logits[i])
	}
	for ; i < len(logits); i++ {
		const last = kernels.TopN - 1
		switch floor := t.logit[last]; {
		case t.id[last] < first:
			i += above(logits[i:], floor)
		case floor >= -math.MaxFloat32: // equals may come before what is listed
			i += above(logits[i:], math.Nextafter32(floor, float32(math.Inf(-1))))
		}
		if i < len(logits) {
			t.offer(first+int32(i), logits[i])
		}
	}
}

func (t *Top) offer(id int32, l float32) {
	j := t.n
	for ; j > 0 && (t.logit[j-1] < l || t.logit[j-1] == l && t.id[j-1] > id); j-- {
	}
	if l != l || j == kernels.TopN {
		return
	}
	if t.n < kernels.TopN {
		t.n++
	}
	copy(t.id[j+1:t.n], t.id[j:])
	copy(t.logit[j+1:t.n], t.logit[j:])
	t.id[j], t.logit[j] = id, l
}

// Merge offers all that o lists.
func (t *Top) Merge(o *Top) {
	for i := range o.n {
		t.offer(o.id[i], o.logit[i])
	}
}

// Signals fills s from the parts of a row of vocab logits, in the order of their
// segments, and the largest of them: the values and errors of kernels.Measure,
// within float32 rounding. The storage of s.TopK is reused.
func Signals(s *kernels.Signals, parts []Part, top *Top, vocab int) error {
	parts = parts[:(vocab+Segment-1)/Segment]
	peak := float32(math.Inf(-1))
	for i := range parts {
		p := &parts[i]
		if p.bad != 0 {
			return kernels.BadLogit(i*Segment+int(p.bad)-1, p.max)
		}
		peak = max(peak, p.max)
	}
	var sum, weighted float64
	for i := range parts {
		p := &parts[i]
		d := float64(p.max) - float64(peak)
		if !(d > -700) {
			continue // nothing, or no logit at all is finite
		}
		f, n := kernels.Exp(d), float64(p.ties)+float64(p.rest)
		sum += float64(f * n)
		weighted += float64(f * (float64(p.weighted) + float64(d*n)))
	}
	list := s.TopK[:0]
	for i := range top.n {
		list = append(list, kernels.TokenProb{ID: top.id[i], Logprob: top.logit[i]})
	}
	return s.Derive(list, sum, weighted, vocab)
}

// aboveGo is the place of the first of x that exceeds floor, len(x) if none.
func aboveGo(x []float32, floor float32) int {
	for i, v := range x {
		if v > floor {
			return i
		}
	}
	return len(x)
}
