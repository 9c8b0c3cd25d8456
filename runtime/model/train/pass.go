package train

import (
	"tokenrouter/kernels/gemm"
)

// saved is what a layer's forward pass keeps for its backward pass, by token.
type saved struct {
	in, norm1, attn, mid, norm2 []float32 // residual stream, normed, heads' outputs, stream between, normed
	raw, qkv                    []float32 // queries, keys, values: as projected; normed and rotated
	gateUp, sigmoid, hidden     []float32
	inv1, inv2, invHead         []float32 // what norms divided by, inverse
	prob                        []float32 // attention of each head and sequence
}

// pass computes losses and gradients of batches, for one goroutine. Weights are
// the trainer's and only read.
type pass struct {
	shape  Shape
	lay    *layout
	w      []float32 // weights
	turned []float32 // the same, each matrix transposed in its place
	grad   []float32
	cos    []float32 // [position][pair]
	sin    []float32

	layers                  []saved
	last, lastNorm, lastInv []float32
	picked, logits, dPicked []float32 // rows whose prediction counts
	dx, dnorm, wide, wide2  []float32
	keysT, valuesT, dprob   []float32
	losses                  []float64
	right                   []bool
}

// fit makes x hold n values, whatever they are.
func fit(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n, n+n/4)
	}
	return x[:n]
}

// grow makes room for a batch.
func (p *pass) grow(b *batch) {
	s, n, m := p.shape, len(b.ids), len(b.rows)
	if p.layers == nil {
		p.layers = make([]saved, s.Layers)
	}
	prob := 0
	for i, from := range b.starts[:len(b.starts)-1] {
		t := b.starts[i+1] - from
		prob += s.Heads * t * padded(t)
	}
	for i := range p.layers {
		l := &p.layers[i]
		for _, x := range []*[]float32{&l.in, &l.norm1, &l.mid, &l.norm2} {
			*x = fit(*x, n*s.Hidden)
		}
		l.attn = fit(l.attn, n*s.queries())
		l.raw, l.qkv = fit(l.raw, n*s.qkv()), fit(l.qkv, n*s.qkv())
		l.gateUp, l.sigmoid, l.hidden = fit(l.gateUp, 2*n*s.FFN), fit(l.sigmoid, n*s.FFN), fit(l.hidden, n*s.FFN)
		l.inv1, l.inv2, l.invHead = fit(l.inv1, n), fit(l.inv2, n), fit(l.invHead, n*(s.Heads+s.KVHeads))
		l.prob = fit(l.prob, prob)
	}
	p.last, p.lastNorm, p.lastInv = fit(p.last, n*s.Hidden), fit(p.lastNorm, n*s.Hidden), fit(p.lastInv, n)
	p.picked, p.dPicked, p.logits = fit(p.picked, m*s.Hidden), fit(p.dPicked, m*s.Hidden), fit(p.logits, m*padded(s.Vocab))
	p.dx, p.dnorm = fit(p.dx, n*s.Hidden), fit(p.dnorm, n*s.Hidden)
	widest := max(2*s.FFN, s.qkv(), s.Hidden)
	p.wide, p.wide2 = fit(p.wide, n*widest), fit(p.wide2, n*widest)
	if cap(p.losses) < m {
		p.losses, p.right = make([]float64, m), make([]bool, m)
	}
	p.losses, p.right = p.losses[:m], p.right[:m]
}

// times writes y = x W^T for the matrix at a place of the weights, out x in.
func (p *pass) times(n, out, in int, x []float32, at int, y []float32, add bool) {
	gemm.Mul(n, out, in, gemm.Rows(x, in), p.turned[at:], out, y, out, add)
}

// back writes dx = dy W and adds dy^T x to the gradient of W. Rows of dy lie ld
// values apart.
func (p *pass) back(n, out, in int, dy []float32, ld int, x []float32, at int, dx []float32) {
	gemm.Mul(out, in, n, gemm.Transposed(dy, ld), x, in, p.grad[at:], in, true)
	gemm.Mul(n, in, out, gemm.Rows(dy, ld), p.w[at:], in, dx, in, false)
}

