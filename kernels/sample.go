package kernels

import (
	"cmp"
	"fmt"
	"slices"
)

// SampleParams say how a token is drawn. Temperature 0 or below, and TopK 1, are
// greedy.
// TopK 0 or below, and TopP 0 or below or 1 and above, do not truncate. The
// order is temperature, then TopK, then TopP on what is left.
type SampleParams struct {
	Temperature float32
	TopK        int
	TopP        float32
}

// Sampler draws tokens; it owns scratch, so one goroutine uses it at a time.
// The zero value is ready.
type Sampler struct {
	cand []candidate
}

type candidate struct {
	id     int32
	weight float64 // exp((logit-max)/temperature)
}

// Sample draws a token from logits with the uniform number 0 <= u < 1: the
// first one whose cumulative probability exceeds u, in order of id without
// truncation, of falling probability (ties: lower id) with it. Errors are those
// of Argmax, a NaN parameter or a u outside its range.
func (s *Sampler) Sample(logits []float32, p SampleParams, u float64) (int32, error) {
	best, err := Argmax(logits)
	if err != nil {
		return 0, err
	}
	if p.Temperature != p.Temperature || p.TopP != p.TopP || !(u >= 0 && u < 1) {
		return 0, fmt.Errorf("kernels: cannot sample with temperature %v, top_p %v and u %v: numbers are needed, and u in [0,1)", p.Temperature, p.TopP, u)
	}
	if p.Temperature <= 0 || p.TopK == 1 {
		return best, nil
	}
	peak, t := float64(logits[best]), float64(p.Temperature)
	s.cand = s.cand[:0]
	var sum float64
	for i, l := range logits {
		if w := exp((float64(l) - peak) / t); w > 0 {
			s.cand = append(s.cand, candidate{int32(i), w})
			sum += w
		}
	}
	cand := s.cand
	if k := p.TopK; k > 0 && k < len(cand) {
		cand, sum = keepTop(cand, k)
	}
	if p.TopP > 0 && p.TopP < 1 {
		cand, sum = keepNucleus(cand, sum, float64(p.TopP))
	}
	target := float64(u * sum)
	var acc float64
	for _, c := range cand {
		acc += c.weight
		if acc > target {
			return c.id, nil
		}
	}
	return cand[len(cand)-1].id, nil // rounding left acc at target
}

// falling orders by weight, largest first, ties by lower id.
func falling(a, b candidate) int {
	if c := cmp.Compare(b.weight, a.weight); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// keepTop reduces cand to its k first in falling order and returns their sum.
// A heap with the last of the kept on top makes one pass of O(n log k).
func keepTop(cand []candidate, k int) (kept []candidate, sum float64) {
	h := cand[:k]
	down := func(i int) {
		for {
			c := 2*i + 1
			if c >= k {
				return
			}
			if c+1 < k && falling(h[c+1], h[c]) > 0 {
				c++
			}
			if falling(h[c], h[i]) <= 0 {
				return
			}
			h[i], h[c] = h[c], h[i]
			i = c
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		down(i)
	}
	for _, c := range cand[k:] {
		if falling(c, h[0]) < 0 {
			h[0] = c
			down(0)
		}
	}
	slices.SortFunc(h, falling)
	for _, c := range h {
		sum += c.weight
	}
	return h, sum
}

// keepNucleus reduces cand to the shortest prefix in falling order that holds
// the share p of sum (Holtzman et al. 2020), at least one. Tokens below
// (1-p)*sum/n together hold less than 1-p, so they are never in it and need no
// sorting.
func keepNucleus(cand []candidate, sum, p float64) (kept []candidate, total float64) {
	least := float64((1-p)*sum) / float64(len(cand)) * (1 - 1e-9)
	kept = cand[:0]
	for _, c := range cand {
		if c.weight >= least {
			kept = append(kept, c)
		}
	}
	slices.SortFunc(kept, falling)
	goal := float64(p * sum)
	for i, c := range kept {
		total += c.weight
		if total >= goal {
			return kept[:i+1], total
		}
	}
	return kept, total
}
