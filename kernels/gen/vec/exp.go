package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"tokenrouter/kernels/gen/asm"
)

// level is a set of instructions. Sixteen values, the lanes of every sum that
// kernels/vec fixes, are two vectors of AVX2 or one of AVX-512: half as many
// instructions have to wait in the core for as many values.
type level struct {
	name string
	wide bool
}

var (
	avx2   = level{"AVX2", false}
	avx512 = level{"AVX512", true}
	both   = []level{avx2, avx512}
)

const lanes = 16

// vecs is the number of vectors for sixteen values.
func (l level) vecs() int {
	if l.wide {
		return 1
	}
	return 2
}

// size is the number of bytes of a vector.
func (l level) size() int { return 4 * lanes / l.vecs() }

func (l level) vec() reg.VecVirtual { return asm.Vec(l.wide) }

// many is n vectors.
func (l level) many(n int) []reg.VecVirtual { return asm.Vecs(l.wide, n) }

func (l level) zero() reg.VecVirtual {
	v := l.vec()
	if l.wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

// zeros is n vectors of zeros.
func (l level) zeros(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = l.zero()
	}
	return v
}

// constants are the vectors in memory so far, by the bits of a lane.
var constants = map[uint32]Mem{}

// bits is eight lanes of the same bits in memory; AVX-512 takes the first for
// all.
func bits(b uint32) Mem {
	m, ok := constants[b]
	if !ok {
		m = GLOBL(fmt.Sprintf("lanes%08x", b), RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(b))
		}
		constants[b] = m
	}
	return m
}

func same(f float32) Mem { return bits(math.Float32bits(f)) }

// with does op with a constant in every lane as its first operand.
func (l level) with(f float32, op, bcst func(ops ...Op), ops ...Op) {
	if l.wide {
		op = bcst
	}
	op(append([]Op{same(f)}, ops...)...)
}

// held is a constant in every lane of a register.
func (l level) held(f float32) reg.VecVirtual {
	v := l.vec()
	VBROADCASTSS(same(f), v)
	return v
}

// broadcast is a float32 parameter in every lane.
func (l level) broadcast(name string) reg.VecVirtual {
	x, v := XMM(), l.vec()
	Load(Param(name), x)
	VBROADCASTSS(x, v)
	return v
}

// exp replaces x <= 0 by e^x, operation by operation as exp of kernels/vec; the
// comments there say why. low holds expLow. What x was, at least expLow, is
// returned if keep is set.
func (l level) exp(x, low reg.VecVirtual, keep bool) (clamped reg.VecVirtual) {
	const magic = 0x1.8p23 + 127
	VMAXPS(x, low, x) // NaN in x stays
	if keep {
		clamped = l.vec()
		VMOVUPS(x, clamped)
	}
	t, n := l.held(magic), l.vec()
	l.with(1.44269504088896341, VFMADD231PS, VFMADD231PS_BCST, x, t)
	l.with(magic, VSUBPS, VSUBPS_BCST, t, n)
	l.with(0.693359375, VFNMADD231PS, VFNMADD231PS_BCST, n, x)
	l.with(-2.12194440e-4, VFNMADD231PS, VFNMADD231PS_BCST, n, x)
	p := l.held(0.0013926192)
	for _, c := range []float32{0.0083631864, 0.041666556, 0.16666576, 0.5} {
		l.with(c, VFMADD213PS, VFMADD213PS_BCST, x, p)
	}
	r2 := l.vec()
	VMULPS(x, x, r2)
	VFMADD213PS(x, r2, p)
	VPSLLD(U8(23), t, t)
	VMOVUPS(t, x)
	VFMADD231PS(p, t, x)
	return clamped
}

// fold joins sixteen lanes into the lowest: halves onto each other.
func (l level) fold(v []reg.VecVirtual, op func(ops ...Op)) reg.VecVirtual {
	y, t := YMM(), YMM()
	if l.wide {
		VEXTRACTF64X4(U8(1), v[0], t)
		op(t, v[0].AsY(), y)
		folded(y, VEXTRACTF32X4, op)
		return y
	}
	op(v[1], v[0], y)
	fold8(y, op)
	return y
}

// fold8 joins eight lanes.
func fold8(y reg.VecVirtual, op func(ops ...Op)) {
	folded(y, func(o ...Op) { VEXTRACTF128(o[0], o[1], o[2]) }, op)
}

func folded(y reg.VecVirtual, upper, op func(ops ...Op)) {
	t := XMM()
	upper(U8(1), y, t)
	op(t, y.AsX(), y.AsX())
	VPSHUFD(U8(0x4e), y.AsX(), t)
	op(t, y.AsX(), y.AsX())
	VPSHUFD(U8(0xb1), y.AsX(), t)
	op(t, y.AsX(), y.AsX())
}

// result stores the lowest lane as a float32 result. Store would take MOVSS,
// which does not know the upper registers of AVX-512.
func result(i int, v reg.VecVirtual) {
	to, err := ReturnIndex(i).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(v.AsX(), to.Addr)
}
