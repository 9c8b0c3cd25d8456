package matmul

import (
	"encoding/binary"
	"math"
)

// roundF16 is the nearest number of half precision, ties to even; beyond 65504
// it is infinite.
func roundF16(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 // NaN
	case b >= 0x477ff000:
		return sign | 0x7c00 // 65520 and above
	case b >= 0x38800000: // normal: the exponent's bias goes from 127 to 15
		b -= (127 - 15) << 23
		return sign | uint16((b+0xfff+b>>13&1)>>13)
	case b <= 0x33000000:
		return sign // at most half of 2^-24
	}
	// Subnormal: the mantissa with its leading one, in steps of 2^-24.
	shift := 126 - b>>23
	m := b&0x7fffff | 0x800000
	return sign | uint16((m+1<<(shift-1)-1+m>>shift&1)>>shift)
}

// roundBF16 is the nearest bfloat16, ties to even.
func roundBF16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// quantiseQ8 makes a block of Q8_0: scale = largest magnitude / 127, integers
// rounded half away from zero.
func quantiseQ8(x *[block]float32) (q [rawQ8]byte) {
	var top float32
	for _, v := range x {
		top = max(top, abs(v))
	}
	d := top / 127
	var inverse float32
	if d != 0 {
		inverse = 1 / d
	}
	binary.LittleEndian.PutUint16(q[:], roundF16(d))
	if roundF16(d) == 0 {
		return q // nothing that the scale could express
	}
	for i, v := range x {
		q[2+i] = byte(int8(math.Round(float64(v * inverse))))
	}
	return q
}

// quantiseQ4 makes a block of Q4_0: the value of largest magnitude becomes -8
// steps, the others are rounded half up, at most 7 steps.
func quantiseQ4(x *[block]float32) (q [rawQ4]byte) {
	var top, signed float32
	for _, v := range x {
		if a := abs(v); a > top || a != a {
			top, signed = a, v
		}
	}
	d := signed / -8
	var inverse float32
	if d != 0 {
		inverse = 1 / d
	}
	h := roundF16(d)
	binary.LittleEndian.PutUint16(q[:], h)
	if h&0x7fff == 0 {
		inverse = 0
	}
	half := func(v float32) byte { return byte(min(15, int(float32(v*inverse)+8.5))) }
	for i := range block / 2 {
		q[2+i] = half(x[i]) | half(x[block/2+i])<<4
	}
	return q
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) & 0x7fffffff) }
