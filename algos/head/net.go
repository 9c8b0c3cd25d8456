package head

import (
	"fmt"
	"math"
	"strings"

	"tokenrouter/kernels/matmul"
	"tokenrouter/kernels/vec"
)

// columns are n vectors of k values, vector c from v[c*ld] on.
type columns struct {
	v        []float32
	n, k, ld int
}

// shape makes room for n vectors of k values, ld apart; they may hold anything.
func (c *columns) shape(n, k, ld int) {
	if cap(c.v) < n*ld {
		c.v = make([]float32, n*ld)
	}
	c.v, c.n, c.k, c.ld = c.v[:n*ld], n, k, ld
}

func (c *columns) at(i int) []float32 { return c.v[i*c.ld:][:c.k:c.k] }

func (c *columns) each(f func([]float32)) {
	for i := range c.n {
		f(c.at(i))
	}
}

// add does c += o.
func (c *columns) add(o *columns) {
	for i := range c.n {
		vec.Add(c.at(i), o.at(i))
	}
}

// dense is y = w x + b, the bias added last. Sums over the inputs run as in
// kernels/matmul, so that no output knows how many vectors are computed together; a
// single row, which a matrix would pad to sixteen, is summed in float64 in four
// lanes.
type dense struct {
	w   *matmul.Matrix
	row []float32 // the weights in place of w, where there is one output
	b   []float32 // nil for none
}

// apply computes y for every vector of x.
func (d *dense) apply(ws *Workspace, y, x *columns) {
	if d.row != nil {
		y.shape(x.n, 1, 1)
		for i := range x.n {
			y.v[i] = dot(d.row, x.at(i))
		}
	} else {
		ws.in.Reset(d.w.Format, d.w.Cols, x.n)
		for i := range x.n {
			ws.in.Put(i, 0, x.at(i))
		}
		y.shape(x.n, d.w.Rows, d.w.Padded())
		d.w.Mul(y.v, y.ld, &ws.in, 0, d.w.Rows)
	}
	if d.b != nil {
		y.each(func(v []float32) { vec.Add(v, d.b) })
	}
}

// dot sums element i in lane i%4 and joins the lanes as (0+1)+(2+3). Products of
// float32 are exact in float64.
func dot(w, x []float32) float32 {
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(w); i += 4 {
		s0 += float64(w[i]) * float64(x[i])
		s1 += float64(w[i+1]) * float64(x[i+1])
		s2 += float64(w[i+2]) * float64(x[i+2])
		s3 += float64(w[i+3]) * float64(x[i+3])
	}
	for ; i < len(w); i++ {
		s0 += float64(w[i]) * float64(x[i])
	}
	return float32((s0 + s1) + (s2 + s3))
}

// affine is y = scale * x + shift for each value: BatchNorm with its running
// statistics folded, scale = weight / sqrt(var + eps), shift = bias - mean * scale
// (Ioffe and Szegedy 2015, algorithm 2).
type affine struct{ scale, shift []float32 }

func foldBatchNorm(weight, bias, mean, variance []float32) affine {
	a := affine{make([]float32, len(weight)), make([]float32, len(weight))}
	for i := range weight {
		s := float64(weight[i]) / math.Sqrt(float64(variance[i])+normEps)
		a.scale[i], a.shift[i] = float32(s), float32(float64(bias[i])-float64(float64(mean[i])*s))
	}
	return a
}

func (a *affine) apply(x []float32) {
	for i, v := range x {
		x[i] = float32(v*a.scale[i]) + a.shift[i]
	}
}

// layerNorm is (x - mean) / sqrt(var + eps) * w + b (Ba et al. 2016), the variance
// that of the values themselves, sums in float64.
type layerNorm struct{ w, b []float32 }

// normEps is the default of both norms in PyTorch, with which the published heads
// were trained.
const normEps = 1e-5

func (l *layerNorm) apply(y, x *columns) {
	y.shape(x.n, x.k, x.k)
	for i := range x.n {
		l.one(y.at(i), x.at(i))
	}
}

func (l *layerNorm) one(y, x []float32) {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	sum = 0
	for _, v := range x {
		d := float64(v) - mean
		sum += float64(d * d)
	}
	f := 1 / math.Sqrt(sum/float64(len(x))+normEps)
	for i, v := range x {
		y[i] = float32(float64((float64(v)-mean)*f*float64(l.w[i])) + float64(l.b[i]))
	}
}

// net is a network. It leaves a logit for every input in ws.y.
type net interface {
	logits(ws *Workspace, in []Input)
}

// stack is linear and mlp: dense layers with an activation between them.
type stack struct {
	pieces []piece
	layers []dense
	act    func([]float32)
}

