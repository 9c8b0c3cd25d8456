package matmul

import (
	"encoding/binary"
	"math"

	"tokenrouter/kernels"
)

// product is what kernels compute: outputs of a band of groups, or of count whole
// bands one behind the other, with a tile of width columns. w begins at the first
// group, x at the tile; column c of the tile has its outputs at y[c*ldy:].
type product struct {
	w, x  []byte
	y     []float32
	width int // columns
	k     int // columns in memory
	step  int // bytes between units of a group
	rows  int // groups of a band
	count int
	ldy   int
}

// run computes a product in Go, group by group and column by column.
func (p *product) run(f Format) {
	bytes, units := f.unitBytes(), p.k/f.columns()
	for i := range p.count * p.rows {
		w := p.w[i/p.rows*units*p.step+i%p.rows*bytes:][:(units-1)*p.step+bytes]
		for c := range p.width {
			y := (*[lanes]float32)(p.y[c*p.ldy+i*lanes:])
			switch f {
			case F32:
				p.groupF32(y, w, c)
			case F16:
				p.groupF16(y, w, c)
			case BF16:
				p.groupBF16(y, w, c)
			case Q8:
				p.groupQ8(y, w, c)
			case Q4:
				p.groupQ4(y, w, c)
			}
		}
	}
}

func f32at(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
}

// groupF32 is the outputs of a group of rows with column c: one chain for each
// row, eight of them side by side.
func (p *product) groupF32(y *[lanes]float32, w []byte, c int) {
	for r := 0; r < lanes; r += 8 {
		var a0, a1, a2, a3, a4, a5, a6, a7 float32
		for k := range p.k {
			v, row := f32at(p.x, 4*(k*p.width+c)), (*[32]byte)(w[k*p.step+4*r:])
			a0 = fma(f32at(row[:], 0), v, a0)
			a1 = fma(f32at(row[:], 4), v, a1)
			a2 = fma(f32at(row[:], 8), v, a2)
			a3 = fma(f32at(row[:], 12), v, a3)
			a4 = fma(f32at(row[:], 16), v, a4)
			a5 = fma(f32at(row[:], 20), v, a5)
			a6 = fma(f32at(row[:], 24), v, a6)
			a7 = fma(f32at(row[:], 28), v, a7)
		}
		*(*[8]float32)(y[r:]) = [8]float32{a0, a1, a2, a3, a4, a5, a6, a7}
	}
}

func (p *product) groupF16(y *[lanes]float32, w []byte, c int) {
	*y = [lanes]float32{}
	for k := range p.k {
		v, row := f32at(p.x, 4*(k*p.width+c)), (*[2 * lanes]byte)(w[k*p.step:])
		for r := range y {
			y[r] = fma(kernels.F16(binary.LittleEndian.Uint16(row[2*r:])), v, y[r])
		}
	}
}

func (p *product) groupBF16(y *[lanes]float32, w []byte, c int) {
	*y = [lanes]float32{}
	for k := 0; k < p.k; k += 2 {
		at, row := 4*(k*p.width+c), (*[4 * lanes]byte)(w[k/2*p.step:])
		v0, v1 := f32at(p.x, at), f32at(p.x, at+4*p.width)
		for r := range y {
			pair := binary.LittleEndian.Uint32(row[4*r:])
			y[r] = fma(math.Float32frombits(pair&0xffff0000), v1, fma(math.Float32frombits(pair<<16), v0, y[r]))
		}
	}
}

// groupQ8 sums up integers within a block and takes the sum to the outputs.
func (p *product) groupQ8(y *[lanes]float32, w []byte, c int) {
	*y = [lanes]float32{}
	for b := range p.k / block {
		u, x := w[b/half*p.step:], p.x[b*p.width*blockQ8x:][:p.width*blockQ8x]
		var v [block]int32
		for i := range v {
			at := headBytes*p.width + 8*(i/4*p.width+c) + 2*order[i%4]
			v[i] = int32(int16(binary.LittleEndian.Uint16(x[at:])))
		}
		d, correction := head(x, c, p.width)
		q := (*[block * lanes]byte)(u[scales+b%half*block*lanes:])
		for r := range y {
			sum := correction
			for i := 0; i < block; i += 4 {
				sum += four(binary.LittleEndian.Uint32(q[i*lanes+4*r:]), (*[4]int32)(v[i:]))
			}
			y[r] = fma(float32(float32(sum)*d), scale(u, b%half, r), y[r])
		}
	}
}

