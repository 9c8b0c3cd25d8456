package family_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model/family"
)

// The shapes of published checkpoints, as their config.json has them.
var published = map[string]string{
	"Qwen3-0.6B": `{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151645,
		"head_dim":128,"hidden_act":"silu","hidden_size":1024,"initializer_range":0.02,"intermediate_size":3072,"max_position_embeddings":40960,
		"max_window_layers":28,"model_type":"qwen3","num_attention_heads":16,"num_hidden_layers":28,"num_key_value_heads":8,"rms_norm_eps":1e-06,
		"rope_scaling":null,"rope_theta":1000000,"sliding_window":null,"tie_word_embeddings":true,"use_sliding_window":false,"vocab_size":151936}`,
	"Qwen2.5-0.5B-Instruct": `{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151645,"hidden_act":"silu",
		"hidden_size":896,"intermediate_size":4864,"max_position_embeddings":32768,"max_window_layers":21,"model_type":"qwen2","num_attention_heads":14,
		"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,"rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,
		"use_sliding_window":false,"vocab_size":151936}`,
	"Llama-3.2-1B-Instruct": `{"architectures":["LlamaForCausalLM"],"attention_bias":false,"bos_token_id":128000,"eos_token_id":[128001,128008,128009],
		"head_dim":64,"hidden_act":"silu","hidden_size":2048,"intermediate_size":8192,"max_position_embeddings":131072,"mlp_bias":false,
		"model_type":"llama","num_attention_heads":32,"num_hidden_layers":16,"num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,
		"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},
		"rope_theta":500000.0,"tie_word_embeddings":true,"vocab_size":128256}`,
	"Llama-3.1-8B": `{"architectures":["LlamaForCausalLM"],"attention_bias":false,"bos_token_id":128000,"eos_token_id":128001,"hidden_act":"silu",
		"hidden_size":4096,"intermediate_size":14336,"max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama","num_attention_heads":32,
		"num_hidden_layers":32,"num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,
		"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},
		"rope_theta":500000.0,"tie_word_embeddings":false,"vocab_size":128256}`,
}

