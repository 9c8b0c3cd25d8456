// Command matmul generates the kernels of kernels/matmul: products of groups of
// 16 rows with tiles of columns, for AVX2 on registers of 256 bits and for
// AVX-512 with VNNI on registers of 512, and the packing of activations.
//
// A kernel is of a level, a format, R groups of rows side by side and C columns.
// R and C decide which outputs are in flight together, never how one is computed.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

const (
	lanes     = 16
	unitScale = 64 // bytes of scales of a unit of 64 columns
)

// level is a set of instructions and registers.
type level struct {
	name string
	wide bool // registers of 512 bits: one holds a group of rows, of 256 two do
	regs int  // vector registers
}

var (
	avx2   = level{"avx2", false, 16}
	avx512 = level{"avx512", true, 32}
	vl     = level{"avx512", false, 32} // AVX-512 on registers of 256 bits
)

// ahead is how far ahead weights are prefetched, 0 for not at all. A core with
// AVX2 alone (Zen 3) streams a third faster from memory when it is told. One with
// AVX-512 (Zen 4) streams well by itself and is slowed down, unless columns keep
// it so busy that it does not look far enough ahead; with weights of 32 bits they
// do not.
func (l level) ahead(format string, cols int) int {
	switch {
	case l.regs == 16:
		return 2048
	case cols <= 2 || format == "F32":
		return 0
	}
	return 4096
}

// vecs is the number of registers that a group of rows takes, size their bytes.
func (l level) vecs() int {
	if l.wide {
		return 1
	}
	return 2
}

func (l level) size() int { return 64 / l.vecs() }

func (l level) vec() reg.VecVirtual { return asm.Vec(l.wide) }

func (l level) many(n int) []reg.VecVirtual { return asm.Vecs(l.wide, n) }

func (l level) zero(v reg.VecVirtual) {
	if l.regs > 16 {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// word fills a register with copies of 32 bits.
func (l level) word(bits uint32) reg.VecVirtual {
	v, g := l.vec(), GP32()
	MOVL(U32(bits), g)
	if l.regs > 16 {
		VPBROADCASTD(g, v)
	} else {
		MOVD(g, v.AsX())
		VPBROADCASTD(v.AsX(), v)
	}
	return v
}

func (l level) load(from Mem, v reg.VecVirtual) {
	if l.wide {
		VMOVDQU32(from, v)
	} else {
		VMOVDQU(from, v)
	}
}

func (l level) and(a Op, b, to reg.VecVirtual) {
	if l.regs > 16 {
		VPANDD(a, b, to)
	} else {
		VPAND(a, b, to)
	}
}

// kernel is what every kernel has: registers that walk over weights, columns and
// outputs, and accumulators.
type kernel struct {
	level
	rows, cols int // groups of rows and columns of a tile
	far        int // bytes that weights are prefetched ahead
	w, x, y, n reg.GPVirtual

	x0, y0, n0, step, count, next, ldy reg.GPVirtual

	acc [][]reg.VecVirtual // by vector of rows and column; nil where outputs hold them
}

const signature = "func(w, x, y *byte, rounds, step, count, next, ldy int)"

// begin starts a kernel and its loop over groups of rows. In it, the kernel goes
// so many rounds over units of weights that lie step bytes apart; the next rows'
// weights follow, their outputs are next bytes on.
func begin(l level, format string, rows, cols int, inRegisters bool) *kernel {
	k := &kernel{level: l, rows: rows, cols: cols, far: l.ahead(format, cols)}
	asm.Func(fmt.Sprintf("%s%sR%dC%d", l.name, format, rows, cols), signature,
		fmt.Sprintf("%d x 16 rows of %s with %d columns.", rows, format, cols))
	k.w, k.x0, k.y0, k.n0 = asm.Arg("w"), asm.Arg("x"), asm.Arg("y"), asm.Arg("rounds")
	k.step, k.count, k.next, k.ldy = asm.Arg("step"), asm.Arg("count"), asm.Arg("next"), asm.Arg("ldy")
	k.x, k.y, k.n = GP64(), GP64(), GP64()
	k.acc = make([][]reg.VecVirtual, rows*l.vecs())
	for v := range k.acc {
		if inRegisters {
			k.acc[v] = l.many(cols)
		}
	}
	return k
}

// group starts on the next groups of rows.
func (k *kernel) group() {
	Label("group")
	MOVQ(k.x0, k.x)
	MOVQ(k.n0, k.n)
	if k.acc[0] == nil {
		z := k.vec()
		k.zero(z)
		k.outputs(func(_, _ int, at Mem) { VMOVUPS(z, at) })
	}
	for _, row := range k.acc {
		for _, a := range row {
			k.zero(a)
		}
	}
	Label("round")
}

// end goes on to the next round, to the next groups of rows, or returns.
func (k *kernel) end(bytes int) {
	asm.Add(bytes, k.x)
	DECQ(k.n)
	JNZ(LabelRef("round"))
	if k.acc[0] != nil {
		k.outputs(func(v, c int, at Mem) { VMOVUPS(k.acc[v][c], at) })
	}
	ADDQ(k.next, k.y0)
	DECQ(k.count)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// outputs visits the memory of every output of the tile, column by column;
// vectors are counted over all rows.
func (k *kernel) outputs(f func(v, c int, at Mem)) {
	MOVQ(k.y0, k.y)
	for c := range k.cols {
		for v := range k.acc {
			f(v, c, asm.At(k.y, v*k.size()))
		}
		if c < k.cols-1 {
			ADDQ(k.ldy, k.y)
		}
	}
}

// prefetch asks for the lines of weights at from..to, if the kernel does.
func (k *kernel) prefetch(from, to int) {
	if k.far == 0 {
		return
	}
	for at := from; at < to; at += 64 {
		PREFETCHT0(asm.At(k.w, k.far+at))
	}
}

func main() {
	ConstraintExpr("!purego")
	for _, f := range floats {
		for i, rows := range f.rows {
			for _, r := range rows {
				float(f.level, f.format, r, i+1)
			}
		}
	}
	for _, l := range []level{avx2, avx512} {
		for cols := 1; cols <= l.regs/4; cols++ {
			quant(l, "Q8", cols)
			quant(l, "Q4", cols)
		}
	}
	putFloats()
	putBlocks("Q8")
	putBlocks("Q4")
	Generate()
}

// floats are the kernels of formats of floats: groups of rows for 1, 2... columns.
var floats = []struct {
	level
	format string
	rows   [][]int
}{
	{avx2, "F32", [][]int{{1, 2}, {1, 2}, {1, 2}}},
	{avx2, "F16", [][]int{{1, 2}, {1, 2}, {1, 2}}},
	{avx2, "BF16", [][]int{{1, 2}, {1, 2}, {1, 2}}},
	{avx512, "F32", [][]int{{1, 2, 4}, {1, 2, 4}, {1, 2, 4}, {1, 4}, {1, 4}, {1, 4}}},
	{avx512, "BF16", [][]int{{1, 2, 4}, {1, 2, 4}, {1, 2, 4}, {1, 4}, {1, 4}, {1, 4}}},
	{vl, "F16", [][]int{{1, 2, 4}, {1, 2, 4}, {1, 2, 4}}},
	{avx512, "F16", [][]int{{}, {}, {}, {1, 4}, {1, 4}, {1, 4}}},
}
