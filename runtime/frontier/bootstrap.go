package frontier

import (
	"math"
	"math/bits"
	"slices"

	"tokenrouter/runtime/rng"
)

// Level of every interval here.
const level = 0.95

// resample draws as many problems as there are, with replacement, and says how often
// each was drawn. It is a function of the seed and of its number.
func resample(weights []float64, seed uint64, number int) {
	clear(weights)
	key := rng.Key{Seed: seed, Req: uint64(number), Purpose: rng.Resample}
	for i := range weights {
		at, _ := bits.Mul64(key.Uint64(i), uint64(len(weights)))
		weights[at]++
	}
}

// intervals fills in the interval of every figure: the percentiles of what it is in
// resamples of the problems, the same ones for all figures (Efron's percentile
// bootstrap, paired). What could come out in one way only has an interval of no
// width: where no problem was got wrong, no resample has one.
func (m *meter) intervals(t *Table) {
	if m.options.Resamples < 1 {
		return
	}
	figures := t.figures()
	samples := make([][]float64, len(figures))
	for i := range samples {
		samples[i] = make([]float64, 0, m.options.Resamples)
	}
	weights := make([]float64, t.Problems)
	for b := range m.options.Resamples {
		resample(weights, m.options.Seed, b)
		for i, f := range m.measure(weights).figures() {
			if math.IsNaN(f.Value) {
				figures[i].Undefined++
			} else {
				samples[i] = append(samples[i], f.Value)
			}
		}
	}
	for i, f := range figures {
		if math.IsNaN(f.Value) || len(samples[i]) == 0 {
			continue
		}
		f.Lo, f.Hi = percentiles(samples[i])
	}
}

// percentiles are the ends of the interval. It sorts xs.
func percentiles(xs []float64) (lo, hi float64) {
	slices.Sort(xs)
	return quantile(xs, (1-level)/2), quantile(xs, (1+level)/2)
}

// quantile interpolates between order statistics: that of p is at (n-1) p.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (sorted[i+1]-sorted[i])*(at-float64(i))
}

// figures are all figures of a table in an order that is that of its set.
func (t *Table) figures() (out []*Figure) {
	for i := range t.Rows {
		r := &t.Rows[i]
		out = append(out, &r.Accuracy, &r.Share, &r.OfLarge, &r.Recovered, &r.Cost, &r.OfCost, &r.Switches, &r.Lead)
		for j := range r.ByFamily {
			out = append(out, &r.ByFamily[j])
		}
	}
	for i := range t.Curves {
		c := &t.Curves[i]
		out = append(out, &c.Area, &c.APGR)
		for j := range c.CPT {
			out = append(out, &c.CPT[j])
		}
	}
	for i := range t.Versus {
		out = append(out, &t.Versus[i].Difference)
	}
	return out
}
