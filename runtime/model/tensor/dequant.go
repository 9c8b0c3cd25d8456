package tensor

import (
	"encoding/binary"
	"fmt"

	"tokenrouter/kernels"
)

// Dequantize turns len(dst) values of type t, a whole number of blocks, into
// float32. Every value is what the format defines: products and sums are
// rounded to float32 one by one, in the order of the formulas below, so that
// the result is the same on every machine. It panics for a type that is not
// Known and for a src that is too short.
func Dequantize(t Type, dst []float32, src []byte) {
	f := reader(t)
	if f == nil {
		panic(fmt.Sprintf("tensor: %s is not a type that can be read", t))
	}
	if n := t.Block(); len(dst)%n != 0 {
		panic(fmt.Sprintf("tensor: %d values are no whole number of blocks of %s", len(dst), t))
	}
	f(dst, src[:t.Bytes(len(dst))])
}

// reader is the function that reads a type, nil where there is none.
func reader(t Type) func(dst []float32, src []byte) {
	switch t {
	case F32:
		return kernels.FromF32
	case F16:
		return kernels.FromF16
	case BF16:
		return kernels.FromBF16
	case Q8_0:
		return fromQ8
	case Q4_0:
		return fromQ4
	case Q4_1:
		return fromQ41
	case Q5_0:
		return fromQ5
	case Q5_1:
		return fromQ51
	case Q2_K:
		return fromQ2K
	case Q3_K:
		return fromQ3K
	case Q4_K:
		return fromQ4K
	case Q5_K:
		return fromQ5K
	case Q6_K:
		return fromQ6K
	case IQ4_NL:
		return fromIQ4NL
	case IQ4_XS:
		return fromIQ4XS
	}
	return nil
}

// half reads the half-precision number at the start of b.
func half(b []byte) float32 { return kernels.F16(binary.LittleEndian.Uint16(b)) }

// fromQ8 reads blocks of 32: f16 scale d, 32 signed bytes q. Value d*q.
func fromQ8(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := src[:34], dst[:32]
		d := half(b)
		for i, q := range b[2:] {
			y[i] = d * float32(int8(q))
		}
		src, dst = src[34:], dst[32:]
	}
}

// fromQ4 reads blocks of 32: f16 scale d, 16 bytes with the values 0..15 in
// their low and 16..31 in their high four bits. Value d*(q-8).
func fromQ4(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := src[:18], dst[:32]
		d := half(b)
		for i, q := range b[2:] {
			y[i] = d * float32(int(q&15)-8)
			y[i+16] = d * float32(int(q>>4)-8)
		}
		src, dst = src[18:], dst[32:]
	}
}

// fromQ41 reads blocks of 32: f16 scale d, f16 offset m, quants as in Q4_0.
// Value d*q + m.
func fromQ41(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := src[:20], dst[:32]
		d, m := half(b), half(b[2:])
		for i, q := range b[4:] {
			y[i] = float32(d*float32(q&15)) + m
			y[i+16] = float32(d*float32(q>>4)) + m
		}
		src, dst = src[20:], dst[32:]
	}
}

// fromQ5 reads blocks of 32: f16 scale d, 32 bits with the fifth bit of value i
// at place i, low four bits as in Q4_0. Value d*(q-16).
func fromQ5(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := src[:22], dst[:32]
		d, high := half(b), binary.LittleEndian.Uint32(b[2:])
		for i, q := range b[6:] {
			y[i] = d * float32(int(uint32(q&15)|high>>i&1<<4)-16)
			y[i+16] = d * float32(int(uint32(q>>4)|high>>(i+16)&1<<4)-16)
		}
		src, dst = src[22:], dst[32:]
	}
}

// fromQ51 reads blocks of 32: f16 scale d, f16 offset m, quants as in Q5_0.
// Value d*q + m.
func fromQ51(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := src[:24], dst[:32]
		d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for i, q := range b[8:] {
			y[i] = float32(d*float32(uint32(q&15)|high>>i&1<<4)) + m
			y[i+16] = float32(d*float32(uint32(q>>4)|high>>(i+16)&1<<4)) + m
		}
		src, dst = src[24:], dst[32:]
	}
}
