package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

// each is a loop over n, a multiple of step, that moves pointers on by step
// floats.
func each(step int, n reg.GPVirtual, pointers []reg.GPVirtual, body func()) {
	Label("each")
	body()
	for _, p := range pointers {
		asm.Add(4*step, p)
	}
	SUBQ(U8(step), n)
	JG(LabelRef("each"))
}

func end() {
	VZEROUPPER()
	RET()
}

func elementwise() {
	asm.Func("addAVX2", "func(x, y *float32, n int)", "addAVX2 does x += y for n a multiple of 8.")
	x, y, n := asm.Arg("x"), asm.Arg("y"), asm.Arg("n")
	each(8, n, []reg.GPVirtual{x, y}, func() {
		t := YMM()
		VMOVUPS(asm.At(x, 0), t)
		VADDPS(asm.At(y, 0), t, t)
		VMOVUPS(t, asm.At(x, 0))
	})
	end()

	asm.Func("scaledAVX2", "func(y, x *float32, n int, s float32)", "scaledAVX2 does y = x*s for n a multiple of 8.")
	y, x, n = asm.Arg("y"), asm.Arg("x"), asm.Arg("n")
	s := avx2.broadcast("s")
	each(8, n, []reg.GPVirtual{y, x}, func() {
		t := YMM()
		VMULPS(asm.At(x, 0), s, t)
		VMOVUPS(t, asm.At(y, 0))
	})
	end()

	asm.Func("scaledByAVX2", "func(y, x, w *float32, n int, s float32)", "scaledByAVX2 does y = x*s*w for n a multiple of 8.")
	y, x = asm.Arg("y"), asm.Arg("x")
	w, n := asm.Arg("w"), asm.Arg("n")
	s = avx2.broadcast("s")
	each(8, n, []reg.GPVirtual{y, x, w}, func() {
		t := YMM()
		VMULPS(asm.At(x, 0), s, t)
		VMULPS(asm.At(w, 0), t, t)
		VMOVUPS(t, asm.At(y, 0))
	})
	end()

	asm.Func("blendAVX2", "func(y, x *float32, n int, a, b float32)", "blendAVX2 does y = x*b + y*a for n a multiple of 8.")
	y, x, n = asm.Arg("y"), asm.Arg("x"), asm.Arg("n")
	a, b := avx2.broadcast("a"), avx2.broadcast("b")
	each(8, n, []reg.GPVirtual{y, x}, func() {
		t := YMM()
		VMULPS(asm.At(y, 0), a, t)
		VFMADD231PS(asm.At(x, 0), b, t)
		VMOVUPS(t, asm.At(y, 0))
	})
	end()

	for _, l := range both {
		l.siluMulGroups()
		l.sigmoid()
	}
	rotate()
	squares()
}

// silu turns a gate g into g / (1 + e^-g), from e^-|g| so that nothing
// overflows.
func (l level) silu(g, low reg.VecVirtual) {
	e := l.vec()
	if l.wide {
		VORPS_BCST(bits(1<<31), g, e)
	} else {
		VORPS(bits(1<<31), g, e)
	}
	l.exp(e, low, false)
	if l.wide {
		k := K()
		VPMOVD2M(g, k)
		VMULPS(e, g, k, g)
	} else {
		n := l.vec()
		VMULPS(e, g, n)
		VBLENDVPS(g, n, g, g)
	}
	l.with(1, VADDPS, VADDPS_BCST, e, e)
	VDIVPS(e, g, g)
}

func (l level) siluMulGroups() {
	name, step := "siluMulGroups"+l.name, l.size()/4
	asm.Func(name, "func(act, gu *float32, n int)", fmt.Sprintf("%s does act = silu(gates)*ups in groups of eight for n a multiple of %d.", name, step))
	y, gu, n := asm.Arg("act"), asm.Arg("gu"), asm.Arg("n")
	low := l.held(-88)
	each(step, n, []reg.GPVirtual{y}, func() {
		g, u := l.vec(), l.vec()
		VMOVUPS(asm.At(gu, 0), g)
		if l.wide { // two groups: their lower halves are gates
			t := l.vec()
			VMOVUPS(asm.At(gu, 64), t)
			VSHUFF64X2(U8(0xee), t, g, u)
			VSHUFF64X2(U8(0x44), t, g, g)
		} else {
			VMOVUPS(asm.At(gu, 32), u)
		}
		l.silu(g, low)
		VMULPS(u, g, g)
		VMOVUPS(g, asm.At(y, 0))
		asm.Add(2*l.size(), gu)
	})
	end()
}

