package model_test

import (
	"fmt"
	"math"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/family"
	weights "tokenrouter/runtime/model/tensor"
)

// exact computes a model in float64, straight from the formulas of the papers
// and from the numbers in the file: RMSNorm (Zhang and Sennrich 2019), rotary
// positions (Su et al. 2021), grouped-query attention (Ainslie et al. 2023),
// SwiGLU (Shazeer 2020). It shares nothing with the forward pass but the shape.
type exact struct {
	t     testing.TB
	c     model.Config
	store weights.Store
	names map[string]string
	// paired says that the two values that turn together are neighbours, as the
	// rows of queries and keys lie in GGUF files of Llama.
	paired bool

	cache        map[string][]float64
	keys, values [][][]float64 // [layer][position]
}

// Names of the tensors in the two kinds of files, %d is the layer.
var (
	namesHF = map[string]string{
		"embed": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight",
		"norm1": "model.layers.%d.input_layernorm.weight", "norm2": "model.layers.%d.post_attention_layernorm.weight",
		"q": "model.layers.%d.self_attn.q_proj.weight", "k": "model.layers.%d.self_attn.k_proj.weight",
		"v": "model.layers.%d.self_attn.v_proj.weight", "o": "model.layers.%d.self_attn.o_proj.weight",
		"q bias": "model.layers.%d.self_attn.q_proj.bias", "k bias": "model.layers.%d.self_attn.k_proj.bias",
		"v bias": "model.layers.%d.self_attn.v_proj.bias", "o bias": "model.layers.%d.self_attn.o_proj.bias",
		"q norm": "model.layers.%d.self_attn.q_norm.weight", "k norm": "model.layers.%d.self_attn.k_norm.weight",
		"gate": "model.layers.%d.mlp.gate_proj.weight", "up": "model.layers.%d.mlp.up_proj.weight",
		"down":      "model.layers.%d.mlp.down_proj.weight",
		"gate bias": "model.layers.%d.mlp.gate_proj.bias", "up bias": "model.layers.%d.mlp.up_proj.bias",
		"down bias": "model.layers.%d.mlp.down_proj.bias",
	}
	namesGGUF = map[string]string{
		"embed": "token_embd.weight", "norm": "output_norm.weight", "head": "output.weight",
		"angles": "rope_freqs.weight",
		"norm1":  "blk.%d.attn_norm.weight", "norm2": "blk.%d.ffn_norm.weight",
		"q": "blk.%d.attn_q.weight", "k": "blk.%d.attn_k.weight", "v": "blk.%d.attn_v.weight", "o": "blk.%d.attn_output.weight",
		"q bias": "blk.%d.attn_q.bias", "k bias": "blk.%d.attn_k.bias", "v bias": "blk.%d.attn_v.bias", "o bias": "blk.%d.attn_output.bias",
		"q norm": "blk.%d.attn_q_norm.weight", "k norm": "blk.%d.attn_k_norm.weight",
		"gate": "blk.%d.ffn_gate.weight", "up": "blk.%d.ffn_up.weight", "down": "blk.%d.ffn_down.weight",
		"gate bias": "blk.%d.ffn_gate.bias", "up bias": "blk.%d.ffn_up.bias", "down bias": "blk.%d.ffn_down.bias",
	}
)

// get is a tensor's numbers, nil if the file has none of that name.
func (e *exact) get(role string, layer int) []float64 {
	name := e.names[role]
	if layer >= 0 {
		name = fmt.Sprintf(name, layer)
	}
	if v, ok := e.cache[name]; ok {
		return v
	}
	t, ok := e.store.Tensor(name)
	if !ok {
		return nil
	}
	f := make([]float32, t.Len())
	weights.Dequantize(t.Type, f, t.Data)
	v := make([]float64, len(f))
	for i, x := range f {
		v[i] = float64(x)
	}
	e.cache[name] = v
	return v
}

// times is a matrix times a column, with the bias that the file may have.
func (e *exact) times(role string, layer int, x []float64) []float64 {
	w := e.get(role, layer)
	if len(w) == 0 || len(w)%len(x) != 0 {
		e.t.Fatalf("%s of layer %d has %d numbers, the input %d", role, layer, len(w), len(x))
	}
	y := make([]float64, len(w)/len(x))
	for r := range y {
		for k, v := range w[r*len(x):][:len(x)] {
			y[r] += v * x[k]
		}
	}
	if layer >= 0 {
		for i, b := range e.get(role+" bias", layer) {
			y[i] += b
		}
	}
	return y
}

// rms is x / sqrt(mean(x*x) + eps) * w.
func (e *exact) rms(w, x []float64) []float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(s/float64(len(x))+float64(e.c.Eps)) * w[i]
	}
	return y
}

