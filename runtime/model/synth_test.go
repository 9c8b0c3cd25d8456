package model_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"tokenrouter/runtime/model"
)

// odd is a shape in which nothing is a multiple of four: three query heads
// share a KV head, and the LM head is not the embedding.
var odd = model.Config{
	Vocab: 431, Hidden: 10, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 6, FFN: 14,
	MaxPos: 90, Eps: 1e-6, RopeTheta: 1000, Tied: false,
}

// tensors makes random weights for a shape, by their name in the file.
func tensors(c model.Config, seed uint64) map[string]tensor {
	r := rand.New(rand.NewPCG(seed, 0))
	out := map[string]tensor{}
	add := func(name string, mean, dev float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(mean + dev*r.NormFloat64())
		}
		out[name] = tensor{shape, v}
	}
	d, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	add("model.embed_tokens.weight", 0, 1, c.Vocab, d)
	add("model.norm.weight", 1, 0.1, d)
	if !c.Tied {
		add("lm_head.weight", 0, 0.5, c.Vocab, d)
	}
	for i := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		add(p+"input_layernorm.weight", 1, 0.1, d)
		add(p+"post_attention_layernorm.weight", 1, 0.1, d)
		add(p+"self_attn.q_norm.weight", 1, 0.1, c.HeadDim)
		add(p+"self_attn.k_norm.weight", 1, 0.1, c.HeadDim)
		add(p+"self_attn.q_proj.weight", 0, 0.4, q, d)
		add(p+"self_attn.k_proj.weight", 0, 0.4, kv, d)
		add(p+"self_attn.v_proj.weight", 0, 0.4, kv, d)
		add(p+"self_attn.o_proj.weight", 0, 0.2, d, q)
		add(p+"mlp.gate_proj.weight", 0, 0.4, c.FFN, d)
		add(p+"mlp.up_proj.weight", 0, 0.4, c.FFN, d)
		add(p+"mlp.down_proj.weight", 0, 0.3, d, c.FFN)
	}
	return out
}

type tensor struct {
	shape []int
	data  []float32
}

// encode writes tensors as a safetensors file of F32.
func encode(t testing.TB, ts map[string]tensor) []byte {
	t.Helper()
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	head, names := map[string]entry{}, make([]string, 0, len(ts))
	for n := range ts {
		names = append(names, n)
	}
	slices.Sort(names)
	var data []byte
	for _, n := range names {
		from := len(data)
		for _, v := range ts[n].data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		head[n] = entry{"F32", ts[n].shape, [2]int{from, len(data)}}
	}
	h, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), data...)
}

// configJSON is c as config.json has it, with some keys replaced.
func configJSON(t testing.TB, c model.Config, change map[string]any) []byte {
	t.Helper()
	f := map[string]any{
		"architectures": []string{model.Architecture}, "hidden_act": "silu", "rope_scaling": nil, "attention_bias": false,
		"use_sliding_window": false, "tie_word_embeddings": c.Tied, "vocab_size": c.Vocab, "hidden_size": c.Hidden,
		"num_hidden_layers": c.Layers, "num_attention_heads": c.Heads, "num_key_value_heads": c.KVHeads, "head_dim": c.HeadDim,
		"intermediate_size": c.FFN, "max_position_embeddings": c.MaxPos, "rms_norm_eps": 1e-6, "rope_theta": c.RopeTheta,
		"eos_token_id": []int{419, 417},
	}
	for k, v := range change {
		f[k] = v
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// folder is a model's folder in memory, without generation_config.json.
func folder(t testing.TB, c model.Config, ts map[string]tensor) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{
		"config.json":       {Data: configJSON(t, c, nil)},
		"model.safetensors": {Data: encode(t, ts)},
	}
	for _, n := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile("tiny/tokenizer/" + n)
		if err != nil {
			t.Fatal(err)
		}
		fsys[n] = &fstest.MapFile{Data: b}
	}
	return fsys
}

func loadOdd(t testing.TB) (*model.Model, map[string]tensor) {
	t.Helper()
	ts := tensors(odd, 1)
	m, err := model.Load(folder(t, odd, ts), "odd")
	if err != nil {
		t.Fatal(err)
	}
	return m, ts
}

// oracle computes the logits and the final hidden state after every token in
// float64, straight from the architecture's formulas.
func oracle(c model.Config, ts map[string]tensor, ids []int32) (logits, hidden [][]float64) {
	mat := func(name string, x []float64) []float64 {
		w := ts[name]
		y := make([]float64, w.shape[0])
		for r := range y {
			for k, v := range x {
				y[r] += float64(w.data[r*len(x)+k]) * v
			}
		}
		return y
	}
	norm := func(name string, x []float64) []float64 {
		var s float64
		for _, v := range x {
			s += v * v
		}
		inv := 1 / math.Sqrt(s/float64(len(x))+1e-6)
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = v * inv * float64(ts[name].data[i])
		}
		return y
	}
	rotate := func(x []float64, pos int) {
		h := len(x) / 2
		for i := range h {
			s, co := math.Sincos(float64(pos) * math.Pow(c.RopeTheta, -2*float64(i)/float64(len(x))))
			x[i], x[i+h] = x[i]*co-x[i+h]*s, x[i+h]*co+x[i]*s
		}
	}
	dim := c.HeadDim
	keys, values := make([][][]float64, c.Layers), make([][][]float64, c.Layers)
	for pos, id := range ids {
		x := make([]float64, c.Hidden)
		for i := range x {
			x[i] = float64(ts["model.embed_tokens.weight"].data[int(id)*c.Hidden+i])
		}
		for l := range c.Layers {
			p := fmt.Sprintf("model.layers.%d.", l)
			y := norm(p+"input_layernorm.weight", x)
			q, k := mat(p+"self_attn.q_proj.weight", y), mat(p+"self_attn.k_proj.weight", y)
			for h := range c.KVHeads {
				head := norm(p+"self_attn.k_norm.weight", k[h*dim:][:dim])
				rotate(head, pos)
				copy(k[h*dim:], head)
			}
			keys[l], values[l] = append(keys[l], k), append(values[l], mat(p+"self_attn.v_proj.weight", y))
			att := make([]float64, len(q))
			for h := range c.Heads {
				head := norm(p+"self_attn.q_norm.weight", q[h*dim:][:dim])
				rotate(head, pos)
				g := h / (c.Heads / c.KVHeads) * dim
				w, sum := make([]float64, pos+1), 0.0
				for j := range w {
					for i, v := range head {
						w[j] += v * keys[l][j][g+i] / math.Sqrt(float64(dim))
					}
					w[j] = math.Exp(w[j])
					sum += w[j]
				}
				for j := range w {
					for i := range dim {
						att[h*dim+i] += w[j] / sum * values[l][j][g+i]
					}
				}
			}
			for i, v := range mat(p+"self_attn.o_proj.weight", att) {
				x[i] += v
			}
			y = norm(p+"post_attention_layernorm.weight", x)
			gate, up := mat(p+"mlp.gate_proj.weight", y), mat(p+"mlp.up_proj.weight", y)
			for i, v := range gate {
				gate[i] = v / (1 + math.Exp(-v)) * up[i]
			}
			for i, v := range mat(p+"mlp.down_proj.weight", gate) {
				x[i] += v
			}
		}
		h := norm("model.norm.weight", x)
		hidden = append(hidden, h)
		logits = append(logits, mat("lm_head.weight", h))
	}
	return logits, hidden
}