// sigmoid is 1 / (1 + e^-x), from e^-|x| as silu.
func (l level) sigmoid() {
	name, step := "sigmoid"+l.name, l.size()/4
	asm.Func(name, "func(y, x *float32, n int)", fmt.Sprintf("%s does y = 1/(1+exp(-x)) for n a multiple of %d.", name, step))
	y, x, n := asm.Arg("y"), asm.Arg("x"), asm.Arg("n")
	low, one := l.held(-88), l.held(1)
	each(step, n, []reg.GPVirtual{y, x}, func() {
		v, e, num := l.vec(), l.vec(), l.vec()
		VMOVUPS(asm.At(x, 0), v)
		if l.wide {
			VORPS_BCST(bits(1<<31), v, e)
		} else {
			VORPS(bits(1<<31), v, e)
		}
		l.exp(e, low, false)
		if l.wide {
			k := K()
			VPMOVD2M(v, k)
			VMOVUPS(one, num)
			VMOVUPS(e, k, num)
		} else {
			VBLENDVPS(v, e, one, num)
		}
		VADDPS(one, e, e)
		VDIVPS(e, num, num)
		VMOVUPS(num, asm.At(y, 0))
	})
	end()
}

func rotate() {
	asm.Func("rotateAVX2", "func(a, b, cos, sin *float32, n int)", "rotateAVX2 turns the halves a and b of a head for n a multiple of 8.")
	a, b := asm.Arg("a"), asm.Arg("b")
	cos, sin := asm.Arg("cos"), asm.Arg("sin")
	n := asm.Arg("n")
	each(8, n, []reg.GPVirtual{a, b, cos, sin}, func() {
		c, s, u, v := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(asm.At(cos, 0), c)
		VMOVUPS(asm.At(sin, 0), s)
		VMULPS(asm.At(a, 0), c, u)
		VMULPS(asm.At(b, 0), s, v)
		VSUBPS(v, u, u)
		VMULPS(asm.At(b, 0), c, c)
		VMULPS(asm.At(a, 0), s, s)
		VADDPS(s, c, c)
		VMOVUPS(u, asm.At(a, 0))
		VMOVUPS(c, asm.At(b, 0))
	})
	end()
}

func squares() {
	mask := GLOBL("first", RODATA|NOPTR)
	for i := range 64 {
		on := uint32(0)
		if i < 32 {
			on = 1<<32 - 1
		}
		DATA(4*i, U32(on))
	}
	asm.Func("squaresAVX2", "func(x *float32, n int) float32", "squaresAVX2 is the sum of x*x of any n, of element i in lane i%32.")
	x, n := asm.Arg("x"), asm.Arg("n")
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = avx2.zero()
	}
	SUBQ(U8(32), n)
	JL(LabelRef("rest"))
	Label("many")
	for i, a := range acc {
		t := YMM()
		VMOVUPS(asm.At(x, 32*i), t)
		VFMADD231PS(t, t, a)
	}
	asm.Add(128, x)
	SUBQ(U8(32), n)
	JGE(LabelRef("many"))
	Label("rest")
	asm.Add(32, n)
	m := GP64()
	LEAQ(mask.Offset(128), m)
	SHLQ(U8(2), n)
	SUBQ(n, m)
	for i, a := range acc {
		on, t := YMM(), YMM()
		VMOVUPS(asm.At(m, 32*i), on)
		VMASKMOVPS(asm.At(x, 32*i), on, t)
		VFMADD231PS(t, t, a)
	}
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	fold8(acc[0], VADDPS)
	result(0, acc[0])
	end()
}
