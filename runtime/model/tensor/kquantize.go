package tensor

import (
	"encoding/binary"

	"tokenrouter/kernels"
)

// toQ4K gives each part of 32 the range from min(0, smallest) to its largest
// value, with scale and minimum as multiples of a 63rd of the block's largest.
func toQ4K(b []byte, x []float32) {
	clear(b)
	var scales, minima [8]float32
	var topScale, topMin float32
	for p := range 8 {
		var low, high float32
		for _, v := range x[p*32:][:32] {
			low, high = min(low, v), max(high, v)
		}
		scales[p], minima[p] = (high-low)/15, -low
		topScale, topMin = max(topScale, scales[p]), max(topMin, minima[p])
	}
	d, dmin := topScale/63, topMin/63
	binary.LittleEndian.PutUint16(b, kernels.ToF16(d))
	binary.LittleEndian.PutUint16(b[2:], kernels.ToF16(dmin))
	d, dmin = half(b), half(b[2:])
	perScale, perMin := inverse(d), inverse(dmin)
	for p := range 8 {
		sc := min(uint8(float32(scales[p]*perScale)+0.5), 63)
		m := min(uint8(float32(minima[p]*perMin)+0.5), 63)
		if s := b[4:16]; p < 4 {
			s[p] |= sc
			s[p+4] |= m
		} else {
			s[p+4] = sc&15 | m&15<<4
			s[p-4] |= sc >> 4 << 6
			s[p] |= m >> 4 << 6
		}
		inv, offset := inverse(d*float32(sc)), dmin*float32(m)
		q := b[16+p/2*32:][:32]
		for i, v := range x[p*32:][:32] {
			n := min(max(int(float32((v+offset)*inv)+0.5), 0), 15)
			q[i] |= byte(n << (p % 2 * 4))
		}
	}
}

// toQ6K gives each 16 values the scale of their value of largest size, as a
// multiple of a 127th of the block's largest scale.
func toQ6K(b []byte, x []float32) {
	clear(b)
	var scales [16]float32
	var top float32
	for s := range scales {
		scales[s] = peak(x[s*16:][:16]) / -32
		top = max(top, scales[s], -scales[s])
	}
	binary.LittleEndian.PutUint16(b[208:], kernels.ToF16(top/127))
	d := half(b[208:])
	per := inverse(d)
	for s, scale := range scales {
		v := scale * per
		sc := roundInt8(v)
		b[192+s] = byte(sc)
		inv := inverse(d * float32(sc))
		for j, v := range x[s*16:][:16] {
			q := min(max(int(float32(v*inv)+32.5), 0), 63)
			i := s*16 + j // value in the block
			part, at := i/128, i%128
			b[part*64+at%64] |= byte(q & 15 << (at / 64 * 4))
			b[128+part*32+at%32] |= byte(q >> 4 << (at / 32 * 2))
		}
	}
}

// roundInt8 rounds halves away from zero and stays within -127..127.
func roundInt8(v float32) int8 {
	if v < 0 {
		return -roundInt8(-v)
	}
	return int8(min(v+0.5, 127))
}
