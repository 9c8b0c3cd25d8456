package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

// putFloats copies n values, a multiple of 4, to places that lie step bytes apart.
func putFloats() {
	asm.Func("avx2PutFloats", "func(to, x *byte, n, step int)", "Copies n values, a multiple of 4, to places step bytes apart.")
	to, x, n, step := asm.Arg("to"), asm.Arg("x"), asm.Arg("n"), asm.Arg("step")
	Label("four")
	for i := range 4 {
		v := GP32()
		MOVL(asm.At(x, 4*i), v)
		MOVL(v, asm.At(to, 0))
		ADDQ(step, to)
	}
	asm.Add(16, x)
	SUBQ(U8(4), n)
	JNZ(LabelRef("four"))
	RET()
}

// The edges of what a block's largest magnitude may be, as bits: 1e-30, infinity.
const (
	tiny     = 0x0da24260
	infinity = 0x7f800000
	notANum  = 0x7fc00000
)

// putBlocks quantises blocks of 32 values: to 16 bits for Q8, to 8 for Q4.
func putBlocks(format string) {
	asm.Func("avx2Put"+format, "func(head, data, x *byte, blocks, step, sums, quad int)",
		"Quantises blocks of 32; scales and data lie step bytes apart, fours of values quad.")
	head, data, x, blocks := asm.Arg("head"), asm.Arg("data"), asm.Arg("x"), asm.Arg("blocks")
	step, sums, quad := asm.Arg("step"), asm.Arg("sums"), asm.Arg("quad")
	top, weight := float32(32767), int32(-128)
	if format == "Q4" {
		top, weight = 127, -8
	}
	limit, gp := XMM(), GP32()
	MOVL(U32(math.Float32bits(top)), gp)
	MOVD(gp, limit)
	quad3 := GP64()
	LEAQ(Mem{Base: quad, Index: quad, Scale: 2}, quad3)

	Label("block")
	v := []reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for i := range v {
		VMOVUPS(asm.At(x, 32*i), v[i])
	}
	most, scale, inverse := magnitude(v), XMM(), YMM()
	CMPL(most, U32(tiny))
	JCS(LabelRef("zeros"))
	CMPL(most, U32(infinity))
	JCC(LabelRef("nan"))
	m := XMM()
	MOVD(most, m)
	VDIVSS(limit, m, scale)
	VDIVSS(m, limit, inverse.AsX())
	VBROADCASTSS(inverse.AsX(), inverse)
	for i := range v {
		VMULPS(inverse, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	Label("store")
	VMOVSS(scale, asm.At(head, 0))
	sum := sumOf(v)
	IMUL3L(I32(weight), sum, sum)
	MOVL(sum, Mem{Base: head, Index: sums, Scale: 1})
	places := places(data, quad, quad3)
	if format == "Q8" {
		storeWords(v, places)
	} else {
		storeBytes(v, places)
	}
	asm.Add(128, x)
	ADDQ(step, head)
	ADDQ(step, data)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()

	Label("zeros")
	VXORPS(scale, scale, scale)
	JMP(LabelRef("clear"))
	Label("nan")
	nan := GP32()
	MOVL(U32(notANum), nan)
	MOVD(nan, scale)
	Label("clear")
	for i := range v {
		VXORPS(v[i], v[i], v[i])
	}
	JMP(LabelRef("store"))
}

// magnitude is the largest magnitude, as bits.
func magnitude(v []reg.VecVirtual) reg.GPVirtual {
	mask := asm.Word(0x7fffffff)
	a := []reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for i := range a {
		VPAND(v[i], mask, a[i])
	}
	VPMAXUD(a[0], a[1], a[0])
	VPMAXUD(a[2], a[3], a[2])
	VPMAXUD(a[0], a[2], a[0])
	return across(a[0], func(x, y, to reg.Register) { VPMAXUD(x, y, to) })
}

// sumOf is the sum of integers.
func sumOf(v []reg.VecVirtual) reg.GPVirtual {
	a, b := YMM(), YMM()
	VPADDD(v[0], v[1], a)
	VPADDD(v[2], v[3], b)
	VPADDD(a, b, a)
	return across(a, func(x, y, to reg.Register) { VPADDD(x, y, to) })
}

// across folds the eight words of a register into one.
func across(a reg.VecVirtual, fold func(x, y, to reg.Register)) reg.GPVirtual {
	x, y := a.AsX(), XMM()
	VEXTRACTI128(U8(1), a, y)
	fold(x, y, x)
	VPSHUFD(U8(0b01_00_11_10), x, y)
	fold(x, y, x)
	VPSHUFD(U8(0b10_11_00_01), x, y)
	fold(x, y, x)
	g := GP32()
	MOVD(x, g)
	return g
}

// places are where the eight fours of a block go.
func places(data, quad, quad3 reg.GPVirtual) []Mem {
	upper := GP64()
	LEAQ(Mem{Base: data, Index: quad, Scale: 4}, upper)
	var p []Mem
	for _, base := range []reg.GPVirtual{data, upper} {
		p = append(p, asm.At(base, 0), Mem{Base: base, Index: quad, Scale: 1},
			Mem{Base: base, Index: quad, Scale: 2}, Mem{Base: base, Index: quad3, Scale: 1})
	}
	return p
}

// storeWords stores fours of int16 in the order k, k+2, k+1, k+3.
func storeWords(v []reg.VecVirtual, to []Mem) {
	for i := range 2 {
		p, q := v[2*i], XMM()
		VPACKSSDW(v[2*i+1], p, p) // fours 0, 2 and 1, 3
		VPSHUFLW(U8(0b11_01_10_00), p, p)
		VPSHUFHW(U8(0b11_01_10_00), p, p)
		VEXTRACTI128(U8(1), p, q)
		VMOVLPS(p.AsX(), to[4*i])
		VMOVHPS(p.AsX(), to[4*i+2])
		VMOVLPS(q, to[4*i+1])
		VMOVHPS(q, to[4*i+3])
	}
}

// storeBytes stores fours of int8.
func storeBytes(v []reg.VecVirtual, to []Mem) {
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	p, q := v[0], XMM()
	VPACKSSWB(v[2], p, p) // fours 0, 2, 4, 6 and 1, 3, 5, 7
	VEXTRACTI128(U8(1), p, q)
	for i := range 4 {
		VPEXTRD(U8(uint8(i)), p.AsX(), to[2*i])
		VPEXTRD(U8(uint8(i)), q, to[2*i+1])
	}
}
