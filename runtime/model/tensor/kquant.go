package tensor

import "encoding/binary"

// scaleMin unpacks the j-th (0..7) scale and minimum, of six bits each, from
// the 12 bytes that Q4_K and Q5_K have for them: 0..3 lie in the low six bits
// of bytes 0..3 (scales) and 4..7 (minima); 4..7 have their low four bits in
// bytes 8..11 (scales in the low half, minima in the high half) and their upper
// two in the top of bytes 0..3 and 4..7.
func scaleMin(s []byte, j int) (scale, minimum uint8) {
	if j < 4 {
		return s[j] & 63, s[j+4] & 63
	}
	return s[j+4]&15 | s[j-4]>>6<<4, s[j+4]>>4 | s[j]>>6<<4
}

// fromQ4K reads super-blocks of 256, eight parts of 32: f16 scale d of the
// scales, f16 scale dmin of the minima, 12 bytes of scales sc and minima m, 128
// bytes of quants: 32 bytes for each two parts, the first in the low four bits.
// Value (d*sc)*q - dmin*m.
func fromQ4K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := src[:144]
		d, dmin := half(b), half(b[2:])
		for part := range 8 {
			sc, m := scaleMin(b[4:16], part)
			scale, offset := d*float32(sc), dmin*float32(m)
			y, shift := dst[part*32:][:32], part%2*4
			for i, q := range b[16+part/2*32:][:32] {
				y[i] = float32(scale*float32(q>>shift&15)) - offset
			}
		}
		src, dst = src[144:], dst[256:]
	}
}

// fromQ5K reads super-blocks of 256 like those of Q4_K with 32 bytes between
// scales and quants: bit p of byte i is the fifth bit of value i of part p.
func fromQ5K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := src[:176]
		d, dmin := half(b), half(b[2:])
		high := b[16:48]
		for part := range 8 {
			sc, m := scaleMin(b[4:16], part)
			scale, offset := d*float32(sc), dmin*float32(m)
			y, shift := dst[part*32:][:32], part%2*4
			for i, q := range b[48+part/2*32:][:32] {
				y[i] = float32(scale*float32(q>>shift&15|high[i]>>part&1<<4)) - offset
			}
		}
		src, dst = src[176:], dst[256:]
	}
}

// fromQ6K reads super-blocks of 256, two halves of 128: 64 bytes of low parts a
// half, the first 64 values in the low four bits; 32 bytes of upper parts a
// half, two bits for value i, i+32, i+64 and i+96 each; then 16 signed bytes
// of scales sc, one for 16 values, and the f16 scale d. Value (d*sc)*(q-32).
func fromQ6K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := src[:210]
		d := half(b[208:])
		for part := range 8 { // of 32 values
			halfBlock, quarter := part/4, part%4
			low := b[halfBlock*64+quarter%2*32:][:32]
			high := b[128+halfBlock*32:][:32]
			shift, up := quarter/2*4, quarter*2
			for sub := range 2 { // of 16 values
				scale := d * float32(int8(b[192+part*2+sub]))
				y := dst[part*32+sub*16:][:16]
				for i := range y {
					q := low[sub*16+i]>>shift&15 | high[sub*16+i]>>up&3<<4
					y[i] = scale * float32(int(q)-32)
				}
			}
		}
		src, dst = src[210:], dst[256:]
	}
}

// fromQ2K reads super-blocks of 256, sixteen parts of 16: 16 bytes with the
// scale sc of a part in the low and its minimum m in the high four bits, two
// halves of 32 bytes of quants, two bits for value i, i+32, i+64 and i+96 of the
// half each, then the f16 scales d of the scales and dmin of the minima. Value
// (d*sc)*q - dmin*m.
func fromQ2K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := src[:84]
		d, dmin := half(b[80:]), half(b[82:])
		for part := range 16 {
			scale, offset := d*float32(b[part]&15), dmin*float32(b[part]>>4)
			shift, y := part%8/2*2, dst[part*16:][:16]
			for i, q := range b[16+part/8*32+part%2*16:][:16] {
				y[i] = float32(scale*float32(q>>shift&3)) - offset
			}
		}
		src, dst = src[84:], dst[256:]
	}
}

// fromQ3K reads super-blocks of 256, sixteen parts of 16: 32 bytes of third
// bits (bit p of byte i for value 32*p+i; 0 takes 4 away), quants as in Q2_K, 12
// bytes of scales sc of six bits (eight bytes of their low four bits, parts 0..7
// in the low half; four of the upper two for parts j, j+4, j+8 and j+12), then
// the f16 scale d. Value (d*(sc-32))*(q-4).
func fromQ3K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := src[:110]
		high, scales, d := b[:32], b[96:108], half(b[108:])
		for part := range 16 {
			sc := scales[part%8]>>(part/8*4)&15 | scales[8+part%4]>>(part/4*2)&3<<4
			scale := d * float32(int(sc)-32)
			shift, y := part%8/2*2, dst[part*16:][:16]
			up := high[part%2*16:][:16]
			for i, q := range b[32+part/8*32+part%2*16:][:16] {
				y[i] = scale * float32(int(q>>shift&3|up[i]>>(part/2)&1<<2)-4)
			}
		}
		src, dst = src[110:], dst[256:]
	}
}

// levels are the sixteen values of IQ4_NL and IQ4_XS, closer together where
// weights are more frequent.
var levels = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// fromIQ4NL reads blocks of 32 like those of Q4_0. Value d*levels[q].
func fromIQ4NL(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := src[:18], dst[:32]
		d := half(b)
		for i, q := range b[2:] {
			y[i] = d * levels[q&15]
			y[i+16] = d * levels[q>>4]
		}
		src, dst = src[18:], dst[32:]
	}
}

// fromIQ4XS reads super-blocks of 256, eight parts of 32: the f16 scale d, 16
// bits with the upper two bits of each part's scale sc, four bytes with their low
// four bits, and quants of each part as in IQ4_NL. Value (d*(sc-32))*levels[q].
func fromIQ4XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := src[:136]
		d, high := half(b), binary.LittleEndian.Uint16(b[2:])
		for part := range 8 {
			sc := uint16(b[4+part/2]>>(part%2*4)&15) | high>>(2*part)&3<<4
			scale, y := d*float32(int(sc)-32), dst[part*32:][:32]
			for i, q := range b[8+part*16:][:16] {
				y[i] = scale * levels[q&15]
				y[i+16] = scale * levels[q>>4]
			}
		}
		src, dst = src[136:], dst[256:]
	}
}
