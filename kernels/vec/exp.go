package vec

import "math"

// e^x for x <= 0: x = n*ln 2 + r with |r| <= ln 2 / 2, and e^r = 1 + r + r^2 P(r)
// with P through the Chebyshev nodes of that interval, which leaves a relative
// error of 1.1e-8. Adding expMagic rounds x/ln 2 to the integer n and leaves
// n+127 in the lowest bits, which shifted to the place of the exponent are 2^n,
// and 0 for n = -127.
const (
	expLow   = -88 // below about -87.7 the result is 0
	expMagic = 0x1.8p23 + 127
	log2e    = 1.44269504088896341
	ln2Hi    = 0.693359375 // few enough bits that n*ln2Hi is exact
	ln2Lo    = -2.12194440e-4
)

var expPoly = [5]float32{0.0013926192, 0.0083631864, 0.041666556, 0.16666576, 0.5}

// exp is e^x for x <= 0, within 1.1 units of the last place; 0 where the result
// would be subnormal but for a last few, NaN for NaN.
func exp(x float32) float32 {
	if expLow > x {
		x = expLow
	}
	t, o := rounded(x, log2e, expMagic)
	n := t - expMagic
	r, o1 := rounded(-n, ln2Hi, x)
	r, o2 := rounded(-n, ln2Lo, r)
	p, o3 := rounded(expPoly[0], r, expPoly[1])
	p, o4 := rounded(p, r, expPoly[2])
	p, o5 := rounded(p, r, expPoly[3])
	p, o6 := rounded(p, r, expPoly[4])
	q, o7 := rounded(p, float32(r*r), r)
	two := math.Float32frombits(math.Float32bits(t) << 23)
	e, o8 := rounded(q, two, two)
	if o || o1 || o2 || o3 || o4 || o5 || o6 || o7 || o8 {
		return expOdd(x)
	}
	return e
}

// expOdd is exp for x >= expLow where rounding needs care.
func expOdd(x float32) float32 {
	t := fma(x, log2e, expMagic)
	n := t - expMagic
	r := fma(-n, ln2Lo, fma(-n, ln2Hi, x))
	p := expPoly[0]
	for _, c := range expPoly[1:] {
		p = fma(p, r, c)
	}
	q := fma(p, float32(r*r), r)
	two := math.Float32frombits(math.Float32bits(t) << 23)
	return fma(q, two, two)
}

// joined is the sum of sixteen lanes, which are folded in halves.
func joined(a *[16]float32) float32 {
	var b [8]float32
	for l := range b {
		b[l] = a[l] + a[l+8]
	}
	return joined8(&b)
}

func joined8(a *[8]float32) float32 {
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

// largest is the largest of some lanes.
func largest(a []float32) float32 {
	m := a[0]
	for _, x := range a[1:] {
		if x > m {
			m = x
		}
	}
	return m
}
