package vec

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"tokenrouter/kernels"
)

// Sampler draws tokens as kernels.Sampler does, but for rounding: weights are
// summed in single precision within a segment, so a u within about a millionth
// of the border of two tokens may give the other one. It owns scratch, so one
// goroutine uses it at a time. The zero value is ready.
type Sampler struct {
	sums    []float32 // of the weights of each segment
	weights []float32 // of each logit
	cand    []candidate
}

type candidate struct {
	id     int32
	logit  float32
	weight float64 // exp((logit-peak)/temperature), or 1 while candidates are counted
}

// stride is how many logits one call of assembly looks at.
const stride = 64 * Segment

// Sample draws a token from logits with the uniform number 0 <= u < 1, with the
// meaning and the errors of kernels.Sampler.Sample.
func (s *Sampler) Sample(logits []float32, p kernels.SampleParams, u float64) (int32, error) {
	peak, bad := float32(math.Inf(-1)), len(logits) == 0
	for i := 0; i < len(logits); i += stride {
		m, nan := peakOf(logits[i:min(i+stride, len(logits))])
		peak, bad = max(peak, m), bad || nan
	}
	if bad || math.IsInf(float64(peak), 0) {
		return kernels.Argmax(logits)
	}
	if p.Temperature != p.Temperature || p.TopP != p.TopP || !(u >= 0 && u < 1) {
		return 0, fmt.Errorf("vec: cannot sample with temperature %v, top_p %v and u %v: numbers are needed, and u in [0,1)", p.Temperature, p.TopP, u)
	}
	if p.Temperature <= 0 || p.TopK == 1 {
		return int32(above(logits, math.Nextafter32(peak, float32(math.Inf(-1))))), nil
	}
	d := draw{logits: logits, peak: peak, temp: min(float64(p.Temperature), math.MaxFloat32)}
	d.scale = float32(min(1/d.temp, math.MaxFloat32))
	if p.TopK > 0 && p.TopK < len(logits) {
		s.largest(&d, p.TopK+1)
		if len(s.cand) > p.TopK && d.weight(s.cand[p.TopK].logit) > 0 {
			cand, total := first(s.cand, p.TopK), 0.0
			for i := range cand {
				cand[i].weight = d.weight(cand[i].logit)
				total += cand[i].weight
			}
			return pick(cand, total, p.TopP, u), nil
		}
	}
	if p.TopP > 0 && p.TopP < 1 {
		s.heaviest(&d, float64(p.TopP))
		return pick(s.cand, d.total, p.TopP, u), nil
	}
	s.sum(&d, nil)
	return s.walk(&d, u), nil
}

// draw is a row and its temperature.
type draw struct {
	logits []float32
	peak   float32
	temp   float64
	scale  float32 // 1/temp
	total  float64 // of all weights
}

// weight is what a logit weighs, in double precision.
func (d *draw) weight(l float32) float64 {
	return kernels.Exp((float64(l) - float64(d.peak)) / d.temp)
}

// sum adds up the weights of every segment, and stores each in w if that is not
// nil.
func (s *Sampler) sum(d *draw, w []float32) {
	n := (len(d.logits) + Segment - 1) / Segment
	s.sums = slices.Grow(s.sums[:0], n)[:n]
	for i := 0; i < n; i += stride / Segment {
		from, to, part := i*Segment, min(i*Segment+stride, len(d.logits)), w
		if w != nil {
			part = w[from:to]
		}
		weigh(s.sums[i:min(i+stride/Segment, n)], part, d.logits[from:to], d.peak, d.scale)
	}
	d.total = 0
	for _, x := range s.sums {
		d.total += float64(x)
	}
}

