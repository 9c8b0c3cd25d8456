package train

import (
	"math"
	"testing"
)

// toys are small shapes: odd sizes, one head, shared KV heads, whole vectors.
var toys = []Shape{
	{Hidden: 12, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 6, FFN: 10, Vocab: 23},
	{Hidden: 16, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, FFN: 24, Vocab: 32},
	{Hidden: 16, Layers: 2, Heads: 4, KVHeads: 1, HeadDim: 16, FFN: 16, Vocab: 40},
}

// noise is an example of n tokens without meaning; some of them count.
func noise(r *random, n, vocab int) Example {
	e := Example{make([]int32, n+1), make([]bool, n+1)}
	for i := range e.IDs {
		e.IDs[i] = int32(r.next() % uint64(vocab))
		e.Learn[i] = r.next()%3 > 0
	}
	e.Learn[n] = true
	return e
}

// toy is a trainer of weights that are far from fresh, norms included, so that no
// gradient is small by chance.
func toy(t testing.TB, s Shape, workers int) *Trainer {
	t.Helper()
	cfg := Default(s)
	cfg.Workers, cfg.Tokens = workers, 64
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := random{state: 7}
	for i := range tr.w {
		tr.w[i] += float32(0.2 * r.normal())
	}
	tr.turnAll()
	return tr
}

// batchOf is some examples back to back.
func batchOf(examples []Example) *batch {
	var b batch
	b.reset()
	for _, e := range examples {
		b.add(e)
	}
	return &b
}

// TestGradients holds the loss and every tensor's gradient against central
// differences of the oracle's loss, at some weights of each, more of the
// small ones. The passes compute in float32:
// relative to the largest gradient of the tensor they keep 2e-5 (about 2e-6 is
// seen).
func TestGradients(t *testing.T) {
	for _, s := range toys {
		tr := toy(t, s, 1)
		r := random{state: 1}
		examples := []Example{noise(&r, 5, s.Vocab), noise(&r, 67, s.Vocab), noise(&r, 1, s.Vocab), noise(&r, 16, s.Vocab)}
		o, p, b := newOracle(tr), tr.passes[0], batchOf(examples)
		scale := 1 / float32(len(b.rows))
		loss, want := p.loss(b, scale), o.loss(examples)
		if math.Abs(loss-want) > 1e-5*want {
			t.Errorf("%+v: loss %v, the oracle's is %v", s, loss, want)
		}
		for _, span := range tr.lay.spans {
			grad := p.grad[span.at:][:span.len()]
			largest := 0.0
			for _, g := range grad {
				largest = max(largest, math.Abs(float64(g)))
			}
			if largest == 0 {
				t.Errorf("%+v: %s has no gradient", s, span.name)
			}
			for i := 0; i < len(grad); i += max(1, len(grad)/4) {
				got, want := float64(grad[i]), o.slope(span.at+i, examples)*float64(scale)
				if math.Abs(got-want) > 2e-5*largest {
					t.Errorf("%+v: gradient %d of %s is %v, differences give %v (the tensor's largest is %v)", s, i, span.name, got, want, largest)
				}
			}
		}
	}
}

// slope is the central difference of the loss by one weight.
func (o *oracle) slope(at int, examples []Example) float64 {
	const h = 1e-5
	w := o.w[at]
	o.w[at] = w + h
	up := o.loss(examples)
	o.w[at] = w - h
	down := o.loss(examples)
	o.w[at] = w
	return (up - down) / (2 * h)
}
