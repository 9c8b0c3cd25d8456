package train

import (
	"math"

	"tokenrouter/kernels/gemm"
)

// param is one tensor that is trained.
type param struct {
	name  string
	value []float32
	grad  []float32
	decay bool // weights are drawn to 0, biases and norms are not

	first, second []float64 // moments of the gradient
}

func newParam(name string, n int, decay bool) *param {
	return &param{name: name, value: make([]float32, n), grad: make([]float32, n), decay: decay, first: make([]float64, n), second: make([]float64, n)}
}

// layer is a function on rows of values. What forward and backward return holds
// until the next call; backward is of the last forward, adds to the gradients of
// its params and gives the gradient of its input.
type layer interface {
	forward(x []float32, n int, training bool) []float32
	backward(dy []float32, n int) []float32
	params() []*param
}

// sized is s with n values, of which any may be anything.
func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// dense is y = w x + b, w of out x in.
type dense struct {
	in, out int
	w, b    *param // b nil: none

	x, y, dx, turned []float32
}

func (d *dense) params() []*param {
	if d.b == nil {
		return []*param{d.w}
	}
	return []*param{d.w, d.b}
}

func (d *dense) forward(x []float32, n int, _ bool) []float32 {
	d.x, d.y = x, sized(d.y, n*d.out)
	if d.out == 1 {
		return d.forwardOne(n)
	}
	d.turned = sized(d.turned, d.in*d.out)
	for o := range d.out {
		for i, v := range d.w.value[o*d.in:][:d.in] {
			d.turned[i*d.out+o] = v
		}
	}
	gemm.Mul(n, d.out, d.in, gemm.Rows(x, d.in), d.turned, d.out, d.y, d.out, false)
	if d.b != nil {
		for r := range n {
			y := d.y[r*d.out:][:d.out]
			for o, v := range d.b.value {
				y[o] += v
			}
		}
	}
	return d.y
}

func (d *dense) backward(dy []float32, n int) []float32 {
	if d.out == 1 {
		return d.backwardOne(dy, n)
	}
	gemm.Mul(d.out, d.in, n, gemm.Transposed(dy, d.out), d.x, d.in, d.w.grad, d.in, true)
	if d.b != nil {
		for r := range n {
			for o, v := range dy[r*d.out:][:d.out] {
				d.b.grad[o] += v
			}
		}
	}
	d.dx = sized(d.dx, n*d.in)
	gemm.Mul(n, d.in, d.out, gemm.Rows(dy, d.out), d.w.value, d.in, d.dx, d.in, false)
	return d.dx
}

// A single output is less than what a kernel computes at once.
func (d *dense) forwardOne(n int) []float32 {
	for r := range n {
		var sum float32
		for i, v := range d.x[r*d.in:][:d.in] {
			sum += float32(v * d.w.value[i])
		}
		if d.b != nil {
			sum += d.b.value[0]
		}
		d.y[r] = sum
	}
	return d.y
}

func (d *dense) backwardOne(dy []float32, n int) []float32 {
	d.dx = sized(d.dx, n*d.in)
	for r, g := range dy[:n] {
		dx := d.dx[r*d.in:][:d.in]
		for i, v := range d.x[r*d.in:][:d.in] {
			d.w.grad[i] += float32(g * v)
			dx[i] = float32(g * d.w.value[i])
		}
		if d.b != nil {
			d.b.grad[0] += g
		}
	}
	return d.dx
}

// relu is max(x, 0).
type relu struct{ y, dx []float32 }

func (*relu) params() []*param { return nil }

func (l *relu) forward(x []float32, _ int, _ bool) []float32 {
	l.y = sized(l.y, len(x))
	for i, v := range x {
		l.y[i] = max(v, 0)
	}
	return l.y
}

func (l *relu) backward(dy []float32, _ int) []float32 {
	l.dx = sized(l.dx, len(dy))
	for i, v := range dy {
		if l.dx[i] = 0; l.y[i] > 0 {
			l.dx[i] = v
		}
	}
	return l.dx
}

// gelu is x times the normal distribution function at x (Hendrycks and Gimpel
// 2016), the exact form.
type gelu struct{ x, y, dx []float32 }

func (*gelu) params() []*param { return nil }

func (l *gelu) forward(x []float32, _ int, _ bool) []float32 {
	l.x, l.y = x, sized(l.y, len(x))
	for i, v := range x {
		l.y[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
	return l.y
}

func (l *gelu) backward(dy []float32, _ int) []float32 {
	l.dx = sized(l.dx, len(dy))
	for i, d := range dy {
		x := float64(l.x[i])
		slope := 0.5*(1+math.Erf(x/math.Sqrt2)) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		l.dx[i] = float32(float64(d) * slope)
	}
	return l.dx
}

// residual is x + inner(x), or change(x) + inner(x) where widths differ.
type residual struct {
	inner  chain
	change *dense

	y, dx []float32
}

func (l *residual) params() []*param {
	out := l.inner.params()
	if l.change != nil {
		out = append(out, l.change.params()...)
	}
	return out
}

func (l *residual) forward(x []float32, n int, training bool) []float32 {
	inner := l.inner.forward(x, n, training)
	if l.change != nil {
		x = l.change.forward(x, n, training)
	}
	l.y = sized(l.y, len(inner))
	for i, v := range inner {
		l.y[i] = v + x[i]
	}
	return l.y
}

func (l *residual) backward(dy []float32, n int) []float32 {
	inner, past := l.inner.backward(dy, n), dy
	if l.change != nil {
		past = l.change.backward(dy, n)
	}
	l.dx = sized(l.dx, len(inner))
	for i, v := range inner {
		l.dx[i] = v + past[i]
	}
	return l.dx
}

// tail passes the first keep values of a row through and the others through a
// dense layer: the projected logits of R2R.
type tail struct {
	keep int
	last *dense

	x, y, dy, dx []float32
}

func (l *tail) params() []*param { return l.last.params() }

func (l *tail) forward(x []float32, n int, training bool) []float32 {
	l.x = sized(l.x, n*l.last.in)
	width, out := l.keep+l.last.in, l.keep+l.last.out
	for r := range n {
		copy(l.x[r*l.last.in:][:l.last.in], x[r*width+l.keep:])
	}
	y := l.last.forward(l.x, n, training)
	l.y = sized(l.y, n*out)
	for r := range n {
		copy(l.y[r*out:][:l.keep], x[r*width:])
		copy(l.y[r*out+l.keep:], y[r*l.last.out:][:l.last.out])
	}
	return l.y
}

func (l *tail) backward(dy []float32, n int) []float32 {
	width, out := l.keep+l.last.in, l.keep+l.last.out
	l.dy = sized(l.dy, n*l.last.out)
	for r := range n {
		copy(l.dy[r*l.last.out:][:l.last.out], dy[r*out+l.keep:])
	}
	dx := l.last.backward(l.dy, n)
	l.dx = sized(l.dx, n*width)
	for r := range n {
		copy(l.dx[r*width:][:l.keep], dy[r*out:])
		copy(l.dx[r*width+l.keep:], dx[r*l.last.in:][:l.last.in])
	}
	return l.dx
}

// chain is layers one behind the other.
type chain []layer

func (c chain) params() (out []*param) {
	for _, l := range c {
		out = append(out, l.params()...)
	}
	return out
}

func (c chain) forward(x []float32, n int, training bool) []float32 {
	for _, l := range c {
		x = l.forward(x, n, training)
	}
	return x
}

func (c chain) backward(dy []float32, n int) []float32 {
	for i := len(c) - 1; i >= 0; i-- {
		dy = c[i].backward(dy, n)
	}
	return dy
}
