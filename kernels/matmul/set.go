package matmul

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"

	"tokenrouter/kernels"
)

const (
	rawQ8 = 2 + block   // bytes of a block of Q8_0: scale, integers
	rawQ4 = 2 + block/2 // bytes of a block of Q4_0: scale, halves of bytes
)

// RawBytes is the number of bytes of a row of cols weights as GGUF stores it:
// what SetRaw takes. Cols of Q8 and Q4 are a multiple of 32.
func (f Format) RawBytes(cols int) int {
	switch f {
	case F32:
		return 4 * cols
	case Q8:
		return cols / block * rawQ8
	case Q4:
		return cols / block * rawQ4
	}
	return 2 * cols
}

// raw checks what a row is set from.
func (m *Matrix) raw(f Format, src []byte) []byte {
	n := f.RawBytes(m.Cols)
	if len(src) != n || f.quantised() && m.Cols%block != 0 {
		panic(fmt.Sprintf("matmul: %d bytes of %v for a row of %d weights", len(src), f, m.Cols))
	}
	return src
}

// SetRaw sets a row without loss from its encoding in GGUF, of the format of
// the matrix: little-endian floats, or blocks of Q8_0 or Q4_0.
func (m *Matrix) SetRaw(row int, src []byte) {
	g, step, lane := m.place(row)
	if src = m.raw(m.Format, src); len(src) == 0 {
		return
	}
	switch m.Format {
	case F32:
		for g = g[4*lane:]; len(src) >= 4; src, g = src[4:], g[min(step, len(g)):] {
			binary.LittleEndian.PutUint32(g, binary.LittleEndian.Uint32(src))
		}
	case F16:
		for g = g[2*lane:]; len(src) >= 2; src, g = src[2:], g[min(step, len(g)):] {
			binary.LittleEndian.PutUint16(g, binary.LittleEndian.Uint16(src))
		}
	case BF16:
		for g = g[4*lane:]; len(src) >= 4; src, g = src[4:], g[min(step, len(g)):] {
			binary.LittleEndian.PutUint32(g, binary.LittleEndian.Uint32(src))
		}
		if len(src) > 0 {
			binary.LittleEndian.PutUint16(g, binary.LittleEndian.Uint16(src))
		}
	case Q8:
		for b := range m.Cols / block {
			setQ8(g[b/half*step:], b%half, lane, (*[rawQ8]byte)(src[rawQ8*b:]))
		}
	case Q4:
		for b := range m.Cols / block {
			setQ4(g[b/half*step:], b%half, lane, (*[rawQ4]byte)(src[rawQ4*b:]))
		}
	}
	runtime.KeepAlive(m)
}

// SetQ4AsQ8 sets a row of a matrix of Q8 without loss from blocks of Q4_0.
func (m *Matrix) SetQ4AsQ8(row int, src []byte) {
	if m.Format != Q8 {
		panic("matmul: SetQ4AsQ8 of a matrix of " + m.Format.String())
	}
	g, step, lane := m.place(row)
	src = m.raw(Q4, src)
	var q8 [rawQ8]byte
	for b := 0; b < m.Cols/block; b++ {
		q4 := (*[rawQ4]byte)(src[rawQ4*b:])
		q8[0], q8[1] = q4[0], q4[1]
		for i, v := range q4[2:] {
			q8[2+i], q8[2+block/2+i] = v&15-8, v>>4-8
		}
		setQ8(g[b/half*step:], b%half, lane, &q8)
	}
	runtime.KeepAlive(m)
}

// setQ8 packs block b of a unit for one row. A byte of two's complement becomes
// the weight + 128 when its sign is turned round.
func setQ8(u []byte, b, lane int, src *[rawQ8]byte) {
	s := u[b*2*lanes+2*lane:]
	s[0], s[1] = src[0], src[1]
	q := (*[block * lanes]byte)(u[scales+b*block*lanes:])
	for i := range block / 4 {
		binary.LittleEndian.PutUint32(q[i*4*lanes+4*lane:], binary.LittleEndian.Uint32(src[2+4*i:])^0x80808080)
	}
}

// setQ4 packs block b of a unit; Q4_0 already has k and k+16 in a byte.
func setQ4(u []byte, b, lane int, src *[rawQ4]byte) {
	s := u[b*2*lanes+2*lane:]
	s[0], s[1] = src[0], src[1]
	q := (*[block * lanes / 2]byte)(u[scales+b*block*lanes/2:])
	for i := range block / 8 {
		binary.LittleEndian.PutUint32(q[i*4*lanes+4*lane:], binary.LittleEndian.Uint32(src[2+4*i:]))
	}
}

// SetFloat sets a row from float32s, Cols of them: rounded to nearest, ties to
// even, or quantised by the rules of Q8_0 and Q4_0 (ggml's reference
// quantisation). A last block that is not full is quantised as if zeros followed.
func (m *Matrix) SetFloat(row int, src []float32) {
	g, step, lane := m.place(row)
	src = src[:m.Cols:len(src)]
	switch m.Format {
	case F32:
		for k, v := range src {
			binary.LittleEndian.PutUint32(g[k*step+4*lane:], math.Float32bits(v))
		}
	case F16:
		for k, v := range src {
			binary.LittleEndian.PutUint16(g[k*step+2*lane:], kernels.ToF16(v))
		}
	case BF16:
		for k, v := range src {
			binary.LittleEndian.PutUint16(g[k/2*step+4*lane+k%2*2:], kernels.ToBF16(v))
		}
	case Q8, Q4:
		var x [block]float32
		for b := 0; b*block < len(src); b++ {
			clear(x[copy(x[:], src[b*block:]):])
			if u := g[b/half*step:]; m.Format == Q8 {
				q := quantiseQ8(&x)
				setQ8(u, b%half, lane, &q)
			} else {
				q := quantiseQ4(&x)
				setQ4(u, b%half, lane, &q)
			}
		}
	}
	runtime.KeepAlive(m)
}
