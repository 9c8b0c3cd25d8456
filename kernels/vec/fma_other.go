//go:build !arm64

package vec

import "math"

// fma is x*y + z rounded once, to single precision.
func fma(x, y, z float32) float32 {
	f, odd := rounded(x, y, z)
	if odd {
		return fmaOdd(x, y, z)
	}
	return f
}

// rounded is fma but for cases in which odd is set. The product is exact in
// float64, so only where the sum lands between two float32s, or among subnormal
// ones, can rounding twice differ from rounding once. Loops call it, since it is
// inlined, in place of fma.
func rounded(x, y, z float32) (f float32, odd bool) {
	s := float64(x)*float64(y) + float64(z)
	b := math.Float64bits(s)
	return float32(s), b&(1<<29-1) == 1<<28 || b&(1<<63-1) < 0x381<<52
}

// fmaOdd rounds the sum to odd first (Boldo and Melquiond 2008): where bits are
// lost, the last one kept is set to 1, so the second rounding sees them.
func fmaOdd(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	v := s - p
	lost := (p - (s - v)) + (c - v)
	if b := math.Float64bits(s); lost != 0 && b&1 == 0 {
		if (lost > 0) == (s > 0) {
			s = math.Float64frombits(b + 1)
		} else {
			s = math.Float64frombits(b - 1)
		}
	}
	return float32(s)
}
