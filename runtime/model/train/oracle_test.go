package train

import "math"

// oracle is the architecture in plain float64, token by token and without what
// the passes save: its loss is what gradients are held against.
type oracle struct {
	shape Shape
	lay   *layout
	w     []float64
}

func newOracle(t *Trainer) *oracle {
	o := &oracle{shape: t.cfg.Shape, lay: t.lay, w: make([]float64, len(t.w))}
	for i, v := range t.w {
		o.w[i] = float64(v)
	}
	return o
}

// matrix is the product of the matrix at a place with x.
func (o *oracle) matrix(at, rows int, x []float64) []float64 {
	y := make([]float64, rows)
	for i := range y {
		for j, v := range x {
			y[i] += o.w[at+i*len(x)+j] * v
		}
	}
	return y
}

func (o *oracle) norm(at int, x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+eps) * o.w[at+i]
	}
	return y
}

func (o *oracle) rotated(at int, x []float64, pos int) []float64 {
	y := o.norm(at, x)
	half := len(y) / 2
	for i := range half {
		angle := float64(pos) * math.Pow(theta, -2*float64(i)/float64(len(y)))
		sin, cos := math.Sincos(angle)
		y[i], y[half+i] = y[i]*cos-y[half+i]*sin, y[half+i]*cos+y[i]*sin
	}
	return y
}

func plus(x, y []float64) []float64 {
	z := make([]float64, len(x))
	for i := range z {
		z[i] = x[i] + y[i]
	}
	return z
}

// logits are those of every token of a sequence.
func (o *oracle) logits(ids []int32) [][]float64 {
	s := o.shape
	x := make([][]float64, len(ids))
	for t, id := range ids {
		x[t] = o.w[o.lay.embed+int(id)*s.Hidden:][:s.Hidden]
	}
	for _, l := range o.lay.layers {
		var keys, values [][][]float64 // by token and head
		for t := range x {
			qkv := o.matrix(l.qkv, s.qkv(), o.norm(l.norm1, x[t]))
			head := func(i int) []float64 { return qkv[i*s.HeadDim:][:s.HeadDim] }
			var k, v [][]float64
			for i := range s.KVHeads {
				k = append(k, o.rotated(l.knorm, head(s.Heads+i), t))
				v = append(v, head(s.Heads+s.KVHeads+i))
			}
			keys, values = append(keys, k), append(values, v)
			var out []float64
			for i := range s.Heads {
				out = append(out, attention(o.rotated(l.qnorm, head(i), t), keys, values, i/(s.Heads/s.KVHeads))...)
			}
			mid := plus(x[t], o.matrix(l.out, s.Hidden, out))
			gateUp := o.matrix(l.gateUp, 2*s.FFN, o.norm(l.norm2, mid))
			hidden := make([]float64, s.FFN)
			for i := range hidden {
				hidden[i] = gateUp[i] / (1 + math.Exp(-gateUp[i])) * gateUp[s.FFN+i]
			}
			x[t] = plus(mid, o.matrix(l.down, s.Hidden, hidden))
		}
	}
	out := make([][]float64, len(x))
	for t := range x {
		out[t] = o.matrix(o.lay.embed, s.Vocab, o.norm(o.lay.norm, x[t]))
	}
	return out
}

func attention(q []float64, keys, values [][][]float64, head int) []float64 {
	out, sum := make([]float64, len(q)), 0.0
	for t := range keys {
		score := 0.0
		for i, v := range q {
			score += v * keys[t][head][i]
		}
		e := math.Exp(score / math.Sqrt(float64(len(q))))
		sum += e
		for i, v := range values[t][head] {
			out[i] += e * v
		}
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// loss is the sum of the cross-entropies of what counts.
func (o *oracle) loss(examples []Example) (sum float64) {
	for _, e := range examples {
		logits := o.logits(e.IDs[:e.Tokens()])
		for t, l := range logits {
			if !e.Learn[t+1] {
				continue
			}
			z := 0.0
			for _, v := range l {
				z += math.Exp(v)
			}
			sum += math.Log(z) - l[e.IDs[t+1]]
		}
	}
	return sum
}