// forward fills what the backward pass needs and the normed last hidden states.
func (p *pass) forward(b *batch) {
	s, n, d := p.shape, len(b.ids), p.shape.Hidden
	p.grow(b)
	x := p.layers[0].in
	for i, id := range b.ids {
		copy(x[i*d:][:d], p.w[p.lay.embed+int(id)*d:])
	}
	for i := range p.layers {
		l, at := &p.layers[i], p.lay.layers[i]
		rmsNorm(l.norm1, l.inv1, l.in, p.w[at.norm1:][:d])
		p.times(n, s.qkv(), d, l.norm1, at.qkv, l.raw, false)
		p.rotate(b, l, p.w[at.qnorm:], p.w[at.knorm:])
		p.attend(b, l)
		copy(l.mid, l.in)
		p.times(n, d, s.queries(), l.attn, at.out, l.mid, true)
		rmsNorm(l.norm2, l.inv2, l.mid, p.w[at.norm2:][:d])
		p.times(n, 2*s.FFN, d, l.norm2, at.gateUp, l.gateUp, false)
		for t := range n {
			swiGLU(l.hidden[t*s.FFN:][:s.FFN], l.sigmoid[t*s.FFN:][:s.FFN], l.gateUp[2*t*s.FFN:][:2*s.FFN])
		}
		next := p.last
		if i+1 < len(p.layers) {
			next = p.layers[i+1].in
		}
		copy(next, l.mid)
		p.times(n, d, s.FFN, l.hidden, at.down, next, true)
	}
	rmsNorm(p.lastNorm, p.lastInv, p.last, p.w[p.lay.norm:][:d])
}

// loss computes the cross-entropy of each token that counts, and whether it is
// the likeliest one. With scale above 0 it adds the gradient of scale times
// their sum.
func (p *pass) loss(b *batch, scale float32) (sum float64) {
	p.forward(b)
	d, v, m := p.shape.Hidden, p.shape.Vocab, len(b.rows)
	for i, row := range b.rows {
		copy(p.picked[i*d:][:d], p.lastNorm[row*d:])
	}
	gemm.Mul(m, v, d, gemm.Rows(p.picked, d), p.turned[p.lay.embed:], v, p.logits, padded(v), false)
	for i, want := range b.want {
		p.losses[i], p.right[i] = crossEntropy(p.logits[i*padded(v):], v, int(want), scale)
		sum += p.losses[i]
	}
	if scale > 0 {
		p.backward(b)
	}
	return sum
}

// backward adds to the gradient; logits hold theirs.
func (p *pass) backward(b *batch) {
	s, n, d := p.shape, len(b.ids), p.shape.Hidden
	p.back(len(b.rows), s.Vocab, d, p.logits, padded(s.Vocab), p.picked, p.lay.embed, p.dPicked)
	clear(p.dnorm)
	for i, row := range b.rows {
		copy(p.dnorm[row*d:][:d], p.dPicked[i*d:])
	}
	clear(p.dx)
	rmsNormBack(p.dx, p.grad[p.lay.norm:][:d], p.dnorm, p.last, p.lastInv, p.w[p.lay.norm:][:d])
	for i := len(p.layers) - 1; i >= 0; i-- {
		l, at := &p.layers[i], p.lay.layers[i]
		p.back(n, d, s.FFN, p.dx, d, l.hidden, at.down, p.wide)
		for t := range n {
			swiGLUBack(p.wide2[2*t*s.FFN:][:2*s.FFN], p.wide[t*s.FFN:][:s.FFN], l.sigmoid[t*s.FFN:][:s.FFN], l.gateUp[2*t*s.FFN:][:2*s.FFN])
		}
		p.back(n, 2*s.FFN, d, p.wide2, 2*s.FFN, l.norm2, at.gateUp, p.dnorm)
		rmsNormBack(p.dx, p.grad[at.norm2:][:d], p.dnorm, l.mid, l.inv2, p.w[at.norm2:][:d])
		p.back(n, d, s.queries(), p.dx, d, l.attn, at.out, p.wide)
		p.attendBack(b, l, p.wide2, p.wide)
		p.rotateBack(b, l, p.wide2, at)
		p.back(n, s.qkv(), d, p.wide2, s.qkv(), l.norm1, at.qkv, p.dnorm)
		rmsNormBack(p.dx, p.grad[at.norm1:][:d], p.dnorm, l.in, l.inv1, p.w[at.norm1:][:d])
	}
	for i, id := range b.ids {
		addTo(p.grad[p.lay.embed+int(id)*d:][:d], p.dx[i*d:])
	}
}