func (n *stack) logits(ws *Workspace, in []Input) {
	x, y := &ws.x, &ws.y
	x.gather(n.pieces, in)
	for i := range n.layers {
		if i > 0 {
			x, y = y, &ws.a
			if i%2 == 0 {
				y = &ws.y
			}
			x.each(n.act)
		}
		n.layers[i].apply(ws, y, x)
	}
	if y != &ws.y {
		ws.y, ws.a = ws.a, ws.y
	}
}

// citer is Linear, BatchNorm, ReLU, Linear, Linear: the published module has no
// activation between the last two.
type citer struct {
	pieces              []piece
	first, second, last dense
	norm                affine
}

func (n *citer) logits(ws *Workspace, in []Input) {
	ws.x.gather(n.pieces, in)
	n.first.apply(ws, &ws.a, &ws.x)
	ws.a.each(n.norm.apply)
	ws.a.each(relu)
	n.second.apply(ws, &ws.b, &ws.a)
	n.last.apply(ws, &ws.y, &ws.b)
}

// r2r joins hidden state, embedding and projected logits, and passes them through
// residual blocks.
type r2r struct {
	hidden                  int
	project, combine, input dense
	blocks                  []block
	norm                    layerNorm
	last                    dense
}

// block is x + W2 gelu(W1 norm(x)), the residual projected where widths change.
type block struct {
	norm     layerNorm
	up, down dense
	change   *dense
}

func (n *r2r) logits(ws *Workspace, in []Input) {
	h := n.hidden
	ws.x.gather([]piece{{"logits", len(in[0].Logits)}}, in)
	n.project.apply(ws, &ws.a, &ws.x)
	ws.x.shape(len(in), 3*h, 3*h)
	for i := range in {
		x := ws.x.at(i)
		copy(x, in[i].Hidden)
		copy(x[h:], in[i].Embedding)
		copy(x[2*h:], ws.a.at(i))
	}
	n.combine.apply(ws, &ws.a, &ws.x)
	n.input.apply(ws, &ws.x, &ws.a)
	for i := range n.blocks {
		b := &n.blocks[i]
		b.norm.apply(&ws.a, &ws.x)
		b.up.apply(ws, &ws.b, &ws.a)
		ws.b.each(gelu)
		b.down.apply(ws, &ws.a, &ws.b)
		if b.change != nil {
			b.change.apply(ws, &ws.b, &ws.x)
			ws.x, ws.b = ws.b, ws.x
		}
		ws.x.add(&ws.a)
	}
	n.norm.apply(&ws.a, &ws.x)
	n.last.apply(ws, &ws.y, &ws.a)
}

// parts are a head's tensors: matrices packed for the kernels, vectors and single
// rows as they are.
type parts struct {
	matrices map[string]*matmul.Matrix
	vectors  map[string][]float32
}

func (p *parts) dense(name string) dense {
	return dense{p.matrices[name+"weight"], p.vectors[name+"weight"], p.vectors[name+"bias"]}
}

func (p *parts) layerNorm(name string) layerNorm {
	return layerNorm{p.vectors[name+"weight"], p.vectors[name+"bias"]}
}

// build puts the network of a spec together.
func (p *parts) build(s *Spec) net {
	switch s.Kind {
	case "citer":
		bn := func(end string) []float32 { return p.vectors["mlp.1."+end] }
		return &citer{
			pieces: s.pieces(), first: p.dense("mlp.0."), second: p.dense("mlp.4."), last: p.dense("linear."),
			norm: foldBatchNorm(bn("weight"), bn("bias"), bn("running_mean"), bn("running_var")),
		}
	case "r2r":
		n := &r2r{
			hidden: s.Hidden, project: p.dense("logits_projection."), combine: p.dense("combined_projection."),
			input: p.dense("backbone.input_projection."),
			norm:  p.layerNorm("backbone.output_layer.0."), last: p.dense("backbone.output_layer.1."),
		}
		for i := range s.widths() {
			at := fmt.Sprintf("backbone.blocks.%d.", i)
			b := block{norm: p.layerNorm(at + "layer_norm."), up: p.dense(at + "mlp.0."), down: p.dense(at + "mlp.3.")}
			if d := p.dense(at + "dim_change."); d.w != nil || d.row != nil {
				b.change = &d
			}
			n.blocks = append(n.blocks, b)
		}
		return n
	}
	n := &stack{pieces: s.pieces(), act: relu}
	if s.Activation == "gelu" {
		n.act = gelu
	}
	for _, t := range s.Tensors() {
		if name, ok := strings.CutSuffix(t.Name, "weight"); ok {
			n.layers = append(n.layers, p.dense(name))
		}
	}
	return n
}