// angle is how far pair i turns from one position to the next, with the scalings
// as Meta's and the YaRN paper's reference code have them. GGUF files of Llama 3
// hold theirs as a divisor of each pair.
func (e *exact) angle(i int) (angle, scale float64) {
	r, dim := e.c.Rope, float64(e.c.HeadDim)
	angle = 1 / math.Pow(r.Theta, float64(2*i)/dim)
	if f := e.get("angles", -1); f != nil {
		return angle / f[i], 1
	}
	wave := 2 * math.Pi / angle
	switch r.Kind {
	case family.Linear:
		return angle / r.Factor, 1
	case family.Llama3:
		long, short := float64(r.Original)/r.Low, float64(r.Original)/r.High
		switch {
		case wave > long:
			return angle / r.Factor, 1
		case wave < short:
			return angle, 1
		}
		smooth := (float64(r.Original)/wave - r.Low) / (r.High - r.Low)
		return (1-smooth)*angle/r.Factor + smooth*angle, 1
	case family.Yarn:
		pair := func(turns float64) float64 {
			return dim * math.Log(float64(r.Original)/(turns*2*math.Pi)) / (2 * math.Log(r.Theta))
		}
		low, high := math.Max(math.Floor(pair(r.Fast)), 0), math.Min(math.Ceil(pair(r.Slow)), dim-1)
		if low == high {
			high += 0.001
		}
		ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
		return angle/r.Factor*ramp + angle*(1-ramp), r.Scale
	}
	return angle, 1
}

func (e *exact) rotate(x []float64, pos int) {
	half := len(x) / 2
	for i := range half {
		a, b := i, i+half
		if e.paired {
			a, b = 2*i, 2*i+1
		}
		angle, scale := e.angle(i)
		s, c := math.Sincos(float64(pos) * angle)
		x[a], x[b] = scale*(x[a]*c-x[b]*s), scale*(x[b]*c+x[a]*s)
	}
}

// heads splits queries or keys, normalises and rotates them.
func (e *exact) heads(x []float64, norm []float64, pos int) [][]float64 {
	var out [][]float64
	for ; len(x) > 0; x = x[e.c.HeadDim:] {
		head := x[:e.c.HeadDim]
		if norm != nil {
			head = e.rms(norm, head)
		}
		e.rotate(head, pos)
		out = append(out, head)
	}
	return out
}

// attend is the attention of layer l over what was stored so far.
func (e *exact) attend(l int, queries [][]float64) []float64 {
	dim, group := e.c.HeadDim, e.c.Heads/e.c.KVHeads
	var out []float64
	for h, q := range queries {
		from := h / group * dim
		top, score := math.Inf(-1), make([]float64, len(e.keys[l]))
		for p, k := range e.keys[l] {
			for i, v := range q {
				score[p] += v * k[from+i]
			}
			score[p] /= math.Sqrt(float64(dim))
			top = math.Max(top, score[p])
		}
		var sum float64
		head := make([]float64, dim)
		for p, s := range score {
			w := math.Exp(s - top)
			sum += w
			for i := range head {
				head[i] += w * e.values[l][p][from+i]
			}
		}
		for i := range head {
			head[i] /= sum
		}
		out = append(out, head...)
	}
	return out
}

// feed computes the next position.
func (e *exact) feed(id int32) (logits, hidden []float64) {
	if e.keys == nil {
		e.keys, e.values = make([][][]float64, e.c.Layers), make([][][]float64, e.c.Layers)
	}
	pos := len(e.keys[0])
	x := append([]float64(nil), e.get("embed", -1)[int(id)*e.c.Hidden:][:e.c.Hidden]...)
	add := func(y []float64) {
		for i, v := range y {
			x[i] += v
		}
	}
	for l := range e.c.Layers {
		y := e.rms(e.get("norm1", l), x)
		var key []float64
		for _, k := range e.heads(e.times("k", l, y), e.get("k norm", l), pos) {
			key = append(key, k...)
		}
		e.keys[l], e.values[l] = append(e.keys[l], key), append(e.values[l], e.times("v", l, y))
		add(e.times("o", l, e.attend(l, e.heads(e.times("q", l, y), e.get("q norm", l), pos))))
		y = e.rms(e.get("norm2", l), x)
		gate, up := e.times("gate", l, y), e.times("up", l, y)
		for i, g := range gate {
			up[i] *= g / (1 + math.Exp(-g))
		}
		add(e.times("down", l, up))
	}
	hidden = e.rms(e.get("norm", -1), x)
	if e.get("head", -1) == nil {
		return e.times("embed", -1, hidden), hidden
	}
	return e.times("head", -1, hidden), hidden
}

// off is the norm of the difference over the norm of what is wanted.
func off(got []float32, want []float64) float64 {
	var diff, size float64
	for i, w := range want {
		diff += (float64(got[i]) - w) * (float64(got[i]) - w)
		size += w * w
	}
	return math.Sqrt(diff / size)
}
