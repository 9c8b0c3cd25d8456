// Package asm is what the generators of assembly share: a function header that
// every kernel has, memory operands, constants, and instructions that avo has no
// constructor for.
//
// The invariant that matters: output depends on nothing but the generator's
// source, so that generating again gives the same bytes.
//
// Read next: matmul/main.go for its largest user.
package asm

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Func begins a function that calls nothing and keeps none of its pointers.
func Func(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
}

// Arg loads a parameter into a register of its own.
func Arg(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// At is the memory at a displacement from a register.
func At(base reg.Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

// Add adds a constant to a register.
func Add(n int, r reg.Register) {
	if n == 0 {
		return
	}
	ADDQ(I32(int32(n)), r)
}

// Vec is a vector register of 512 bits, or of 256.
func Vec(wide bool) reg.VecVirtual {
	if wide {
		return ZMM()
	}
	return YMM()
}

// Vecs is n of them.
func Vecs(wide bool, n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = Vec(wide)
	}
	return v
}

// Word fills a vector register of 256 bits with copies of 32 bits.
func Word(bits uint32) reg.VecVirtual {
	v, g := YMM(), GP32()
	MOVL(U32(bits), g)
	MOVD(g, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// Dot is VPDPWSSD or VPDPBUSD (VNNI): acc += sums of adjacent products of a and
// b. With bcst, b is 32 bits of memory that every lane takes. avo knows neither
// instruction, the assembler of Go both.
func Dot(opcode string, bcst bool, b Op, a, acc reg.Register) {
	i := &ir.Instruction{
		Opcode:   opcode,
		Operands: []Op{b, a, acc},
		Inputs:   []Op{b, a, acc},
		Outputs:  []Op{acc},
		ISA:      []string{"AVX512VNNI"},
	}
	if bcst {
		i.Suffixes = []string{"BCST"}
	}
	Instruction(i)
}
