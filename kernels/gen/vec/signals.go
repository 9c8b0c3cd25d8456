package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

// Predicates of VCMPPS.
const (
	less      = 0x11
	greater   = 0x1e
	unordered = 0x03
)

func signals() {
	for _, l := range both {
		l.softmax()
		l.measure()
		l.weigh(false)
		l.weigh(true)
	}
	heavier()
	exceeding()
	above()
	peak()
}

// peak is the largest of n values from x on, a multiple of 16, in the lowest
// lane.
func (l level) peak(x, n reg.GPVirtual) reg.VecVirtual {
	from, left := GP64(), GP64()
	MOVQ(x, from)
	MOVQ(n, left)
	m := l.many(l.vecs())
	for i, v := range m {
		VMOVUPS(asm.At(x, i*l.size()), v)
	}
	Label("peak")
	for i, v := range m {
		VMAXPS(asm.At(from, i*l.size()), v, v)
	}
	asm.Add(4*lanes, from)
	SUBQ(U8(lanes), left)
	JG(LabelRef("peak"))
	return l.fold(m, VMAXPS)
}

// spread copies the lowest lane to all.
func (l level) spread(m reg.VecVirtual) reg.VecVirtual {
	v := l.vec()
	VBROADCASTSS(m.AsX(), v)
	return v
}

func (l level) softmax() {
	name := "softmax" + l.name
	asm.Func(name, "func(s *float32, n int) (peak, sum float32)", name+" replaces s by exp(s-peak) for n a multiple of 16.")
	s, n := asm.Arg("s"), asm.Arg("n")
	m := l.peak(s, n)
	result(0, m)
	m = l.spread(m)
	low, sum := l.held(-88), l.zeros(l.vecs())
	each(lanes, n, []reg.GPVirtual{s}, func() {
		for i := range sum {
			x := l.vec()
			VMOVUPS(asm.At(s, i*l.size()), x)
			VSUBPS(m, x, x)
			l.exp(x, low, false)
			VMOVUPS(x, asm.At(s, i*l.size()))
			VADDPS(x, sum[i], sum[i])
		}
	})
	result(1, l.fold(sum, VADDPS))
	end()
}

func (l level) measure() {
	name := "measure" + l.name
	asm.Func(name, "func(x *float32, n int) (peak, rest, weighted float32, below int32)",
		name+" measures a segment for n a multiple of 16; below is how many logits are not the largest.")
	x, n := asm.Arg("x"), asm.Arg("n")
	m := l.measured(l.peak(x, n))
	each(lanes, n, []reg.GPVirtual{x}, func() {
		for i := range l.vecs() {
			e := l.vec()
			VMOVUPS(asm.At(x, i*l.size()), e)
			m.add(e, i)
		}
	})
	m.store()
	if !l.wide {
		return
	}
	// A whole segment stays in registers between its two passes.
	asm.Func("measureWholeAVX512", "func(x *float32) (peak, rest, weighted float32, below int32)",
		"measureWholeAVX512 is measureAVX512 for n = 256.")
	x = asm.Arg("x")
	v, t := l.many(16), l.many(8)
	for i := range v {
		VMOVUPS(asm.At(x, i*l.size()), v[i])
	}
	for i := range t {
		VMAXPS(v[i], v[i+8], t[i])
	}
	for half := 4; half > 0; half /= 2 {
		for i := range half {
			VMAXPS(t[i], t[i+half], t[i])
		}
	}
	m = l.measured(l.fold(t[:1], VMAXPS))
	for _, e := range v {
		m.add(e, 0)
	}
	m.store()
}

// sums is what is measured of a segment.
type sums struct {
	level
	peak, low, below reg.VecVirtual
	rest, weighted   []reg.VecVirtual
}

// measured begins to measure logits of which the largest is in the lowest lane
// of peak.
func (l level) measured(peak reg.VecVirtual) *sums {
	result(0, peak)
	VMAXSS(same(-math.MaxFloat32), peak.AsX(), peak.AsX())
	return &sums{l, l.spread(peak), l.held(-88), l.zero(), l.zeros(l.vecs()), l.zeros(l.vecs())}
}

// add measures a vector of logits, which is lost.
func (s *sums) add(e reg.VecVirtual, i int) {
	VSUBPS(s.peak, e, e)
	d := s.exp(e, s.low, true)
	VFMADD231PS(e, d, s.weighted[i])
	if s.wide {
		under := K()
		VCMPPS_BCST(U8(less), bits(0), d, under)
		VPSUBD_BCST(bits(1<<32-1), s.below, under, s.below)
		VADDPS(e, s.rest[i], under, s.rest[i])
		return
	}
	VCMPPS(U8(less), bits(0), d, d)
	VPSUBD(d, s.below, s.below)
	VANDPS(d, e, e)
	VADDPS(e, s.rest[i], s.rest[i])
}

func (s *sums) store() {
	result(1, s.fold(s.rest, VADDPS))
	result(2, s.fold(s.weighted, VADDPS))
	below := s.below
	if s.wide {
		below = s.fold([]reg.VecVirtual{below}, VPADDD)
	} else {
		fold8(below, VPADDD)
	}
	count := GP32()
	VMOVD(below.AsX(), count)
	Store(count, ReturnIndex(3))
	end()
}

