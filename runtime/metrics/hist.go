package metrics

import "math/bits"

const (
	histSub  = 32 // buckets per octave: a value is known within 1/32
	histSize = 28*histSub + histSub
)

// hist counts durations in buckets of about 1 us (1,024 ns) below 33 us and of
// 3 % above, up to 2.4 hours.
type hist struct {
	n       uint32
	buckets [histSize]uint32
}

func histIndex(ns int64) int {
	u := uint64(max(ns, 0)) >> 10
	shift := max(bits.Len64(u)-6, 0)
	return min(shift*histSub+int(u>>shift), histSize-1)
}

// histRange gives the lower edge and the width of a bucket in ns.
func histRange(i int) (low, width int64) {
	shift := max(i/histSub-1, 0)
	return int64(i-shift*histSub) << shift << 10, 1 << shift << 10
}

func (h *hist) add(ns int64) {
	h.buckets[histIndex(ns)]++
	h.n++
}

// sub takes o out of h, which contains it.
func (h *hist) sub(o *hist) {
	if o.n == 0 {
		return
	}
	for i, c := range o.buckets {
		h.buckets[i] -= c
	}
	h.n -= o.n
}

// quantile is the nearest-rank quantile in ns, placed inside its bucket by rank.
func (h *hist) quantile(p float64) float64 {
	if h.n == 0 {
		return 0
	}
	rank := max(p*float64(h.n), 1)
	var before float64
	for i, c := range h.buckets {
		if c == 0 {
			continue
		}
		if before+float64(c) >= rank {
			low, width := histRange(i)
			return float64(low) + float64(width)*(rank-before-0.5)/float64(c)
		}
		before += float64(c)
	}
	return 0
}
