package train

import (
	"math"

	"tokenrouter/kernels/gemm"
	"tokenrouter/kernels/vec"
)

// block is the number of queries that are taken together: what is behind them in
// the sequence is then mostly not computed.
const block = 64

// padded is n rounded up to whole vectors of the kernels.
func padded(n int) int { return (n + 15) &^ 15 }

// head is one query head over one sequence.
type head struct {
	t, wide           int       // tokens, length of a row of prob
	prob              []float32 // [t][wide]
	query, key, value int       // where the first token's begin in qkv
	out               int       // and in attn
}

// heads visits every head of every sequence; first says that it is the first of
// those that share keys and values.
func (p *pass) heads(b *batch, prob []float32, f func(h head, first bool)) {
	s := p.shape
	group := s.Heads / s.KVHeads
	for i, from := range b.starts[:len(b.starts)-1] {
		t := b.starts[i+1] - from
		for k := range s.Heads {
			h := head{t: t, wide: padded(t)}
			h.prob, prob = prob[:t*h.wide], prob[t*h.wide:]
			h.query = from*s.qkv() + k*s.HeadDim
			h.key = from*s.qkv() + (s.Heads+k/group)*s.HeadDim
			h.value = h.key + s.KVHeads*s.HeadDim
			h.out = from*s.queries() + k*s.HeadDim
			f(h, k%group == 0)
		}
	}
}

// attend is causal attention (Vaswani et al. 2017, eq. 1).
func (p *pass) attend(b *batch, l *saved) {
	dim, ld := p.shape.HeadDim, p.shape.qkv()
	scale := float32(1 / math.Sqrt(float64(dim)))
	p.heads(b, l.prob, func(h head, first bool) {
		if first {
			p.keysT = turn(p.keysT, l.qkv[h.key:], ld, h.t, dim, h.wide, scale)
		}
		for from := 0; from < h.t; from += block {
			to := min(from+block, h.t)
			rows := h.prob[from*h.wide:]
			gemm.Mul(to-from, padded(to), dim, gemm.Rows(l.qkv[h.query+from*ld:], ld), p.keysT, h.wide, rows, h.wide, false)
			for i := from; i < to; i++ {
				row := h.prob[i*h.wide:]
				softmax(row, i+1)
				clear(row[min(padded(i+1), to):to])
			}
			gemm.Mul(to-from, dim, to, gemm.Rows(rows, h.wide), l.qkv[h.value:], ld, l.attn[h.out+from*p.shape.queries():], p.shape.queries(), false)
		}
	})
}

// attendBack writes to dqkv the gradients of rotated queries and keys and of
// values, from those of the heads' outputs.
func (p *pass) attendBack(b *batch, l *saved, dqkv, dout []float32) {
	dim, ld, ldo := p.shape.HeadDim, p.shape.qkv(), p.shape.queries()
	scale := float32(1 / math.Sqrt(float64(dim)))
	clear(dqkv[:len(b.ids)*ld])
	p.heads(b, l.prob, func(h head, first bool) {
		if first {
			p.valuesT = turn(p.valuesT, l.qkv[h.value:], ld, h.t, dim, h.wide, 1)
		}
		p.dprob = fit(p.dprob, block*h.wide)
		for from := 0; from < h.t; from += block {
			to := min(from+block, h.t)
			n, rows, do := to-from, h.prob[from*h.wide:], dout[h.out+from*ldo:]
			gemm.Mul(to, dim, n, gemm.Transposed(rows, h.wide), do, ldo, dqkv[h.value:], ld, true)
			gemm.Mul(n, padded(to), dim, gemm.Rows(do, ldo), p.valuesT, h.wide, p.dprob, h.wide, false)
			for i := from; i < to; i++ {
				row := p.dprob[(i-from)*h.wide:]
				softmaxBack(row[:i+1], h.prob[i*h.wide:][:i+1], scale)
				clear(row[i+1 : to])
			}
			gemm.Mul(n, dim, to, gemm.Rows(p.dprob, h.wide), l.qkv[h.key:], ld, dqkv[h.query+from*ld:], ld, false)
			gemm.Mul(to, dim, n, gemm.Transposed(p.dprob, h.wide), l.qkv[h.query+from*ld:], ld, dqkv[h.key:], ld, true)
		}
	})
}

// turn writes scale times the transpose of t rows of dim values, each row of it
// wide values long with zeros behind.
func turn(dst, src []float32, ld, t, dim, wide int, scale float32) []float32 {
	dst = fit(dst, dim*wide)
	gemm.Transpose(dst, wide, src, ld, t, dim)
	for j := range dim {
		clear(dst[j*wide+t:][:wide-t])
	}
	vec.Scale(dst, scale)
	return dst
}

// rotate norms the heads of queries and keys and rotates them to their positions
// (Su et al. 2021); values are copied.
func (p *pass) rotate(b *batch, l *saved, qnorm, knorm []float32) {
	s, dim, half := p.shape, p.shape.HeadDim, p.shape.HeadDim/2
	both := s.Heads + s.KVHeads
	for t, pos := range b.pos {
		raw, out := l.raw[t*s.qkv():][:s.qkv()], l.qkv[t*s.qkv():][:s.qkv()]
		cos, sin := p.cos[int(pos)*half:][:half], p.sin[int(pos)*half:][:half]
		for k := range both {
			w := qnorm
			if k >= s.Heads {
				w = knorm
			}
			x, y := raw[k*dim:][:dim], out[k*dim:][:dim]
			inv := inverse(x)
			l.invHead[t*both+k] = inv
			x1, x2, y1, y2, w1, w2 := x[:half], x[half:][:half], y[:half], y[half:][:half], w[:half], w[half:][:half]
			for j, c := range cos {
				u, v := x1[j]*inv*w1[j], x2[j]*inv*w2[j]
				y1[j] = u*c - v*sin[j]
				y2[j] = v*c + u*sin[j]
			}
		}
		copy(out[both*dim:], raw[both*dim:])
	}
}

// rotateBack turns gradients of rotated queries and keys into those of projected
// ones, in their place.
func (p *pass) rotateBack(b *batch, l *saved, dqkv []float32, at layer) {
	s, dim, half := p.shape, p.shape.HeadDim, p.shape.HeadDim/2
	both := s.Heads + s.KVHeads
	for t, pos := range b.pos {
		raw, out := l.raw[t*s.qkv():][:s.qkv()], dqkv[t*s.qkv():][:s.qkv()]
		cos, sin := p.cos[int(pos)*half:][:half], p.sin[int(pos)*half:][:half]
		for k := range both {
			norm := at.qnorm
			if k >= s.Heads {
				norm = at.knorm
			}
			w, dw := p.w[norm:][:dim], p.grad[norm:][:dim]
			x, y := raw[k*dim:][:dim], out[k*dim:][:dim]
			y1, y2 := y[:half], y[half:][:half]
			for j, c := range cos {
				y1[j], y2[j] = y1[j]*c+y2[j]*sin[j], y2[j]*c-y1[j]*sin[j]
			}
			inv, sum := l.invHead[t*both+k], float32(0)
			for j, g := range y {
				dw[j] += g * x[j] * inv
				g *= w[j]
				y[j] = g
				sum += g * x[j]
			}
			sum *= inv * inv * inv / float32(dim)
			for j, g := range y {
				y[j] = inv*g - x[j]*sum
			}
		}
	}
}
