package tensor

import "math"

// bits is a block as a row of bits, the lowest of the first byte first.
type bits []byte

// number puts bits together, the lowest first.
func (b bits) number(places ...int) int {
	n := 0
	for i, p := range places {
		n |= int(b[p/8]>>(p%8)&1) << i
	}
	return n
}

// run is n places from p on.
func run(p, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = p + i
	}
	return out
}

// half16 is the half-precision number at a bit, by the definition of IEEE 754.
func (b bits) half16(p int) float64 {
	f, e := float64(b.number(run(p, 10)...)), b.number(run(p+10, 5)...)
	sign := float64(1 - 2*b.number(p+15))
	switch {
	case e == 0:
		return sign * math.Ldexp(f, -24)
	case e == 31 && f == 0:
		return math.Inf(int(sign))
	case e == 31:
		return math.NaN()
	}
	return sign * math.Ldexp(1024+f, e-25)
}

// signed8 is the signed byte at a bit.
func (b bits) signed8(p int) float64 {
	return float64(b.number(run(p, 7)...) - 128*b.number(p+7))
}

// round is the rounding of one step.
func round(v float64) float64 { return float64(float32(v)) }

// oracleLevels are the values of IQ4_NL as its steps from one to the next.
var oracleLevels = func() (out [16]float64) {
	v := -127.0
	for i, step := range []float64{0, 23, 21, 18, 16, 14, 13, 12, 11, 12, 12, 13, 15, 16, 20, 24} {
		v += step
		out[i] = v
	}
	return out
}()

// oracleValue reads value i of a block from the places of its bits alone,
// written down from the formats' published descriptions.
func oracleValue(t Type, block []byte, i int) float32 {
	b := bits(block)
	low4 := func(at int) []int { // of 32 values whose quants begin at a byte
		return run((at+i%16)*8+i%32/16*4, 4)
	}
	switch t {
	case F32:
		return math.Float32frombits(uint32(b.number(run(0, 32)...)))
	case F16:
		return float32(b.half16(0))
	case BF16:
		return math.Float32frombits(uint32(b.number(run(0, 16)...)) << 16)
	case Q8_0:
		return float32(b.half16(0) * b.signed8(16+8*i))
	case Q4_0:
		return float32(b.half16(0) * float64(b.number(low4(2)...)-8))
	case Q4_1:
		return float32(round(b.half16(0)*float64(b.number(low4(4)...))) + b.half16(16))
	case Q5_0:
		return float32(b.half16(0) * float64(b.number(append(low4(6), 16+i)...)-16))
	case Q5_1:
		return float32(round(b.half16(0)*float64(b.number(append(low4(8), 32+i)...))) + b.half16(16))
	case Q2_K:
		q := b.number(run((16+i/128*32+i%32)*8+i%128/32*2, 2)...)
		d := round(b.half16(80*8) * float64(b.number(run(i/16*8, 4)...)))
		m := round(b.half16(82*8) * float64(b.number(run(i/16*8+4, 4)...)))
		return float32(round(d*float64(q)) - m)
	case Q3_K:
		q := b.number(append(run((32+i/128*32+i%32)*8+i%128/32*2, 2), i%32*8+i/32)...) - 4
		j := i / 16
		sc := b.number(append(run((96+j%8)*8+j/8*4, 4), run((104+j%4)*8+j/4*2, 2)...)...) - 32
		return float32(round(b.half16(108*8)*float64(sc)) * float64(q))
	case IQ4_NL:
		return float32(b.half16(0) * oracleLevels[b.number(low4(2)...)])
	case IQ4_XS:
		part := i / 32
		sc := b.number(append(run(32+part*4, 4), run(16+part*2, 2)...)...) - 32
		q := b.number(run((8+part*16+i%16)*8+i%32/16*4, 4)...)
		return float32(round(b.half16(0)*float64(sc)) * oracleLevels[q])
	case Q4_K, Q5_K:
		part := i / 32
		scale, offset := run(32+8*part, 6), run(64+8*part, 6)
		if part >= 4 {
			scale = append(run(32+8*(part+4), 4), 32+8*(part-4)+6, 32+8*(part-4)+7)
			offset = append(run(32+8*(part+4)+4, 4), 32+8*part+6, 32+8*part+7)
		}
		quants, fifth := 16, []int(nil)
		if t == Q5_K {
			quants, fifth = 48, []int{(16+i%32)*8 + part}
		}
		q := b.number(append(run((quants+part/2*32+i%32)*8+part%2*4, 4), fifth...)...)
		d := round(b.half16(0) * float64(b.number(scale...)))
		m := round(b.half16(16) * float64(b.number(offset...)))
		return float32(round(d*float64(q)) - m)
	case Q6_K:
		part, at := i/128, i%128
		q := b.number(append(run((part*64+at%64)*8+at/64*4, 4), run((128+part*32+at%32)*8+at/32*2, 2)...)...)
		d := round(b.half16(208*8) * b.signed8((192+i/16)*8))
		return float32(d * float64(q-32))
	}
	panic(t)
}