func (l level) weigh(store bool) {
	name, doc, out := "weigh"+l.name, "", "sums"
	if store {
		name, doc, out = "weighStore"+l.name, " and each to w", "sums, w"
	}
	asm.Func(name, fmt.Sprintf("func(%s, x *float32, n int, peak, scale float32)", out),
		fmt.Sprintf("%s writes the sums of exp((x-peak)*scale) over n segments of 256%s.", name, doc))
	sums, x, n := asm.Arg("sums"), asm.Arg("x"), asm.Arg("n")
	pointers := []reg.GPVirtual{x}
	if store {
		pointers = append(pointers, asm.Arg("w"))
	}
	m, scale := l.broadcast("peak"), l.broadcast("scale")
	low := l.held(-88)
	Label("segment")
	sum, left := l.zeros(l.vecs()), GP64()
	MOVQ(I32(256), left)
	each(lanes, left, pointers, func() {
		for i := range sum {
			e := l.vec()
			VMOVUPS(asm.At(x, i*l.size()), e)
			VSUBPS(m, e, e)
			VMULPS(scale, e, e)
			l.exp(e, low, false)
			if store {
				VMOVUPS(e, asm.At(pointers[1], i*l.size()))
			}
			VADDPS(e, sum[i], sum[i])
		}
	})
	VMOVSS(l.fold(sum, VADDPS).AsX(), asm.At(sums, 0))
	asm.Add(4, sums)
	DECQ(n)
	JNZ(LabelRef("segment"))
	end()
}

func heavier() {
	asm.Func("heavierAVX2", "func(sums, w *float32, n int, floor float32)",
		"heavierAVX2 writes the sums of those w over floor of n segments of 256.")
	sums, w, n := asm.Arg("sums"), asm.Arg("w"), asm.Arg("n")
	floor := avx2.broadcast("floor")
	Label("segment")
	sum, left := avx2.zeros(2), GP64()
	MOVQ(I32(256), left)
	each(lanes, left, []reg.GPVirtual{w}, func() {
		for i, s := range sum {
			x, over := YMM(), YMM()
			VMOVUPS(asm.At(w, 32*i), x)
			VCMPPS(U8(greater), floor, x, over)
			VANDPS(over, x, x)
			VADDPS(x, s, s)
		}
	})
	VMOVSS(avx2.fold(sum, VADDPS).AsX(), asm.At(sums, 0))
	asm.Add(4, sums)
	DECQ(n)
	JNZ(LabelRef("segment"))
	end()
}

func exceeding() {
	asm.Func("exceedingAVX2", "func(over *uint32, x *float32, n int, floor float32)",
		"exceedingAVX2 sets the bits of those x over floor in n words and clears those of others.")
	over, x, n := asm.Arg("over"), asm.Arg("x"), asm.Arg("n")
	floor := avx2.broadcast("floor")
	Label("word")
	word := GP32()
	for v := 3; v >= 0; v-- {
		y, part := YMM(), GP32()
		VMOVUPS(asm.At(x, 32*v), y)
		VCMPPS(U8(greater), floor, y, y)
		if v == 3 {
			VMOVMSKPS(y, word)
			continue
		}
		VMOVMSKPS(y, part)
		SHLL(U8(8), word)
		ORL(part, word)
	}
	MOVL(word, asm.At(over, 0))
	asm.Add(128, x)
	asm.Add(4, over)
	DECQ(n)
	JNZ(LabelRef("word"))
	end()
}

func above() {
	asm.Func("aboveAVX2", "func(x *float32, n int, floor float32) int",
		"aboveAVX2 is the place of the first of x that exceeds floor, n if none, for n a multiple of 32.")
	x, n := asm.Arg("x"), asm.Arg("n")
	floor := avx2.broadcast("floor")
	i := GP64()
	XORQ(i, i)
	Label("block")
	var over [4]reg.VecVirtual
	for v := range over {
		over[v] = YMM()
		VMOVUPS(Mem{Base: x, Index: i, Scale: 4, Disp: 32 * v}, over[v])
		VCMPPS(U8(greater), floor, over[v], over[v])
	}
	a, b := YMM(), YMM()
	VORPS(over[0], over[1], a)
	VORPS(over[2], over[3], b)
	VORPS(a, b, a)
	VPTEST(a, a)
	JNZ(LabelRef("found"))
	asm.Add(32, i)
	CMPQ(i, n)
	JL(LabelRef("block"))
	Store(i, ReturnIndex(0))
	end()
	Label("found")
	mask, part := GP32(), GP32()
	VMOVMSKPS(over[3], mask)
	for v := 2; v >= 0; v-- {
		SHLL(U8(8), mask)
		VMOVMSKPS(over[v], part)
		ORL(part, mask)
	}
	BSFL(mask, mask)
	ADDQ(mask.As64(), i)
	Store(i, ReturnIndex(0))
	end()
}

func peak() {
	asm.Func("peakAVX2", "func(x *float32, n int) (peak float32, nan int32)",
		"peakAVX2 is the largest of x, and whether one is NaN, for n a multiple of 32.")
	x, n := asm.Arg("x"), asm.Arg("n")
	var m [4]reg.VecVirtual
	for v := range m {
		m[v] = YMM()
		VMOVUPS(asm.At(x, 32*v), m[v])
	}
	nan := avx2.zero()
	Label("block")
	var y [4]reg.VecVirtual
	for v := range y {
		y[v] = YMM()
		VMOVUPS(asm.At(x, 32*v), y[v])
		VMAXPS(y[v], m[v], m[v])
	}
	for v := 0; v < len(y); v += 2 { // one of two is NaN
		VCMPPS(U8(unordered), y[v], y[v+1], y[v])
		VORPS(y[v], nan, nan)
	}
	asm.Add(128, x)
	SUBQ(U8(32), n)
	JG(LabelRef("block"))
	VMAXPS(m[1], m[0], m[0])
	VMAXPS(m[3], m[2], m[2])
	VMAXPS(m[2], m[0], m[0])
	fold8(m[0], VMAXPS)
	result(0, m[0])
	bad := GP32()
	VMOVMSKPS(nan, bad)
	Store(bad, ReturnIndex(1))
	end()
}
