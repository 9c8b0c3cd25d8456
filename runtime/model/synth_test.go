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
	"tokenrouter/runtime/model/family"
)

// odd is a shape in which nothing is a multiple of four: three query heads
// share a KV head, and the LM head is not the embedding.
var odd = model.Config{
	Family: "qwen3", Vocab: 431, Hidden: 10, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 6, FFN: 14,
	MaxPos: 90, Eps: 1e-6, Rope: family.Rope{Theta: 1000, Scale: 1}, QKNorm: true,
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
		if c.QKNorm {
			add(p+"self_attn.q_norm.weight", 1, 0.1, c.HeadDim)
			add(p+"self_attn.k_norm.weight", 1, 0.1, c.HeadDim)
		}
		add(p+"self_attn.q_proj.weight", 0, 0.4, q, d)
		add(p+"self_attn.k_proj.weight", 0, 0.4, kv, d)
		add(p+"self_attn.v_proj.weight", 0, 0.4, kv, d)
		add(p+"self_attn.o_proj.weight", 0, 0.2, d, q)
		add(p+"mlp.gate_proj.weight", 0, 0.4, c.FFN, d)
		add(p+"mlp.up_proj.weight", 0, 0.4, c.FFN, d)
		add(p+"mlp.down_proj.weight", 0, 0.3, d, c.FFN)
		if c.QKVBias {
			add(p+"self_attn.q_proj.bias", 0, 0.5, q)
			add(p+"self_attn.k_proj.bias", 0, 0.5, kv)
			add(p+"self_attn.v_proj.bias", 0, 0.5, kv)
		}
		if c.OBias {
			add(p+"self_attn.o_proj.bias", 0, 0.5, d)
		}
		if c.MLPBias {
			add(p+"mlp.gate_proj.bias", 0, 0.5, c.FFN)
			add(p+"mlp.up_proj.bias", 0, 0.5, c.FFN)
			add(p+"mlp.down_proj.bias", 0, 0.5, d)
		}
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
		"architectures": []string{map[string]string{"qwen3": "Qwen3ForCausalLM", "qwen2": "Qwen2ForCausalLM", "llama": "LlamaForCausalLM"}[c.Family]},
		"hidden_act":    "silu", "rope_scaling": nil, "attention_bias": c.OBias, "mlp_bias": c.MLPBias,
		"use_sliding_window": false, "tie_word_embeddings": c.Tied, "vocab_size": c.Vocab, "hidden_size": c.Hidden,
		"num_hidden_layers": c.Layers, "num_attention_heads": c.Heads, "num_key_value_heads": c.KVHeads, "head_dim": c.HeadDim,
		"intermediate_size": c.FFN, "max_position_embeddings": c.MaxPos, "rms_norm_eps": 1e-6, "rope_theta": c.Rope.Theta,
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