func TestPublished(t *testing.T) {
	llama3 := func(factor float64) family.Rope {
		return family.Rope{Theta: 5e5, Kind: family.Llama3, Factor: factor, Low: 1, High: 4, Original: 8192, Scale: 1}
	}
	plain := family.Rope{Theta: 1e6, Scale: 1}
	for name, want := range map[string]struct {
		family.Config
		ids    []int32
		params int64
	}{
		"Qwen3-0.6B": {family.Config{
			Family: "qwen3", Vocab: 151936, Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072,
			MaxPos: 40960, Eps: 1e-6, Rope: plain, Tied: true, QKNorm: true,
		}, []int32{151645}, 596_049_920},
		"Qwen2.5-0.5B-Instruct": {family.Config{
			Family: "qwen2", Vocab: 151936, Hidden: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, FFN: 4864,
			MaxPos: 32768, Eps: 1e-6, Rope: plain, Tied: true, QKVBias: true,
		}, []int32{151645}, 494_032_768},
		"Llama-3.2-1B-Instruct": {family.Config{
			Family: "llama", Vocab: 128256, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
			MaxPos: 131072, Eps: 1e-5, Rope: llama3(32), Tied: true,
		}, []int32{128001, 128008, 128009}, 1_235_814_400},
		"Llama-3.1-8B": {family.Config{
			Family: "llama", Vocab: 128256, Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336,
			MaxPos: 131072, Eps: 1e-5, Rope: llama3(8),
		}, []int32{128001}, 8_030_261_248},
	} {
		c, ids, err := family.FromJSON([]byte(published[name]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c != want.Config || !slices.Equal(ids, want.ids) {
			t.Errorf("%s: %+v\nids %v", name, c, ids)
		}
		if c.Params() != want.params {
			t.Errorf("%s has %d weights, want %d", name, c.Params(), want.params)
		}
	}
}

// changed is a published config.json with some keys replaced; nil removes one.
func changed(t testing.TB, name string, change map[string]any) []byte {
	t.Helper()
	var f map[string]any
	if err := json.Unmarshal([]byte(published[name]), &f); err != nil {
		t.Fatal(err)
	}
	maps.Copy(f, change)
	for k, v := range change {
		if v == nil {
			delete(f, k)
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type keys = map[string]any

// What files of other versions of transformers leave out or write elsewhere.
func TestVariants(t *testing.T) {
	for name, c := range map[string]struct {
		base   string
		change keys
		check  func(c family.Config) bool
	}{
		"no head dim, qwen3": {"Qwen3-0.6B", keys{"head_dim": nil}, func(c family.Config) bool { return c.HeadDim == 128 }},
		"no head dim, llama": {"Llama-3.2-1B-Instruct", keys{"head_dim": nil}, func(c family.Config) bool { return c.HeadDim == 64 }},
		"no KV heads":        {"Llama-3.1-8B", keys{"num_key_value_heads": nil}, func(c family.Config) bool { return c.KVHeads == 32 }},
		"no theta":           {"Qwen3-0.6B", keys{"rope_theta": nil}, func(c family.Config) bool { return c.Rope.Theta == 10000 }},
		"not tied":           {"Qwen3-0.6B", keys{"tie_word_embeddings": nil}, func(c family.Config) bool { return !c.Tied }},
		"bias, qwen3":        {"Qwen3-0.6B", keys{"attention_bias": true}, func(c family.Config) bool { return c.QKVBias && c.OBias && !c.MLPBias }},
		"bias, qwen2":        {"Qwen2.5-0.5B-Instruct", keys{"attention_bias": true}, func(c family.Config) bool { return c.QKVBias && !c.OBias }},
		"bias, llama":        {"Llama-3.1-8B", keys{"mlp_bias": true}, func(c family.Config) bool { return !c.QKVBias && c.MLPBias }},
		"rope_parameters": {
			"Qwen3-0.6B",
			keys{"rope_theta": nil, "rope_parameters": keys{"rope_theta": 5e6, "rope_type": "default"}},
			func(c family.Config) bool { return c.Rope == family.Rope{Theta: 5e6, Scale: 1} },
		},
		"layer types": {"Qwen3-0.6B", keys{"layer_types": []string{"full_attention", "full_attention"}}, func(c family.Config) bool { return true }},
		"linear, old name": {
			"Llama-3.1-8B",
			keys{"rope_scaling": keys{"type": "linear", "factor": 4}},
			func(c family.Config) bool {
				return c.Rope.Kind == family.Linear && c.Rope.Factor == 4 && c.MaxPos == 131072
			},
		},
		"yarn": {
			"Qwen2.5-0.5B-Instruct",
			keys{"rope_scaling": keys{"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
			func(c family.Config) bool {
				return c.MaxPos == 131072 && c.Rope.Original == 32768 && c.Rope.Fast == 32 && c.Rope.Slow == 1 && !c.Rope.Exact &&
					c.Rope.Scale > 1.138 && c.Rope.Scale < 1.139
			},
		},
		"yarn by the context": {
			"Qwen3-0.6B",
			keys{"rope_scaling": keys{"rope_type": "yarn", "original_max_position_embeddings": 20480, "attention_factor": 1, "truncate": false}},
			func(c family.Config) bool {
				return c.Rope.Factor == 2 && c.Rope.Scale == 1 && c.Rope.Exact && c.MaxPos == 40960
			},
		},
		"yarn, mscale": {
			"Qwen3-0.6B",
			keys{"rope_scaling": keys{"rope_type": "yarn", "factor": 8, "mscale": 1, "mscale_all_dim": 1}},
			func(c family.Config) bool { return c.Rope.Scale == 1 && c.Rope.Original == 40960 },
		},
	} {
		got, _, err := family.FromJSON(changed(t, c.base, c.change))
		if err != nil || !c.check(got) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		base   string
		change keys
		want   string
	}{
		"architecture":     {"Qwen3-0.6B", keys{"architectures": []string{"MambaForCausalLM"}}, `"MambaForCausalLM" is not supported: choose a model of Qwen3ForCausalLM, Qwen2ForCausalLM, LlamaForCausalLM`},
		"experts":          {"Qwen3-0.6B", keys{"architectures": []string{"Qwen3MoeForCausalLM"}}, `"Qwen3MoeForCausalLM" is not supported`},
		"two":              {"Qwen3-0.6B", keys{"architectures": []string{"Qwen3ForCausalLM", "LlamaForCausalLM"}}, "exactly one"},
		"activation":       {"Qwen3-0.6B", keys{"hidden_act": "gelu"}, "hidden_act"},
		"window":           {"Qwen2.5-0.5B-Instruct", keys{"use_sliding_window": true}, "use_sliding_window"},
		"layer types":      {"Qwen3-0.6B", keys{"layer_types": []string{"full_attention", "sliding_attention"}}, `"sliding_attention", which is not supported`},
		"quantised":        {"Qwen3-0.6B", keys{"quantization_config": keys{"quant_method": "gptq"}}, `method "gptq"`},
		"partial":          {"Llama-3.1-8B", keys{"partial_rotary_factor": 0.5}, "partial_rotary_factor"},
		"partial, nested":  {"Llama-3.1-8B", keys{"rope_parameters": keys{"rope_type": "default", "partial_rotary_factor": 0.25}}, "partial_rotary_factor"},
		"dynamic":          {"Llama-3.1-8B", keys{"rope_scaling": keys{"type": "dynamic", "factor": 2}}, `"dynamic", supported are linear, llama3 and yarn`},
		"longrope":         {"Llama-3.1-8B", keys{"rope_scaling": keys{"rope_type": "longrope"}}, `"longrope"`},
		"factor alone":     {"Llama-3.1-8B", keys{"rope_scaling": keys{"factor": 2}}, "no rope_type"},
		"small factor":     {"Llama-3.1-8B", keys{"rope_scaling": keys{"rope_type": "linear", "factor": 0.5}}, "factor of rope_scaling is 0.5"},
		"llama3 context":   {"Llama-3.1-8B", keys{"rope_scaling": keys{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}}, "original_max_position_embeddings is 0"},
		"llama3 factors":   {"Llama-3.1-8B", keys{"rope_scaling": keys{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4, "original_max_position_embeddings": 8192}}, "low_freq_factor"},
		"yarn turns":       {"Qwen3-0.6B", keys{"rope_scaling": keys{"rope_type": "yarn", "factor": 8, "beta_fast": 1, "beta_slow": 2}}, "beta_fast"},
		"yarn scale":       {"Qwen3-0.6B", keys{"rope_scaling": keys{"rope_type": "yarn", "factor": 8, "attention_factor": -1}}, "attention_factor is -1"},
		"no layers":        {"Qwen3-0.6B", keys{"num_hidden_layers": 0}, "num_hidden_layers is 0"},
		"huge":             {"Qwen3-0.6B", keys{"hidden_size": 1 << 30}, "hidden_size is 1073741824"},
		"negative":         {"Qwen3-0.6B", keys{"num_attention_heads": -4}, "num_attention_heads is -4"},
		"uneven heads":     {"Qwen3-0.6B", keys{"num_key_value_heads": 5}, "16 attention heads cannot share 5"},
		"odd head":         {"Qwen3-0.6B", keys{"head_dim": 7}, "head_dim is 7"},
		"wide heads":       {"Qwen3-0.6B", keys{"head_dim": 1 << 19}, "more than the limit"},
		"no even division": {"Llama-3.1-8B", keys{"hidden_size": 4097}, "no multiple of 32 heads"},
		"positions":        {"Qwen3-0.6B", keys{"max_position_embeddings": 1 << 30}, "max_position_embeddings is"},
		"eps":              {"Qwen3-0.6B", keys{"rms_norm_eps": 0}, "rms_norm_eps"},
		"theta":            {"Qwen3-0.6B", keys{"rope_theta": 0}, "rope_theta"},
		"vocabulary":       {"Qwen3-0.6B", keys{"vocab_size": nil}, "vocab_size is 0"},
		"text":             {"Qwen3-0.6B", keys{"eos_token_id": "x"}, "config.json is damaged"},
	} {
		_, _, err := family.FromJSON(changed(t, c.base, c.change))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func FuzzFromJSON(f *testing.F) {
	for _, b := range published {
		f.Add([]byte(b))
	}
	f.Add(changed(f, "Qwen3-0.6B", keys{"rope_scaling": keys{"rope_type": "yarn", "factor": 4}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _, err := family.FromJSON(b)
		if err != nil {
			return
		}
		// An accepted shape can be worked with: angles are finite, and the
		// weights are not too many to list.
		angles, scale := c.Rope.Frequencies(c.HeadDim)
		for _, a := range angles {
			if !(a >= 0 && a <= 1) {
				t.Fatalf("an angle of %v from %+v", a, c)
			}
		}
		if !(scale > 0) {
			t.Fatalf("a scale of %v from %+v", scale, c)
		}
		if n := c.Params(); n < 1 {
			t.Fatalf("%d weights in %+v", n, c)
		}
	})
}
