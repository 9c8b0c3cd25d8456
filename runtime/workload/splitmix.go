package workload

// splitMix is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The stream of
// problems is defined by it, so it stays beside runtime/rng, whose draws are
// addressed by request.
type splitMix struct{ state uint64 }

func (r *splitMix) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number in [0, n). The remainder's bias is below n/2^64 and
// part of the stream.
func (r *splitMix) below(n int) int { return int(r.next() % uint64(n)) }

// between returns a number in [lo, hi].
func (r *splitMix) between(lo, hi int) int { return lo + r.below(hi-lo+1) }
