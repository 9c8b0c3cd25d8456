package kernels

import (
	"encoding/binary"
	"math"
)

// F16 is the value of an IEEE 754 half-precision number, exactly.
func F16(h uint16) float32 {
	sign := uint32(h>>15) << 31
	e, frac := uint32(h>>10)&31, uint32(h)&1023
	switch e {
	case 0: // zero or subnormal: frac * 2^-24
		v := float32(frac) * 0x1p-24
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | frac<<13)
}

// BF16 is the value of a bfloat16 number, exactly.
func BF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToF16 rounds to half precision, ties to even; from 65520 on it is infinite. NaN
// stays a (quiet) NaN with its upper bits, as processors convert it.
func ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000:
		return sign | 0x7c00
	case b < 0x38800000: // subnormal: adding 1/2 leaves multiples of 2^-24
		h := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(h)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-112<<23)>>13)
}

// ToBF16 rounds to bfloat16, ties to even; NaN stays a (quiet) NaN.
func ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromF16 converts len(dst) little-endian half-precision numbers.
func FromF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = F16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// FromBF16 converts len(dst) little-endian bfloat16 numbers.
func FromBF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = BF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// FromF32 converts len(dst) little-endian single-precision numbers.
func FromF32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}
