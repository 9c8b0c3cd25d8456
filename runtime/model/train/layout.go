package train

import (
	"fmt"
	"math"
	"strings"

	"tokenrouter/kernels"
)

// span is where a tensor lies in the weights: rows x cols values, row by row, or
// a vector of cols values with rows 0.
type span struct {
	name       string // in Hugging Face's layout
	at         int
	rows, cols int
	inner      bool // a hidden matrix, for Muon; the rest is for Adam
}

func (s span) len() int { return max(s.rows, 1) * s.cols }

// layer is where the tensors of a layer begin. What is multiplied together lies
// together: queries, keys and values; gate and up.
type layer struct{ norm1, qkv, qnorm, knorm, out, norm2, gateUp, down int }

// layout is where everything lies in one vector of weights, and so in one of
// gradients.
type layout struct {
	spans       []span
	layers      []layer
	embed, norm int
	size        int
}

func newLayout(s Shape) *layout {
	l := &layout{}
	put := func(name string, rows, cols int, inner bool) (at int) {
		at = l.size
		l.spans = append(l.spans, span{name, at, rows, cols, inner})
		l.size += max(rows, 1) * cols
		return at
	}
	l.embed = put("model.embed_tokens.weight", s.Vocab, s.Hidden, false)
	for i := range s.Layers {
		name := func(n string) string { return fmt.Sprintf("model.layers.%d.%s.weight", i, n) }
		matrix := func(n string, rows, cols int) int { return put(name(n), rows, cols, true) }
		vector := func(n string, cols int) int { return put(name(n), 0, cols, false) }
		var y layer
		y.norm1 = vector("input_layernorm", s.Hidden)
		y.qkv = matrix("self_attn.q_proj", s.queries(), s.Hidden)
		matrix("self_attn.k_proj", s.KVHeads*s.HeadDim, s.Hidden)
		matrix("self_attn.v_proj", s.KVHeads*s.HeadDim, s.Hidden)
		y.qnorm = vector("self_attn.q_norm", s.HeadDim)
		y.knorm = vector("self_attn.k_norm", s.HeadDim)
		y.out = matrix("self_attn.o_proj", s.Hidden, s.queries())
		y.norm2 = vector("post_attention_layernorm", s.Hidden)
		y.gateUp = matrix("mlp.gate_proj", s.FFN, s.Hidden)
		matrix("mlp.up_proj", s.FFN, s.Hidden)
		y.down = matrix("mlp.down_proj", s.Hidden, s.FFN)
		l.layers = append(l.layers, y)
	}
	l.norm = put("model.norm.weight", 0, s.Hidden, false)
	return l
}

// embedScale is the standard deviation of a fresh embedding.
const embedScale = 0.02

// fill draws fresh weights: the embedding from N(0, 0.02^2), matrices from
// N(0, 1/inputs), those that write to the residual stream smaller by
// sqrt(2 layers) so that its size does not grow with depth (Radford et al. 2019,
// section 2.3), norms 1.
func (l *layout) fill(w []float32, s Shape, seed uint64) {
	r := random{state: seed}
	for _, t := range l.spans {
		scale := 1 / math.Sqrt(float64(t.cols))
		switch {
		case t.at == l.embed:
			scale = embedScale
		case strings.HasSuffix(t.name, "o_proj.weight") || strings.HasSuffix(t.name, "down_proj.weight"):
			scale /= math.Sqrt(float64(2 * s.Layers))
		}
		v := w[t.at:][:t.len()]
		for i := range v {
			if v[i] = 1; t.rows > 0 {
				v[i] = float32(r.normal() * scale)
			}
		}
	}
}

// random is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// uniform is in [0, 1).
func (r *random) uniform() float64 { return float64(r.next()>>11) / (1 << 53) }

// normal is Box and Muller's (1958), one of each pair.
func (r *random) normal() float64 {
	u, v := r.uniform(), r.uniform()
	_, cos := kernels.Sincos(2 * math.Pi * v)
	return math.Sqrt(-2*kernels.Ln(u+0x1p-60)) * cos
}
