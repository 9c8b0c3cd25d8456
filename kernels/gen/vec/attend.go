package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

// What kernels/vec lays down.
const (
	pageLen   = 16
	scoreRoom = 256 + 3*pageLen // floats between the scores of two heads
	header    = 24              // bytes of a []byte
)

// load reads eight numbers of a page.
func load(half bool, m Mem, y reg.VecVirtual) {
	if half {
		VCVTPH2PS(m, y)
	} else {
		VMOVUPS(m, y)
	}
}

func format(half bool) (name string, size int) {
	if half {
		return "F16", 2
	}
	return "F32", 4
}

// page stores a key and a value in half precision.
func page() {
	asm.Func("putHalfAVX2", "func(k, v *uint16, key, value *float32, n int)",
		"putHalfAVX2 stores n values, a multiple of 16, of a key and a value; k and v are their places in the page.")
	k, v := asm.Arg("k"), asm.Arg("v")
	key, value := asm.Arg("key"), asm.Arg("value")
	n := asm.Arg("n")
	Label("group")
	for i := range 2 {
		x := YMM()
		VMOVUPS(asm.At(value, 32*i), x)
		VCVTPS2PH(U8(0), x, x.AsX())
		VMOVUPS(x.AsX(), asm.At(v, 16*i))
		y := YMM()
		VMOVUPS(asm.At(key, 32*i), y)
		VCVTPS2PH(U8(0), y, y.AsX())
		for j := range 8 {
			VPEXTRW(U8(j), y.AsX(), asm.At(k, 2*pageLen*(8*i+j)))
		}
	}
	asm.Add(64, key)
	asm.Add(64, value)
	asm.Add(2*pageLen*16, k)
	asm.Add(2*pageLen*16, v)
	SUBQ(U8(16), n)
	JG(LabelRef("group"))
	end()
}

// attend makes the tiles of attention. Eight chains of fused multiply-adds hide
// the latency of one: of one head over four pages, two over two or four over one.
// Vectors of 512 bits are slower where they were measured (Zen 4), for what they
// convert from half precision.
func attend() {
	for _, half := range []bool{true, false} {
		for _, heads := range []int{1, 2, 4} {
			group := 4 / heads
			avx2.scores(half, heads, group)
			avx2.values(half, heads, group)
			if group > 1 {
				avx2.values(half, heads, 1)
			}
		}
	}
}

func (l level) scores(half bool, heads, group int) {
	f, size := format(half)
	name := fmt.Sprintf("scores%sH%d%s", f, heads, l.name)
	asm.Func(name, "func(s *float32, q *[4]*float32, pages *[]byte, at, dim, n int)",
		fmt.Sprintf("%s writes the scores of %d heads over n pages, %d at a time.", name, heads, group))
	table, q := asm.Arg("q"), make([]reg.GPVirtual, heads)
	dim := asm.Arg("dim")
	for h := range q { // to their ends
		q[h] = GP64()
		MOVQ(asm.At(table, 8*h), q[h])
		LEAQ(Mem{Base: q[h], Index: dim, Scale: 4}, q[h])
	}
	s, pages, n := asm.Arg("s"), asm.Arg("pages"), asm.Arg("n")
	k := make([]reg.GPVirtual, group)
	ahead := make([]reg.GPVirtual, group) // the next pages
	if heads == 1 {
		ahead = nil // its loads are many enough
	}
	Label("pages")
	head, at := GP64(), asm.Arg("at")
	MOVQ(pages, head)
	for g := range group + len(ahead) {
		if g > 0 { // beyond the end the last page is taken again
			next := GP64()
			LEAQ(asm.At(head, header), next)
			CMPQ(n, U8(g))
			CMOVQGT(next, head)
		}
		p := GP64()
		MOVQ(asm.At(head, 0), p)
		ADDQ(at, p)
		if g < group {
			k[g] = p
		} else {
			ahead[g-group] = p
		}
	}
	per := l.vecs()
	acc := make([][]reg.VecVirtual, heads)
	for h := range acc {
		acc[h] = l.zeros(per * group)
	}
	i, values := asm.Arg("dim"), GP64()
	MOVQ(i, values)
	SHLQ(U8(4+size/2), values) // times pageLen*size bytes
	step := func(at int) {
		w := l.many(per * group)
		for v := range w {
			load(half, asm.At(k[v/per], at*pageLen*size+v%per*l.size()*size/4), w[v])
		}
		for h := range q {
			x := l.vec()
			VBROADCASTSS(Mem{Base: q[h], Index: i, Scale: 4, Disp: 4 * at}, x)
			for v := range w {
				VFMADD231PS(x, w[v], acc[h][v])
			}
		}
	}
	on := func(n int) {
		for _, p := range slices.Concat(k, ahead) {
			asm.Add(n*pageLen*size, p)
		}
		asm.Add(n, i)
	}
	NEGQ(i)
	TESTQ(U32(1), i)
	JZ(LabelRef("even"))
	step(0)
	on(1)
	JZ(LabelRef("store"))
	Label("even")
	for line := 0; line < 2*pageLen*size; line += 64 { // K of the next pages, V of these
		for _, p := range ahead {
			PREFETCHT1(asm.At(p, line))
		}
		for _, p := range k {
			PREFETCHT1(Mem{Base: p, Index: values, Scale: 1, Disp: line})
		}
	}
	step(0)
	step(1)
	on(2)
	JNZ(LabelRef("even"))
	Label("store")
	for h := range acc {
		for v, a := range acc[h] {
			VMOVUPS(a, asm.At(s, 4*scoreRoom*h+v*l.size()))
		}
	}
	asm.Add(4*pageLen*group, s)
	asm.Add(header*group, pages)
	SUBQ(U8(group), n)
	JG(LabelRef("pages"))
	end()
}