// walk draws in order of id: segments are stepped over until the one that
// reaches the target. Where rounding leaves all below it, the last token that
// has weight is drawn.
func (s *Sampler) walk(d *draw, u float64) int32 {
	target, acc := float64(u*d.total), 0.0
	last := len(s.sums) - 1
	for s.sums[last] == 0 {
		last--
	}
	id := 0
	for i, x := range s.sums[:last+1] {
		if i < last && acc+float64(x) <= target {
			acc += float64(x)
			continue
		}
		var sum [1]float32
		var weights [Segment]float32
		from := i * Segment
		l := d.logits[from:min(from+Segment, len(d.logits))]
		weigh(sum[:], weights[:len(l)], l, d.peak, d.scale)
		for j, w := range weights[:len(l)] {
			if w > 0 {
				id = from + j
				if acc += float64(w); acc > target {
					return int32(id)
				}
			}
		}
	}
	return int32(id)
}

// largest makes the k largest logits candidates, or as many as are not -Inf.
// Whatever exceeds the floor is gathered; where that becomes too much the k
// largest stay and the last of them is the floor.
func (s *Sampler) largest(d *draw, k int) {
	room := 4*k + 64
	c := slices.Grow(s.cand[:0], room)
	floor := float32(math.Inf(-1))
	var over [stride / 32]uint32
	for from := 0; from < len(d.logits); from += stride {
		x := d.logits[from:min(from+stride, len(d.logits))]
		exceeding(&over, x, floor)
		for i, word := range over[:(len(x)+31)/32] {
			for ; word != 0; word &= word - 1 {
				at := 32*i + bits.TrailingZeros32(word)
				if x[at] <= floor {
					continue
				}
				c = append(c, candidate{int32(from + at), x[at], 1})
				if len(c) == room {
					c = first(c, k)
					floor = c[k-1].logit
				}
			}
		}
	}
	s.cand = first(c, k)
}

// first keeps the k first candidates in falling order, the last of them last.
// Each is to weigh 1.
func first(c []candidate, k int) []candidate {
	if len(c) < k {
		return c
	}
	end, _ := reach(c, func(sum float64) bool { return sum >= float64(k) })
	return c[:end+1]
}

