package synth

import (
	"encoding/json"
	"fmt"
	"math"

	"tokenrouter/runtime/model/gguf"
)

// maxNewTokens is what the files recommend.
const maxNewTokens = 256

// fileTypes are the values of general.file_type.
var fileTypes = map[string]uint32{"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 7, "q4_k_m": 15, "bf16": 32}

// ggufMeta is a GGUF file's metadata, with the keys that llama.cpp's converter
// writes for the family.
func (s Shape) ggufMeta(format string, v *vocabulary) []gguf.Entry {
	f := families[s.Family]
	arch := f.gguf + "."
	meta := []gguf.Entry{
		{Key: "general.architecture", Value: f.gguf},
		{Key: "general.type", Value: "model"},
		{Key: "general.name", Value: s.title()},
		{Key: "general.description", Value: description},
		{Key: "general.file_type", Value: fileTypes[format]},
		{Key: "general.quantization_version", Value: uint32(2)},
		{Key: arch + "block_count", Value: uint32(s.Layers)},
		{Key: arch + "context_length", Value: uint32(s.MaxPos)},
		{Key: arch + "embedding_length", Value: uint32(s.Hidden)},
		{Key: arch + "feed_forward_length", Value: uint32(s.FFN)},
		{Key: arch + "attention.head_count", Value: uint32(s.Heads)},
		{Key: arch + "attention.head_count_kv", Value: uint32(s.KVHeads)},
		{Key: arch + "attention.key_length", Value: uint32(s.HeadDim)},
		{Key: arch + "attention.value_length", Value: uint32(s.HeadDim)},
		{Key: arch + "attention.layer_norm_rms_epsilon", Value: s.Eps},
		{Key: arch + "rope.freq_base", Value: float32(s.RopeTheta)},
	}
	if f.permuted {
		meta = append(meta,
			gguf.Entry{Key: arch + "rope.dimension_count", Value: uint32(s.HeadDim)},
			gguf.Entry{Key: arch + "vocab_size", Value: uint32(s.Vocab)})
	}
	// The scaling of Llama 3 stands in the tensor rope_freqs.weight.
	if s.Rope.Kind == "linear" || s.Rope.Kind == "yarn" {
		meta = append(meta,
			gguf.Entry{Key: arch + "rope.scaling.type", Value: s.Rope.Kind},
			gguf.Entry{Key: arch + "rope.scaling.factor", Value: float32(s.Rope.Factor)})
		if s.Rope.Original > 0 {
			meta = append(meta, gguf.Entry{Key: arch + "rope.scaling.original_context_length", Value: uint32(s.Rope.Original)})
		}
	}
	padded := &vocabulary{tokens: append([]string{}, v.tokens...), types: append([]int32{}, v.types...)}
	padded.fill(s.Vocab)
	meta = append(meta,
		gguf.Entry{Key: "tokenizer.ggml.model", Value: "gpt2"},
		gguf.Entry{Key: "tokenizer.ggml.pre", Value: "qwen2"},
		gguf.Entry{Key: "tokenizer.ggml.tokens", Value: padded.tokens},
		gguf.Entry{Key: "tokenizer.ggml.token_type", Value: padded.types},
		gguf.Entry{Key: "tokenizer.ggml.merges", Value: v.merges},
		gguf.Entry{Key: "tokenizer.ggml.eos_token_id", Value: uint32(v.eos)},
		gguf.Entry{Key: "tokenizer.ggml.add_bos_token", Value: false})
	if v.pad >= 0 {
		meta = append(meta, gguf.Entry{Key: "tokenizer.ggml.padding_token_id", Value: uint32(v.pad)})
	}
	if v.template != "" {
		meta = append(meta, gguf.Entry{Key: "tokenizer.chat_template", Value: v.template})
	}
	return meta
}

const description = "random weights: for measuring, its answers mean nothing"

func (s Shape) title() string { return "random " + s.Name }

// ropeFactors are the divisors of the rotary frequencies by the rule of Llama
// 3, as a GGUF file has them: 1 for wavelengths below original/high, the factor
// above original/low, between them by the position of original/wavelength. Nil
// for another scaling.
func (s Shape) ropeFactors() []float32 {
	if s.Rope.Kind != "llama3" {
		return nil
	}
	r, out := s.Rope, make([]float32, s.HeadDim/2)
	for i := range out {
		wave := 2 * math.Pi * math.Pow(s.RopeTheta, 2*float64(i)/float64(s.HeadDim))
		turns := float64(r.Original) / wave
		smooth := min(max((turns-r.Low)/(r.High-r.Low), 0), 1)
		out[i] = float32(1 / ((1-smooth)/r.Factor + smooth))
	}
	return out
}

// folderFiles are config.json and generation_config.json.
func (s Shape) folderFiles(format string, v *vocabulary) (map[string][]byte, error) {
	f := families[s.Family]
	config := map[string]any{
		"architectures": []string{f.architecture}, "model_type": s.Family, "_name_or_path": s.title(),
		"vocab_size": s.Vocab, "hidden_size": s.Hidden, "num_hidden_layers": s.Layers,
		"num_attention_heads": s.Heads, "num_key_value_heads": s.KVHeads, "intermediate_size": s.FFN,
		"max_position_embeddings": s.MaxPos, "rms_norm_eps": s.Eps, "rope_theta": s.RopeTheta, "rope_scaling": s.ropeScaling(),
		"hidden_act": "silu", "attention_dropout": 0.0, "tie_word_embeddings": s.Tied, "use_cache": true,
		"eos_token_id": v.eos, "torch_dtype": map[string]string{"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[format],
	}
	switch s.Family {
	case "qwen2", "qwen3":
		config["use_sliding_window"], config["sliding_window"] = false, nil
	case "llama":
		config["attention_bias"], config["mlp_bias"], config["pretraining_tp"] = false, false, 1
	}
	if s.Family == "qwen3" {
		config["attention_bias"] = false
	}
	if s.Family != "qwen2" || s.HeadDim*s.Heads != s.Hidden {
		config["head_dim"] = s.HeadDim
	}
	generation := map[string]any{"do_sample": false, "eos_token_id": v.eos, "max_new_tokens": maxNewTokens}
	if v.pad >= 0 {
		config["pad_token_id"], generation["pad_token_id"] = v.pad, v.pad
	}
	files := map[string][]byte{}
	for name, content := range map[string]any{"config.json": config, "generation_config.json": generation} {
		b, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = append(b, '\n')
	}
	return files, nil
}

// ropeScaling is the entry of config.json, nil for none.
func (s Shape) ropeScaling() map[string]any {
	r := s.Rope
	if r.Kind == "" {
		return nil
	}
	out := map[string]any{"rope_type": r.Kind, "factor": r.Factor}
	if r.Original > 0 {
		out["original_max_position_embeddings"] = r.Original
	}
	if r.Kind == "llama3" {
		out["low_freq_factor"], out["high_freq_factor"] = r.Low, r.High
	}
	return out
}
