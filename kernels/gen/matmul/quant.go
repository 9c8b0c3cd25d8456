package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

// quant is the kernel of Q8 or Q4: for each block of 32 the integer sum of each
// output, which then goes onto its float32. Sums begin anew with each block, so
// one group of rows gives enough chains, and its one stream of weights is what
// memory delivers fastest.
func quant(l level, format string, cols int) {
	b := blocks{kernel: begin(l, format, 1, cols, l.wide || cols <= 2), q4: format == "Q4"}
	b.data, b.quad = 512, 8
	if b.q4 {
		b.data, b.quad = 256, 4
		b.low = b.word(0x0f0f0f0f)
		if !l.wide {
			b.ones = b.word(0x00010001)
		}
	} else {
		b.low = b.word(0x00ff00ff)
	}
	column := 8 + 8*b.quad // bytes of a block and column
	b.group()
	for h := range 2 {
		b.head = h * cols * column
		b.from = unitScale + h*b.data
		if h == 0 {
			b.prefetch(0, b.from+b.data)
		} else {
			b.prefetch(b.from, b.from+b.data)
		}
		b.sums()
		b.add(h * 2 * lanes)
	}
	ADDQ(b.step, b.w)
	b.end(2 * cols * column)
}

// blocks computes the integer sums of a block of 32.
type blocks struct {
	*kernel
	q4        bool
	data      int            // bytes of weights of a block
	quad      int            // bytes of four values of a column
	low, ones reg.VecVirtual // masks of the weights that come first; words of 1
	head      int            // where the block's scales and corrections of columns are
	from      int            // where the block's weights are
	sum       [][]reg.VecVirtual
}

// correction is added to the sums of a column: weights are stored as unsigned.
func (b *blocks) correction(c int) Mem { return asm.At(b.x, b.head+4*(b.cols+c)) }

// sums leaves the sums of the block in b.sum.
func (b *blocks) sums() {
	b.sum = make([][]reg.VecVirtual, len(b.acc))
	for v := range b.sum {
		b.sum[v] = b.many(b.cols)
	}
	if b.wide {
		for c, s := range b.sum[0] {
			VPBROADCASTD(b.correction(c), s)
		}
	}
	for i := range b.data / (4 * lanes) {
		first, second := b.many(len(b.sum)), b.many(len(b.sum))
		for v := range first {
			b.load(asm.At(b.w, b.from+i*4*lanes+v*b.size()), second[v])
			b.and(b.low, second[v], first[v])
		}
		for p, w := range [][]reg.VecVirtual{first, second} {
			for v := range second {
				switch {
				case p == 0:
				case b.q4:
					VPSRLW(U8(4), second[v], second[v])
					b.and(b.low, second[v], second[v])
				default:
					VPSRLW(U8(8), second[v], second[v])
				}
			}
			for c := range b.cols {
				at := (i*b.cols+c)*8 + 4*p // int16: half of a quad
				if b.q4 {
					at = ((i+4*p)*b.cols + c) * 4
				}
				b.dot(i == 0 && p == 0, asm.At(b.x, b.head+8*b.cols+at), w, c)
			}
		}
	}
	if b.wide {
		return
	}
	for c := range b.cols {
		t := b.vec()
		VPBROADCASTD(b.correction(c), t)
		for v := range b.sum {
			s := b.sum[v][c]
			if b.q4 {
				VPMADDWD(s, b.ones, s)
			}
			VPADDD(t, s, s)
		}
	}
}

// dot adds the products of the weights w with four bytes of column c.
func (b *blocks) dot(first bool, from Mem, w []reg.VecVirtual, c int) {
	if b.wide {
		opcode := "VPDPWSSD"
		if b.q4 {
			opcode = "VPDPBUSD"
		}
		asm.Dot(opcode, true, from, w[0], b.sum[0][c])
		return
	}
	multiply, add := VPMADDWD, VPADDD
	if b.q4 {
		multiply, add = VPMADDUBSW, VPADDW
	}
	x := b.vec()
	VPBROADCASTD(from, x)
	for v := range w {
		s := b.sum[v][c]
		if first {
			multiply(x, w[v], s)
			continue
		}
		m := b.vec()
		multiply(x, w[v], m)
		add(m, s, s)
	}
}

// add takes the sums to the accumulators: in registers, or in the outputs where
// there are not enough.
func (b *blocks) add(scale int) {
	ws := b.many(len(b.acc))
	for v := range ws {
		VCVTPH2PS(asm.At(b.w, scale+v*b.size()/2), ws[v])
	}
	if b.acc[0] == nil {
		MOVQ(b.y0, b.y)
	}
	for c := range b.cols {
		from := asm.At(b.x, b.head+4*c)
		var d reg.VecVirtual
		if !b.wide {
			d = b.vec()
			VBROADCASTSS(from, d)
		}
		for v := range ws {
			s := b.sum[v][c]
			VCVTDQ2PS(s, s)
			if b.wide {
				VMULPS_BCST(from, s, s)
			} else {
				VMULPS(d, s, s)
			}
			if b.acc[v] != nil {
				VFMADD231PS(ws[v], s, b.acc[v][c])
			} else {
				at := asm.At(b.y, v*b.size())
				VFMADD213PS(at, ws[v], s)
				VMOVUPS(s, at)
			}
		}
		if b.acc[0] == nil && c < b.cols-1 {
			ADDQ(b.ldy, b.y)
		}
	}
}