func (p *product) groupQ4(y *[lanes]float32, w []byte, c int) {
	*y = [lanes]float32{}
	for b := range p.k / block {
		u, x := w[b/half*p.step:], p.x[b*p.width*blockQ4x:][:p.width*blockQ4x]
		var v [block]int32
		for i := range v {
			v[i] = int32(int8(x[headBytes*p.width+4*(i/4*p.width+c)+i%4]))
		}
		d, correction := head(x, c, p.width)
		q := (*[block * lanes / 2]byte)(u[scales+b%half*block*lanes/2:])
		for r := range y {
			sum := correction
			for i := 0; i < block/2; i += 4 {
				both := binary.LittleEndian.Uint32(q[i*lanes+4*r:])
				sum += four(both&0x0f0f0f0f, (*[4]int32)(v[i:]))
				sum += four(both>>4&0x0f0f0f0f, (*[4]int32)(v[block/2+i:]))
			}
			y[r] = fma(float32(float32(sum)*d), scale(u, b%half, r), y[r])
		}
	}
}

// head is the scale and the correction of column c in a block of a tile.
func head(x []byte, c, width int) (d float32, correction int32) {
	return f32at(x, 4*c), int32(binary.LittleEndian.Uint32(x[4*(width+c):]))
}

// four is the sum of products of four unsigned bytes and v.
func four(w uint32, v *[4]int32) int32 {
	return int32(w&255)*v[0] + int32(w>>8&255)*v[1] + int32(w>>16&255)*v[2] + int32(w>>24)*v[3]
}

// order is the place of each of four int16 (Input).
var order = [4]int{0, 2, 1, 3}

// put packs values at.. of column col of a tile of width columns: whole blocks of
// 32, of floats any number.
func (f Format) put(tile []byte, width, col, at int, x []float32) {
	switch f {
	case Q8:
		putQ8(tile, width, col, at, x)
	case Q4:
		putQ4(tile, width, col, at, x)
	default:
		putFloats(tile, width, col, at, x)
	}
}

func putFloats(tile []byte, width, col, at int, x []float32) {
	tile = tile[4*(at*width+col):]
	for i, v := range x {
		binary.LittleEndian.PutUint32(tile[4*i*width:], math.Float32bits(v))
	}
}

// putQ8 quantises blocks to 16 bits: scale = largest magnitude / 32767.
func putQ8(tile []byte, width, col, at int, x []float32) {
	for ; len(x) > 0; x, at = x[block:], at+block {
		b := tile[at/block*width*blockQ8x:]
		scale, inverse := steps((*[block]float32)(x), 32767)
		var sum int32
		for i, v := range x[:block] {
			q := integer(v, inverse)
			sum += q
			binary.LittleEndian.PutUint16(b[headBytes*width+8*(i/4*width+col)+2*order[i%4]:], uint16(q))
		}
		binary.LittleEndian.PutUint32(b[4*col:], math.Float32bits(scale))
		binary.LittleEndian.PutUint32(b[4*(width+col):], uint32(-128*sum))
	}
}

// putQ4 quantises blocks to 8 bits: scale = largest magnitude / 127.
func putQ4(tile []byte, width, col, at int, x []float32) {
	for ; len(x) > 0; x, at = x[block:], at+block {
		b := tile[at/block*width*blockQ4x:]
		scale, inverse := steps((*[block]float32)(x), 127)
		var sum int32
		for i, v := range x[:block] {
			q := integer(v, inverse)
			sum += q
			b[headBytes*width+4*(i/4*width+col)+i%4] = byte(q)
		}
		binary.LittleEndian.PutUint32(b[4*col:], math.Float32bits(scale))
		binary.LittleEndian.PutUint32(b[4*(width+col):], uint32(-8*sum))
	}
}

const (
	tinyBits = 0x0da24260 // of 1e-30: smaller blocks count as zeros
	infBits  = 0x7f800000
	nanBits  = 0x7fc00000
)

// steps is the scale of a block whose largest magnitude becomes top, and what
// its values are multiplied by. Magnitudes are compared as bits, where NaN is
// above infinity.
func steps(x *[block]float32, top float32) (scale, inverse float32) {
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&0x7fffffff)
	}
	switch {
	case most < tinyBits:
		return 0, 0
	case most >= infBits:
		return math.Float32frombits(nanBits), 0
	}
	m := math.Float32frombits(most)
	return m / top, top / m
}

// integer is v in steps, to nearest, ties to even; 0 for what is not finite.
func integer(v, inverse float32) int32 {
	p := float32(v * inverse)
	if p != p {
		return 0
	}
	return int32(math.RoundToEven(float64(p)))
}