func (l level) values(half bool, heads, group int) {
	f, size := format(half)
	name := fmt.Sprintf("values%sH%dG%d%s", f, heads, group, l.name)
	asm.Func(name, "func(o, w *float32, pages *[]byte, at, first, n, apart, times int, next *[]byte, have, keys int)",
		fmt.Sprintf("%s adds the values of n positions, from position first of the first page on, to %d numbers of %d heads, times over. As it goes it asks for the keys, so many bytes before the values, of the have pages from next on.", name, lanes*group, heads))
	o, at := asm.Arg("o"), asm.Arg("at")
	times := asm.Arg("times")
	Label("group")
	apart := asm.Arg("apart")
	oh := make([]Mem, heads)
	for h, p := 0, o; h < heads; h++ {
		if h > 0 {
			next := GP64()
			LEAQ(Mem{Base: p, Index: apart, Scale: 1}, next)
			p = next
		}
		oh[h] = asm.At(p, 0)
	}
	per := l.vecs()
	acc := make([][]reg.VecVirtual, heads)
	for h := range acc {
		acc[h] = l.many(per * group)
		for v, a := range acc[h] {
			VMOVUPS(oh[h].Offset(v*l.size()), a)
		}
	}
	w, pages := asm.Arg("w"), asm.Arg("pages")
	n, t := asm.Arg("n"), asm.Arg("first")
	next, have := asm.Arg("next"), asm.Arg("have")
	count, v, k := GP64(), GP64(), GP64()
	Label("page")
	MOVQ(asm.At(pages, 0), k)
	DECQ(have)
	JL(LabelRef("last"))
	MOVQ(asm.At(next, 0), k)
	asm.Add(header, next)
	Label("last")
	ADDQ(at, k)
	SUBQ(asm.Arg("keys"), k)
	MOVQ(I32(pageLen), count)
	SUBQ(t, count)
	CMPQ(count, n)
	CMOVQGT(n, count)
	SUBQ(count, n)
	SHLQ(U8(4+size/2), t) // times pageLen*size
	MOVQ(asm.At(pages, 0), v)
	ADDQ(at, v)
	ADDQ(t, v)
	Label("position")
	for line := 0; line < lanes*group*size; line += 64 {
		PREFETCHT1(asm.At(k, line))
	}
	x := l.many(per * group)
	for i := range x {
		load(half, asm.At(v, i/per*pageLen*lanes*size+i%per*l.size()*size/4), x[i])
	}
	for h := range acc {
		b := l.vec()
		VBROADCASTSS(asm.At(w, 4*scoreRoom*h), b)
		for i := range x {
			VFMADD231PS(x[i], b, acc[h][i])
		}
	}
	asm.Add(lanes*size, v)
	asm.Add(lanes*size*group, k)
	asm.Add(4, w)
	DECQ(count)
	JNZ(LabelRef("position"))
	asm.Add(header, pages)
	XORQ(t, t)
	TESTQ(n, n)
	JNZ(LabelRef("page"))
	for h := range acc {
		for v, a := range acc[h] {
			VMOVUPS(a, oh[h].Offset(v*l.size()))
		}
	}
	asm.Add(4*lanes*group, o)
	asm.Add(group*pageLen*lanes*size, at)
	DECQ(times)
	JNZ(LabelRef("group"))
	end()
}