// falling orders by logit, largest first, ties by lower id.
func falling(a, b candidate) int {
	if c := cmp.Compare(b.logit, a.logit); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// heaviest makes those tokens candidates that the share p of all weight can
// reach. Tokens below (1-p)*total/V together hold less than 1-p, so they are
// beyond it; a search by halves lifts that bound as long as what is above it
// holds enough.
func (s *Sampler) heaviest(d *draw, p float64) {
	n := (len(d.logits) + Segment - 1) / Segment * Segment
	s.weights = slices.Grow(s.weights[:0], n)[:n]
	clear(s.weights[len(d.logits):])
	s.sum(d, s.weights)
	goal := float64(p*d.total) * (1 + 1e-6) // sums of single precision are that good
	low, high := kernels.Ln(max(float64((1-p)*d.total)/float64(len(d.logits))*(1-1e-5), 1e-38)), 0.0
	for range 7 {
		mid := float64((low + high) / 2)
		if s.above(float32(kernels.Exp(mid))) >= goal {
			low = mid
		} else {
			high = mid
		}
	}
	floor := math.Nextafter32(float32(kernels.Exp(low)), 0)
	var over [stride / 32]uint32
	s.cand = s.cand[:0]
	for from := 0; from < len(d.logits); from += stride {
		w := s.weights[from:min(from+stride, len(d.logits))]
		exceeding(&over, w, floor)
		for i, word := range over[:(len(w)+31)/32] {
			for ; word != 0; word &= word - 1 {
				at := 32*i + bits.TrailingZeros32(word)
				s.cand = append(s.cand, candidate{int32(from + at), d.logits[from+at], float64(w[at])})
			}
		}
	}
}

// above is the weight of all tokens that weigh more than floor.
func (s *Sampler) above(floor float32) (sum float64) {
	for i := 0; i < len(s.sums); i += stride / Segment {
		part := s.sums[i:min(i+stride/Segment, len(s.sums))]
		heavier(part, s.weights[i*Segment:][:len(part)*Segment], floor)
		for _, x := range part {
			sum += float64(x)
		}
	}
	return sum
}

// pick draws from candidates, which hold total or are what matters of it, in
// falling order: from the shortest prefix that holds the share topP of total if
// that is in (0,1) (Holtzman et al. 2020).
func pick(cand []candidate, total float64, topP float32, u float64) int32 {
	if topP > 0 && topP < 1 {
		goal := float64(float64(topP) * total)
		end, before := reach(cand, func(sum float64) bool { return sum >= goal })
		cand, total = cand[:end+1], before+cand[end].weight
	}
	target := float64(u * total)
	i, _ := reach(cand, func(sum float64) bool { return sum > target })
	return cand[i].id
}

// reach finds the end of the shortest prefix in falling order whose weight is
// enough: afterwards cand[:end+1] are that prefix, with end its last and before
// the weight of those ahead of end. If all are not enough, all are the prefix.
// Halves are cut off as in a search for a quantile (Hoare 1961).
func reach(cand []candidate, enough func(sum float64) bool) (end int, before float64) {
	lo, hi := 0, len(cand)
	for cuts := 0; hi-lo > 24 && cuts < 64; cuts++ {
		mid := lo + partition(cand[lo:hi])
		var sum float64
		for _, c := range cand[lo : mid+1] {
			sum += c.weight
		}
		if enough(before + sum) {
			hi = mid + 1
		} else {
			before += sum
			lo = mid + 1
		}
	}
	slices.SortFunc(cand[lo:hi], falling)
	for i := lo; i < hi; i++ {
		if i == len(cand)-1 || enough(before+cand[i].weight) {
			return i, before
		}
		before += cand[i].weight
	}
	return hi - 1, before - cand[hi-1].weight
}

// partition puts what comes before a pivot in front of it, and says where the
// pivot is.
func partition(c []candidate) int {
	last := len(c) - 1
	pivot := median(c[0], c[last/2], c[last])
	at := 0
	for i := range c {
		if c[i].id == pivot.id {
			c[i], c[last] = c[last], c[i]
			break
		}
	}
	for i := range last {
		if falling(c[i], pivot) < 0 {
			c[i], c[at] = c[at], c[i]
			at++
		}
	}
	c[at], c[last] = c[last], c[at]
	return at
}

func median(a, b, c candidate) candidate {
	if falling(a, b) > 0 {
		a, b = b, a
	}
	switch {
	case falling(c, a) < 0:
		return a
	case falling(c, b) < 0:
		return c
	}
	return b
}

// peakOfGo is the largest of x, and whether one is NaN.
func peakOfGo(x []float32) (peak float32, nan bool) {
	peak = float32(math.Inf(-1))
	for _, v := range x {
		if v != v {
			nan = true
		}
		if v > peak {
			peak = v
		}
	}
	return peak, nan
}

// weighGo writes the sums of exp((x-peak)*scale) over each segment of x, element
// i in lane i%16, and each of them to w if that is not nil.
func weighGo(sums, w, x []float32, peak, scale float32) {
	for i := range sums {
		var a [16]float32
		for j, v := range x[i*Segment : min((i+1)*Segment, len(x))] {
			e := exp(float32((v - peak) * scale))
			a[j&15] += e
			if w != nil {
				w[i*Segment+j] = e
			}
		}
		sums[i] = joined(&a)
	}
}

// heavierGo writes the sums of those w over floor of each segment.
func heavierGo(sums, w []float32, floor float32) {
	for i := range sums {
		var a [16]float32
		for j, v := range w[i*Segment:][:Segment] {
			if v > floor {
				a[j&15] += v
			}
		}
		sums[i] = joined(&a)
	}
}

// exceedingGo sets the bits of those x over floor, and clears those of others.
func exceedingGo(over []uint32, x []float32, floor float32) {
	for i := range over {
		over[i] = 0
		for j, v := range x[32*i : min(32*i+32, len(x))] {
			if v > floor {
				over[i] |= 1 << j
			}
		}
	}
}
