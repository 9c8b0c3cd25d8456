package matmul

import (
	"encoding/binary"
	"math"

	"tokenrouter/kernels"
)

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
	h := kernels.ToF16(d)
	binary.LittleEndian.PutUint16(q[:], h)
	if h == 0 {
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
	h := kernels.ToF16(d)
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
