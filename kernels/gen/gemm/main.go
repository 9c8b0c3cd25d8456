// Command gemm generates the kernels of kernels/gemm: a tile of a product of two
// matrices in memory as they are, for AVX2 on registers of 256 bits and for
// AVX-512 on registers of 512.
//
// A kernel is of R rows and V vectors of columns. R and V decide which outputs are
// in flight together, never how one is computed.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

const signature = "func(a, b, c *float32, ars, acs, ldb, ldc, k, add int)"

// tile generates the kernel of a level: rows that lie ars bytes apart in a and
// ldc in c, k terms that lie acs bytes apart in a and ldb in b. It goes on from
// what is in c if add is set, from zeros otherwise.
func tile(name string, wide bool, rows, vecs int) {
	size := 32
	if wide {
		size = 64
	}
	asm.Func(fmt.Sprintf("%sR%dV%d", name, rows, vecs), signature,
		fmt.Sprintf("%d rows of %d columns.", rows, vecs*size/4))
	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		acc[r] = asm.Vecs(wide, vecs)
	}
	c, ldc := asm.Arg("c"), asm.Arg("ldc")
	outputs := rowsAt(c, ldc, rows)
	add := asm.Arg("add")
	TESTQ(add, add)
	JZ(LabelRef("zero"))
	for r, at := range outputs {
		for v := range vecs {
			at.Disp = v * size
			VMOVUPS(at, acc[r][v])
		}
	}
	JMP(LabelRef("start"))
	Label("zero")
	for r := range acc {
		for _, x := range acc[r] {
			if wide {
				VPXORD(x, x, x)
			} else {
				VXORPS(x, x, x)
			}
		}
	}
	Label("start")
	a, ars, acs := asm.Arg("a"), asm.Arg("ars"), asm.Arg("acs")
	values := rowsAt(a, ars, rows)
	b, ldb, k := asm.Arg("b"), asm.Arg("ldb"), asm.Arg("k")
	Label("term")
	w := asm.Vecs(wide, vecs)
	for v := range w {
		VMOVUPS(asm.At(b, v*size), w[v])
	}
	for r, at := range values {
		x := asm.Vec(wide)
		VBROADCASTSS(at, x)
		for v := range w {
			VFMADD231PS(x, w[v], acc[r][v])
		}
	}
	bases := []reg.Register{}
	for _, at := range values {
		known := false
		for _, x := range bases {
			known = known || x == at.Base
		}
		if !known {
			bases = append(bases, at.Base)
			ADDQ(acs, at.Base)
		}
	}
	ADDQ(ldb, b)
	DECQ(k)
	JNZ(LabelRef("term"))
	for r, at := range outputs {
		for v := range vecs {
			at.Disp = v * size
			VMOVUPS(acc[r][v], at)
		}
	}
	VZEROUPPER()
	RET()
}

// rowsAt is the memory of the first value of each row: two bases and multiples of
// the distance, so that few registers serve eight rows.
func rowsAt(base, ld reg.GPVirtual, rows int) []Mem {
	var ld3, fifth reg.GPVirtual
	if rows > 3 {
		ld3 = GP64()
		LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	}
	if rows > 4 {
		fifth = GP64()
		LEAQ(Mem{Base: base, Index: ld, Scale: 4}, fifth)
	}
	out := make([]Mem, rows)
	for r := range out {
		m := Mem{Base: base}
		if r >= 4 {
			m.Base = fifth
		}
		switch r % 4 {
		case 1:
			m.Index, m.Scale = ld, 1
		case 2:
			m.Index, m.Scale = ld, 2
		case 3:
			m.Index, m.Scale = ld3, 1
		}
		out[r] = m
	}
	return out
}

// transpose generates the transpose of squares of 8 x 8 side by side: n of them in
// eight rows of x, each to eight rows of y below one another.
func transpose() {
	asm.Func("avx2Transpose", "func(y, x *float32, ldy, ldx, n int)", "Transposes n squares of 8 x 8 values.")
	y, ldy := asm.Arg("y"), asm.Arg("ldy")
	x, ldx, n := asm.Arg("x"), asm.Arg("ldx"), asm.Arg("n")
	from := rowsAt(x, ldx, 8)
	to := rowsAt(y, ldy, 8)
	fifth := to[4].Base
	Label("square")
	r := asm.Vecs(false, 8)
	for i, at := range from {
		VMOVUPS(at, r[i])
	}
	pairs := asm.Vecs(false, 8) // of rows 2i and 2i+1
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(r[i+1], r[i], pairs[i])
		VUNPCKHPS(r[i+1], r[i], pairs[i+1])
	}
	fours := asm.Vecs(false, 8) // of rows 4i to 4i+3
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			VSHUFPS(U8(0x44), pairs[i+2+j], pairs[i+j], fours[i+2*j])
			VSHUFPS(U8(0xee), pairs[i+2+j], pairs[i+j], fours[i+2*j+1])
		}
	}
	for i := range 4 {
		t := YMM()
		VPERM2F128(U8(0x20), fours[i+4], fours[i], t)
		VMOVUPS(t, to[i])
		t = YMM()
		VPERM2F128(U8(0x31), fours[i+4], fours[i], t)
		VMOVUPS(t, to[i+4])
	}
	asm.Add(32, from[0].Base)
	asm.Add(32, from[4].Base)
	LEAQ(Mem{Base: y, Index: ldy, Scale: 8}, y)
	LEAQ(Mem{Base: fifth, Index: ldy, Scale: 8}, fifth)
	DECQ(n)
	JNZ(LabelRef("square"))
	VZEROUPPER()
	RET()
}

func main() {
	ConstraintExpr("!purego")
	for _, rows := range []int{1, 2, 4, 8} {
		for vecs := 1; vecs <= 3; vecs++ {
			tile("avx512", true, rows, vecs)
			if rows*vecs <= 12 {
				tile("avx2", false, rows, vecs)
			}
		}
	}
	transpose()
	Generate()
}
