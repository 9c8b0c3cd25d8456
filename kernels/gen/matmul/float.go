package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

const round = 4 // k of a round of floats

// float is the kernel of a format of floats: one chain of fused multiply-adds
// for each output. Eight chains and more hide the latency of one.
func float(l level, format string, rows, cols int) {
	k := chains{kernel: begin(l, format, rows, cols, true), format: format, bytes: 2 * lanes}
	switch format {
	case "F32":
		k.bytes = 4 * lanes
	case "BF16":
		if rows*cols*l.vecs()+cols+2 <= l.regs {
			k.mask = k.word(0xffff0000)
		}
	}
	k.group()
	unit := 1 // k of a unit of weights
	if format == "BF16" {
		unit = 2
	}
	for at := range round {
		if at*k.bytes%64 == 0 {
			k.prefetch(0, rows*max(64, unit*k.bytes))
		}
		k.add(at)
		if at%unit == unit-1 {
			ADDQ(k.step, k.w)
		}
	}
	k.end(round * 4 * cols)
}

// chains is a kernel of floats.
type chains struct {
	*kernel
	format string
	bytes  int // of the weights of a k and group
	mask   reg.VecVirtual
}

// weight is where vector v of the rows has its weights of a unit.
func (k *chains) weight(v int) Mem {
	if k.format == "F16" {
		return asm.At(k.w, v*k.size()/2)
	}
	return asm.At(k.w, v*k.size())
}

// value loads the weights of a k as float32.
func (k *chains) value(v, at int) reg.VecVirtual {
	w := k.vec()
	switch from := k.weight(v); {
	case k.format == "F32":
		VMOVUPS(from, w)
	case k.format == "F16":
		VCVTPH2PS(from, w)
	case at%2 == 1 && k.mask != nil:
		k.and(from, k.mask, w)
	case at%2 == 1: // no register for the mask
		VMOVDQU(from, w)
		VPSRLD(U8(16), w, w)
		VPSLLD(U8(16), w, w)
	case k.regs > 16:
		VPSLLD(U8(16), from, w)
	default:
		VMOVDQU(from, w)
		VPSLLD(U8(16), w, w)
	}
	return w
}

// add takes one k to the accumulators: first whatever has fewer registers.
func (k *chains) add(at int) {
	column := func(c int) Mem { return asm.At(k.x, 4*(at*k.cols+c)) }
	if len(k.acc) == 1 {
		w := k.value(0, at)
		for c := range k.cols {
			VFMADD231PS_BCST(column(c), w, k.acc[0][c])
		}
		return
	}
	if k.cols <= len(k.acc) {
		x := k.many(k.cols)
		for c := range x {
			VBROADCASTSS(column(c), x[c])
		}
		for v := range k.acc {
			if k.format == "F32" && k.cols == 1 {
				VFMADD231PS(k.weight(v), x[0], k.acc[v][0])
				continue
			}
			w := k.value(v, at)
			for c := range x {
				VFMADD231PS(x[c], w, k.acc[v][c])
			}
		}
		return
	}
	w := make([]reg.VecVirtual, len(k.acc))
	for v := range w {
		w[v] = k.value(v, at)
	}
	for c := range k.cols {
		x := k.vec()
		VBROADCASTSS(column(c), x)
		for v := range w {
			VFMADD231PS(x, w[v], k.acc[v][c])
		}
	}
}
