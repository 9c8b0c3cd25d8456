package kernels

import "math"

// exp and ln are written out so that every machine computes the same bits: the
// standard library's differ between architectures. Both take products apart
// from sums explicitly. Relative error below 2e-12, which leaves float32
// results within half a unit of the last place but for ties.

// expTable holds the bits of 2^(i/32).
var expTable = [32]uint64{
	0x3ff0000000000000, 0x3ff059b0d3158574, 0x3ff0b5586cf9890f, 0x3ff11301d0125b51,
	0x3ff172b83c7d517b, 0x3ff1d4873168b9aa, 0x3ff2387a6e756238, 0x3ff29e9df51fdee1,
	0x3ff306fe0a31b715, 0x3ff371a7373aa9cb, 0x3ff3dea64c123422, 0x3ff44e086061892d,
	0x3ff4bfdad5362a27, 0x3ff5342b569d4f82, 0x3ff5ab07dd485429, 0x3ff6247eb03a5585,
	0x3ff6a09e667f3bcd, 0x3ff71f75e8ec5f74, 0x3ff7a11473eb0187, 0x3ff82589994cce13,
	0x3ff8ace5422aa0db, 0x3ff93737b0cdc5e5, 0x3ff9c49182a3f090, 0x3ffa5503b23e255d,
	0x3ffae89f995ad3ad, 0x3ffb7f76f2fb5e47, 0x3ffc199bdd85529c, 0x3ffcb720dcef9069,
	0x3ffd5818dcfba487, 0x3ffdfc97337b9b5f, 0x3ffea4afa2a490da, 0x3fff50765b6e4540,
}

const (
	roundMagic = 0x1.8p52      // adding it rounds to an integer held in the low bits
	log2e32    = 32 / math.Ln2 // x * log2e32 counts steps of ln2/32
	ln2by32    = math.Ln2 / 32 // one step
	expMax     = 709.0         // exp overflows a little above
	expMin     = -708.0        // below, exp is denormal and taken as 0
)

// exp is e^x: x = k*ln2/32 + r, e^x = 2^(k/32) * (1 + r + ... + r^4/24).
// NaN gives NaN.
func exp(x float64) float64 {
	if !(x >= expMin && x <= expMax) {
		return expEdge(x)
	}
	t := float64(x*log2e32) + roundMagic
	k := int64(math.Float64bits(t)) - int64(math.Float64bits(roundMagic))
	r := x - float64((t-roundMagic)*ln2by32)
	r2 := float64(r * r)
	p := (1 + r) + float64(r2*((0.5+float64(r*(1.0/6)))+float64(r2*(1.0/24))))
	return float64(p * math.Float64frombits(expTable[k&31]+uint64(k>>5)<<52))
}

// expSum replaces each of x by exp(x - top) and returns their sum in float64.
// It repeats the body of exp, which is too long to be inlined: the calls would
// take an eighth of a softmax.
func expSum(x []float32, top float32) float64 {
	var sum float64
	for i, v := range x {
		d := float64(v - top)
		if !(d >= expMin && d <= expMax) {
			d = expEdge(d)
			x[i] = float32(d)
			sum += d
			continue
		}
		t := float64(d*log2e32) + roundMagic
		k := int64(math.Float64bits(t)) - int64(math.Float64bits(roundMagic))
		r := d - float64((t-roundMagic)*ln2by32)
		r2 := float64(r * r)
		p := (1 + r) + float64(r2*((0.5+float64(r*(1.0/6)))+float64(r2*(1.0/24))))
		e := float64(p * math.Float64frombits(expTable[k&31]+uint64(k>>5)<<52))
		x[i] = float32(e)
		sum += e
	}
	return sum
}

// Exp is e^x in double precision, the same bits on every machine; 0 below -708.
func Exp(x float64) float64 { return exp(x) }

// Ln is the natural logarithm of a finite x > 0, the same bits on every machine.
func Ln(x float64) float64 { return ln(x) }

func expEdge(x float64) float64 {
	switch {
	case x < expMin:
		return 0
	case x > expMax:
		return math.Inf(1)
	}
	return x
}

// ln is the natural logarithm for finite x > 0: x = 2^k * m with m around 1,
// ln m = 2*artanh((m-1)/(m+1)) as a series.
func ln(x float64) float64 {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	s := (m - 1) / (m + 1)
	s2 := float64(s * s)
	var p float64
	for n := 19.0; n >= 1; n -= 2 {
		p = 1/n + float64(p*s2)
	}
	return float64(float64(2*s)*p) + float64(float64(k)*math.Ln2)
}
