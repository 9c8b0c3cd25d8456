package family_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tensor"
)

// metadata is a Metadata made of plain values.
type metadata map[string]any

func get[T any](m metadata, key string) (T, bool) {
	v, ok := m[key].(T)
	return v, ok
}

func (m metadata) Keys() []string                    { return slices.Collect(maps.Keys(m)) }
func (m metadata) Float(key string) (float64, bool)  { return get[float64](m, key) }
func (m metadata) Bool(key string) (bool, bool)      { return get[bool](m, key) }
func (m metadata) String(key string) (string, bool)  { return get[string](m, key) }
func (m metadata) Int32s(key string) ([]int32, bool) { return get[[]int32](m, key) }
func (m metadata) Uint(key string) (uint64, bool) {
	n, ok := get[int](m, key)
	return uint64(n), ok && n >= 0
}

// shapes is a Store that knows tensors by their shape only.
type shapes map[string][]int

func (s shapes) Tensor(name string) (tensor.Tensor, bool) {
	shape, ok := s[name]
	return tensor.Tensor{Name: name, Shape: shape}, ok
}
func (s shapes) Names() []string       { return slices.Sorted(maps.Keys(s)) }
func (s shapes) Release(tensor.Tensor) {}
func (s shapes) Close() error          { return nil }

// llama32 is what llama.cpp's converter writes for Llama-3.2-1B.
func llama32() (metadata, shapes) {
	return metadata{
		"general.architecture": "llama", "llama.block_count": 16, "llama.context_length": 131072, "llama.embedding_length": 2048,
		"llama.feed_forward_length": 8192, "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8,
		"llama.rope.freq_base": 500000.0, "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.attention.key_length": 64,
		"llama.attention.value_length": 64, "llama.vocab_size": 128256, "llama.rope.dimension_count": 64,
	}, shapes{"token_embd.weight": {128256, 2048}, "rope_freqs.weight": {32}}
}

func TestFromGGUF(t *testing.T) {
	llama := family.Config{
		Family: "llama", Vocab: 128256, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
		MaxPos: 131072, Eps: 1e-5, Rope: family.Rope{Theta: 5e5, Scale: 1}, Tied: true,
	}
	for name, c := range map[string]struct {
		meta    metadata
		tensors shapes
		want    func(c *family.Config)
	}{
		"as written":   {},
		"head":         {tensors: shapes{"output.weight": {128256, 2048}}, want: func(c *family.Config) { c.Tied = false }},
		"biases":       {tensors: shapes{"blk.0.attn_q.bias": {2048}}, want: func(c *family.Config) { c.QKVBias = true }},
		"more biases":  {tensors: shapes{"blk.0.attn_output.bias": {2048}, "blk.0.ffn_down.bias": {2048}}, want: func(c *family.Config) { c.OBias, c.MLPBias = true, true }},
		"no head size": {meta: metadata{"llama.attention.key_length": nil, "llama.attention.value_length": nil}},
		"lists":        {meta: metadata{"llama.attention.head_count_kv": []int32{8, 8, 8}}},
		"whole eps":    {meta: metadata{"llama.rope.freq_base": 500000}},
		"no KV heads":  {meta: metadata{"llama.attention.head_count_kv": nil}, want: func(c *family.Config) { c.KVHeads = 32 }},
		"no base":      {meta: metadata{"llama.rope.freq_base": nil}, want: func(c *family.Config) { c.Rope.Theta = 10000 }},
		"factor alone": {meta: metadata{"llama.rope.scaling.factor": 4.0}, want: func(c *family.Config) { c.Rope.Kind, c.Rope.Factor = family.Linear, 4 }},
		"factor 1":     {meta: metadata{"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 1.0}},
		"yarn": {
			meta: metadata{"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0, "llama.rope.scaling.original_context_length": 40960, "llama.rope.scaling.attn_factor": 0.5},
			want: func(c *family.Config) {
				c.MaxPos = 163840
				c.Rope = family.Rope{Theta: 5e5, Kind: family.Yarn, Factor: 4, Original: 40960, Fast: 32, Slow: 1, Scale: 1.1386294361119891 / 2}
			},
		},
		"wide window": {meta: metadata{"llama.attention.sliding_window": 131072}},
	} {
		m, s := llama32()
		replace(m, c.meta)
		maps.Copy(s, c.tensors)
		want := llama
		if c.want != nil {
			c.want(&want)
		}
		if got, err := family.FromGGUF(m, s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// replace changes keys; nil removes one.
func replace(m, change metadata) {
	for k, v := range change {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
}

func TestGGUFRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change metadata
		want   string
	}{
		"architecture":    {metadata{"general.architecture": "mamba"}, `"mamba" is not supported: choose a model of qwen3, qwen2, llama`},
		"no architecture": {metadata{"general.architecture": nil}, `"" is not supported`},
		"kind":            {metadata{"general.architecture": 7}, "general.architecture is not a string"},
		"experts":         {metadata{"llama.expert_count": 8}, "expert_count is 8"},
		"window":          {metadata{"llama.attention.sliding_window": 4096}, "sliding_window is 4096"},
		"values":          {metadata{"llama.attention.value_length": 32}, "value_length is 32"},
		"partial":         {metadata{"llama.rope.dimension_count": 32}, "dimension_count is 32"},
		"not causal":      {metadata{"llama.attention.causal": false}, "causal"},
		"scaled logits":   {metadata{"llama.logit_scale": 0.0625}, "logit_scale is 0.0625"},
		"split":           {metadata{"split.count": 3}, "gguf-split --merge"},
		"uneven layers":   {metadata{"llama.attention.head_count_kv": []int32{8, 0, 8}}, "differs from layer to layer"},
		"no list":         {metadata{"llama.block_count": []int32{}}, "block_count is not a number"},
		"text":            {metadata{"llama.rope.freq_base": "x"}, "freq_base is not a number"},
		"scaling":         {metadata{"llama.rope.scaling.type": "longrope"}, `"longrope", supported are`},
		"llama3":          {metadata{"llama.rope.scaling.type": "llama3"}, "convert the model again"},
		"yarn, no factor": {metadata{"llama.rope.scaling.type": "yarn"}, "rope.scaling.factor is 0"},
		"layers":          {metadata{"llama.block_count": 1 << 50}, "llama.block_count is 1099511627776"},
		"no layers":       {metadata{"llama.block_count": nil}, "llama.block_count is 0"},
		"negative":        {metadata{"llama.feed_forward_length": -1}, "feed_forward_length is not a number from 0 on"},
	} {
		m, s := llama32()
		replace(m, c.change)
		if _, err := family.FromGGUF(m, s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	m, s := llama32()
	delete(s, "token_embd.weight")
	if _, err := family.FromGGUF(m, s); err == nil || !strings.Contains(err.Error(), "no matrix token_embd.weight") {
		t.Errorf("without an embedding: %v", err)
	}
}
