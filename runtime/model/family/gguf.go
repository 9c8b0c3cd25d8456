package family

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/model/tensor"
)

// Metadata is what a GGUF file says about itself. The getters accept every
// number type of the format that holds the value exactly.
type Metadata interface {
	Keys() []string
	Uint(key string) (uint64, bool)
	Float(key string) (float64, bool)
	Bool(key string) (bool, bool)
	String(key string) (string, bool)
	Int32s(key string) ([]int32, bool)
}

// RopeFactors is the tensor of a GGUF file by which the angles of the pairs are
// divided (HeadDim/2 numbers), where it has one: llama.cpp's converter works the
// scaling of Llama 3 out beforehand.
const RopeFactors = "rope_freqs.weight"

// ggufKeys are the keys of a family's GGUF files.
func ggufKeys(p string) *keys {
	p += "."
	scaling := p + "rope.scaling."
	return &keys{
		file: "gguf metadata", vocab: "rows of token_embd.weight", hidden: p + "embedding_length", layers: p + "block_count",
		heads: p + "attention.head_count", kvHeads: p + "attention.head_count_kv", headDim: p + "attention.key_length",
		ffn: p + "feed_forward_length", maxPos: p + "context_length", eps: p + "attention.layer_norm_rms_epsilon",
		theta: p + "rope.freq_base", scaling: scaling + "type", factor: scaling + "factor",
		low: "low_freq_factor", high: "high_freq_factor", // of config.json only
		original: scaling + "original_context_length", fast: scaling + "yarn_beta_fast", slow: scaling + "yarn_beta_slow",
		attention: scaling + "attn_factor",
	}
}

// reader reads metadata until the first error.
type reader struct {
	m   Metadata
	k   *keys
	has map[string]bool
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(r.k.file+": "+format, args...)
	}
}

// size reads a number, or a list of one number a layer where all are equal.
func (r *reader) size(key string, missing int) int {
	if !r.has[key] {
		return missing
	}
	if v, ok := r.m.Uint(key); ok {
		return int(min(v, 1<<40))
	}
	list, ok := r.m.Int32s(key)
	switch {
	case !ok || len(list) == 0:
		r.fail("%s is not a number from 0 on: the file is damaged", key)
		return missing
	case slices.ContainsFunc(list, func(n int32) bool { return n != list[0] }):
		r.fail("%s differs from layer to layer, which is not supported: choose a model with equal layers", key)
	}
	return int(list[0])
}

func (r *reader) float(key string, missing float64) float64 {
	if !r.has[key] {
		return missing
	}
	v, ok := r.m.Float(key)
	if !ok {
		u, whole := r.m.Uint(key)
		if v = float64(u); !whole {
			r.fail("%s is not a number: the file is damaged", key)
		}
	}
	return v
}

func (r *reader) text(key string) string {
	if !r.has[key] {
		return ""
	}
	v, ok := r.m.String(key)
	if !ok {
		r.fail("%s is not a string: the file is damaged", key)
	}
	return v
}

