package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"tokenrouter/kernels"
)

// Quantizes says that Quantize writes the type.
func (t Type) Quantizes() bool {
	switch t {
	case F32, F16, BF16, Q8_0, Q5_0, Q4_0, Q6_K, Q4_K:
		return true
	}
	return false
}

// Quantize turns src, a whole number of blocks, into type t: the nearest
// number for F32, F16 and BF16 (ties to even), the rule of the field for blocks
// of 32:
//
//	Q8_0: d = max|x| / 127, q = round(x/d), halves away from zero
//	Q4_0: d = x of largest |x| / -8, q = floor(x/d + 8.5), at most 15
//	Q5_0: d = x of largest |x| / -16, q = floor(x/d + 16.5), at most 31
//
// where d is rounded to half precision only when it is stored. The super-blocks
// of Q4_K and Q6_K get plain scales (the range of each part), not the searched
// ones of other tools: enough for files to test with. Values must be finite. It
// panics for a type that it does not write and for a dst that is too short.
func Quantize(t Type, dst []byte, src []float32) {
	if !t.Quantizes() {
		panic(fmt.Sprintf("tensor: %s is not a type that can be written", t))
	}
	if n := t.Block(); len(src)%n != 0 {
		panic(fmt.Sprintf("tensor: %d values are no whole number of blocks of %s", len(src), t))
	}
	dst = dst[:t.Bytes(len(src))]
	switch t {
	case F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	case F16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], kernels.ToF16(v))
		}
	case BF16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], kernels.ToBF16(v))
		}
	default:
		f, n, size := writer(t), t.Block(), t.BlockBytes()
		for ; len(src) > 0; src, dst = src[n:], dst[size:] {
			f(dst[:size], src[:n])
		}
	}
}

// writer is the function that writes a block.
func writer(t Type) func(b []byte, x []float32) {
	switch t {
	case Q8_0:
		return toQ8
	case Q5_0:
		return toQ5
	case Q4_0:
		return toQ4
	case Q6_K:
		return toQ6K
	}
	return toQ4K
}

const signBit = 1 << 31

func toQ8(b []byte, x []float32) {
	var top uint32 // sizes of floats are in the order of their bits
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^signBit)
	}
	d := math.Float32frombits(top) / 127
	binary.LittleEndian.PutUint16(b, kernels.ToF16(d))
	inv := inverse(d)
	q := b[2:34]
	for i, v := range x[:32] {
		// In float64 the sum is exact, so that truncating it rounds halves away from
		// zero; in float32 a number just below a half would be rounded up first.
		s := float64(v * inv)
		q[i] = byte(int8(s + math.Copysign(0.5, s)))
	}
}

// peak is the value of largest size, the first of several.
func peak(x []float32) float32 {
	var top uint32
	var at float32
	for _, v := range x {
		if a := math.Float32bits(v) &^ signBit; a > top {
			top, at = a, v
		}
	}
	return at
}

func toQ4(b []byte, x []float32) {
	d := peak(x) / -8
	binary.LittleEndian.PutUint16(b, kernels.ToF16(d))
	inv := inverse(d)
	q := b[2:18]
	for i := range q {
		low := min(int(float32(x[i]*inv)+8.5), 15)
		high := min(int(float32(x[i+16]*inv)+8.5), 15)
		q[i] = byte(low | high<<4)
	}
}

func toQ5(b []byte, x []float32) {
	d := peak(x) / -16
	binary.LittleEndian.PutUint16(b, kernels.ToF16(d))
	inv := inverse(d)
	q, fifth := b[6:22], uint32(0)
	for i := range q {
		low := min(uint32(float32(x[i]*inv)+16.5), 31)
		high := min(uint32(float32(x[i+16]*inv)+16.5), 31)
		q[i] = byte(low&15 | high&15<<4)
		fifth |= low>>4<<i | high>>4<<(i+16)
	}
	binary.LittleEndian.PutUint32(b[2:], fifth)
}

// inverse is 1/d, or 0 where d is so small that it would be stored as 0 and 1/d
// would overflow.
func inverse(d float32) float32 {
	if max(d, -d) < 0x1p-126 {
		return 0
	}
	return 1 / d
}
