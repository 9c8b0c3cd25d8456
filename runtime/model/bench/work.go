package bench

import (
	"tokenrouter/kernels/limits"
	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/family"
)

// work is what a model's steps have to do at least.
type work struct {
	products []product
	kvBytes  int64 // of one position
	attend   float64
	layers   int
}

// product is a matrix of the forward pass.
type product struct {
	kind  limits.Kind
	ops   float64 // of one token; a multiply-add is two
	bytes int64
	// last says that it comes after the last layer's keys and values: only tokens
	// whose results are wanted pass through it.
	last bool
}

func newWork(p *checkpoint.Plan, m *model.Model) work {
	c := &m.Config
	w := work{
		kvBytes: int64(m.KVBytes()), layers: c.Layers,
		// Scores and outputs of all heads with one position.
		attend: 4 * float64(c.Heads*c.HeadDim) * float64(c.Layers),
	}
	for i := range p.Matrices {
		x := &p.Matrices[i]
		if x.Role == family.Embed && !c.Tied {
			continue // a row of it is looked up
		}
		w.products = append(w.products, product{
			kind: kindOf(x.Format), ops: 2 * float64(x.Rows) * float64(x.Cols), bytes: x.Bytes(),
			last: x.Role == family.Embed || x.Role == family.Head || x.Layer == c.Layers-1 && x.Role != family.Q,
		})
	}
	return w
}

// kindOf is what the kernels of a format are made of.
func kindOf(f matmul.Format) limits.Kind {
	switch f {
	case matmul.Q8:
		return limits.Int16
	case matmul.Q4:
		return limits.Int8
	}
	return limits.Float
}

func (w *work) weights() (n int64) {
	for i := range w.products {
		n += w.products[i].bytes
	}
	return n
}

// load is what one step has to do at least.
type load struct {
	bytes int64
	ops   [3]float64 // by limits.Kind
}

// step is the load of a step of rows sequences, each with some tokens behind a
// context, of which the last gives a result.
func (w *work) step(rows, tokens, context int) load {
	var l load
	for i := range w.products {
		p := &w.products[i]
		n := rows * tokens
		if p.last {
			n = rows
		}
		l.bytes += p.bytes
		l.ops[p.kind] += p.ops * float64(n)
	}
	// Token i of a row looks at context+i+1 positions; the keys and values of each
	// are read once at least.
	seen := float64(tokens)*float64(context) + float64(tokens)*float64(tokens+1)/2
	if w.layers > 0 && tokens > 1 { // in the last layer only the last token looks
		share := 1 / float64(w.layers)
		seen = seen*(1-share) + float64(context+tokens)*share
	}
	l.ops[limits.Float] += w.attend * seen * float64(rows)
	l.bytes += w.kvBytes * int64(rows) * int64(context+tokens)
	return l
}

func (l *load) total() (ops float64) {
	for _, n := range l.ops {
		ops += n
	}
	return ops
}

// bound is the least time that the machine could need, in seconds, and which
// limit says so: "read" or the kind of multiply-adds that take most of it.
func (l *load) bound(m *limits.Limits) (seconds float64, by string) {
	most := 0.0
	for k, n := range l.ops {
		t := n / m.Peak[k].PerSecond
		if seconds += t; t > most {
			most, by = t, limits.Kind(k).String()
		}
	}
	if t := float64(l.bytes) / m.Read.PerSecond; t > seconds {
		seconds, by = t, "read"
	}
	return seconds, by
}