// FromGGUF reads and checks the shape of a model from a GGUF file: its
// metadata, and from its tensors what the format has no key for.
func FromGGUF(m Metadata, tensors tensor.Store) (Config, error) {
	r := &reader{m: m, k: ggufKeys("general"), has: map[string]bool{}}
	for _, k := range m.Keys() {
		r.has[k] = true
	}
	name := r.text("general.architecture")
	if r.err != nil {
		return Config{}, r.err
	}
	fam, err := find(r.k.file, name, func(f *family) string { return f.name })
	if err != nil {
		return Config{}, err
	}
	r.k = ggufKeys(name)
	embed, ok := tensors.Tensor(Name(GGUF, Embed, 0))
	if !ok || len(embed.Shape) != 2 {
		return Config{}, fmt.Errorf("gguf: there is no matrix %s: the file is damaged, or holds no language model", Name(GGUF, Embed, 0))
	}
	has := func(role Role) bool {
		_, ok := tensors.Tensor(Name(GGUF, role, 0))
		return ok
	}
	heads := r.size(r.k.heads, 0)
	c := Config{
		Family: name,
		Vocab:  embed.Shape[0], Hidden: r.size(r.k.hidden, 0), Layers: r.size(r.k.layers, 0),
		Heads: heads, KVHeads: r.size(r.k.kvHeads, heads), HeadDim: r.size(r.k.headDim, 0),
		FFN: r.size(r.k.ffn, 0), MaxPos: r.size(r.k.maxPos, 0), Eps: float32(r.float(r.k.eps, 0)),
		Tied: !has(Head), QKNorm: fam.qkNorm,
		QKVBias: fam.qkvBias || has(QBias), OBias: has(OBias), MLPBias: has(DownBias),
	}
	if !r.has[r.k.headDim] && heads > 0 && c.Hidden%heads == 0 {
		c.HeadDim = c.Hidden / heads
	}
	c.Rope = r.rope(c.MaxPos)
	r.refuse(&c)
	if r.err != nil {
		return Config{}, r.err
	}
	if err := c.check(r.k); err != nil {
		return Config{}, err
	}
	c.stretch()
	return c, nil
}

// rope reads the rotary positions as llama.cpp does: a factor without a type is
// linear, and its YaRN multiplies a factor of the file's onto the paper's.
func (r *reader) rope(context int) Rope {
	rope := Rope{Theta: r.float(r.k.theta, 10000), Scale: 1}
	factor := r.float(r.k.factor, 0)
	name := r.text(r.k.scaling)
	if name == "" && factor != 0 {
		name = string(Linear)
	}
	var err error
	if rope.Kind, err = kind(r.k, name); err != nil && r.err == nil {
		r.err = err
	}
	switch {
	case rope.Kind == Llama3:
		r.fail("%s is llama3, which GGUF has no keys for: convert the model again", r.k.scaling)
	case rope.Kind == Linear && (factor == 0 || factor == 1):
		rope.Kind = Unscaled
	case rope.Kind != Unscaled:
		rope.Factor = factor
	}
	if rope.Kind == Yarn {
		rope.Original = r.size(r.k.original, context)
		rope.Fast, rope.Slow = r.float(r.k.fast, 32), r.float(r.k.slow, 1)
		rope.Scale = yarnScale(factor, 1) * r.float(r.k.attention, 1)
	}
	return rope
}

// refuse names what would change the arithmetic and is not implemented.
func (r *reader) refuse(c *Config) {
	p := c.Family + "."
	if n := r.size(p+"expert_count", 0); n > 0 {
		r.fail("%sexpert_count is %d, mixtures of experts are not supported: choose a dense model", p, n)
	}
	if n := r.size(p+"attention.sliding_window", 0); n > 0 && n < c.MaxPos {
		r.fail("%sattention.sliding_window is %d, which is not supported: choose a model with full attention", p, n)
	}
	if n := r.size(p+"attention.value_length", c.HeadDim); n != c.HeadDim {
		r.fail("%sattention.value_length is %d and %s is %d, they must be equal: choose another model", p, n, r.k.headDim, c.HeadDim)
	}
	if n := r.size(p+"rope.dimension_count", c.HeadDim); n != c.HeadDim {
		r.fail("%srope.dimension_count is %d, heads have %d values: choose a model that rotates whole heads", p, n, c.HeadDim)
	}
	if v, ok := r.m.Bool(p + "attention.causal"); ok && !v {
		r.fail("%sattention.causal is false: this is no language model that writes text", p)
	}
	for _, key := range []string{
		"logit_scale", "embedding_scale", "residual_scale", "attention.scale", "attention.clamp_kqv",
		"attn_logit_softcapping", "final_logit_softcapping", "rope.scaling.yarn_log_multiplier", "rope.scaling.alpha",
	} {
		if v := r.float(p+key, 0); v != 0 && v != 1 {
			r.fail("%s%s is %v, which is not supported: choose another model", p, key, v)
		}
	}
	if n := r.size("split.count", 0); n > 1 {
		r.fail("split.count is %d: the model is in several files, join them with gguf-split --merge", n)
	}
}
