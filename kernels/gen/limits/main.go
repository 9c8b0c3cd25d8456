// Command limits writes the assembly of kernels/limits: loops that do nothing but
// one kind of multiply-add on registers, and loops that only read memory.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

func main() {
	ConstraintExpr("!purego")
	for _, wide := range []bool{false, true} {
		for _, k := range []struct {
			name, doc string
			a, b      uint32 // what is multiplied
			step      func(acc, a, b reg.VecVirtual)
		}{
			{"FMA", "multiply-adds of float32", 0x3f800000, 0x2f800000, func(acc, a, b reg.VecVirtual) { VFMADD231PS(a, b, acc) }},
			{"Words", "multiply-adds of int16, in two instructions", 0x00030005, 0x00010001, func(acc, a, b reg.VecVirtual) {
				t := like(acc)
				VPMADDWD(a, b, t)
				VPADDD(t, acc, acc)
			}},
			{"DotWords", "multiply-adds of int16, in one instruction", 0x00030005, 0x00010001, func(acc, a, b reg.VecVirtual) {
				asm.Dot("VPDPWSSD", false, a, b, acc)
			}},
			{"Bytes", "multiply-adds of int8 into sums of int16, in two instructions", 0x01020304, 0x01010101, func(acc, a, b reg.VecVirtual) {
				t := like(acc)
				VPMADDUBSW(a, b, t)
				VPADDW(t, acc, acc)
			}},
			{"DotBytes", "multiply-adds of int8, in one instruction", 0x01020304, 0x01010101, func(acc, a, b reg.VecVirtual) {
				asm.Dot("VPDPBUSD", false, a, b, acc)
			}},
		} {
			peak(fmt.Sprintf("peak%s%d", k.name, bits(wide)), k.doc, wide, k.a, k.b, k.step)
		}
		for _, streams := range []int{1, 2, 4} {
			read(wide, streams)
		}
	}
	Generate()
}

func bits(wide bool) int {
	if wide {
		return 512
	}
	return 256
}

// like is a new register of the same size.
func like(v reg.VecVirtual) reg.VecVirtual { return asm.Vec(v.Size() == 64) }

// fill gives a register full of copies of 32 bits.
func fill(wide bool, bits uint32) reg.VecVirtual {
	if !wide {
		return asm.Word(bits)
	}
	v, g := ZMM(), GP32()
	MOVL(U32(bits), g)
	VPBROADCASTD(g, v)
	return v
}

// chains is the number of independent sums of a peak: enough to hide the latency
// of two multiply-adds a cycle.
const chains = 12

// peak is n times chains steps.
func peak(name, doc string, wide bool, a, b uint32, step func(acc, a, b reg.VecVirtual)) {
	asm.Func(name, "func(n int)", fmt.Sprintf("%s does n x %d steps of %d bits: %s.", name, chains, bits(wide), doc))
	n := asm.Arg("n")
	x, y := fill(wide, a), fill(wide, b)
	acc := make([]reg.VecVirtual, chains)
	for i := range acc {
		acc[i] = fill(wide, 0)
	}
	Label("again")
	for _, s := range acc {
		step(s, x, y)
	}
	DECQ(n)
	JNZ(LabelRef("again"))
	VZEROUPPER()
	RET()
}

// piece is what a read takes from every stream before it goes to the next.
const piece = 256

// read is n pieces of some streams that lie stride bytes apart.
func read(wide bool, streams int) {
	name := fmt.Sprintf("read%dx%d", bits(wide), streams)
	asm.Func(name, "func(p *byte, stride, n, ahead int)", fmt.Sprintf(
		"%s reads n x %d bytes of each of %d streams, prefetching ahead bytes before them.", name, piece, streams,
	))
	p := make([]reg.GPVirtual, streams)
	p[0] = asm.Arg("p")
	stride := asm.Arg("stride")
	for i := 1; i < streams; i++ {
		p[i] = GP64()
		LEAQ(Mem{Base: p[i-1], Index: stride, Scale: 1}, p[i])
	}
	n, ahead := asm.Arg("n"), asm.Arg("ahead")
	size := bits(wide) / 8
	sum := make([]reg.VecVirtual, 4)
	for i := range sum {
		sum[i] = fill(wide, 0)
	}
	Label("again")
	for _, p := range p {
		for at := 0; at < piece; at += size {
			if at%64 == 0 {
				PREFETCHT0(Mem{Base: p, Index: ahead, Scale: 1, Disp: at})
			}
			s := sum[at/size%len(sum)]
			if wide {
				VPXORD(asm.At(p, at), s, s)
			} else {
				VPXOR(asm.At(p, at), s, s)
			}
		}
		asm.Add(piece, p)
	}
	DECQ(n)
	JNZ(LabelRef("again"))
	VZEROUPPER()
	RET()
}
