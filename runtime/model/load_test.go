package model_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tokenrouter/runtime/model"
)

func TestLoad(t *testing.T) {
	m, ts := loadOdd(t)
	n := 0
	for _, w := range ts {
		n += len(w.data)
	}
	if m.Params() != n {
		t.Errorf("Params %d, want %d", m.Params(), n)
	}
	if !slices.Equal(m.EOS(), []int32{419, 417}) {
		t.Errorf("EOS %v", m.EOS())
	}
	sum := sha256.Sum256(encode(t, ts))
	if m.Hash() != hex.EncodeToString(sum[:]) {
		t.Errorf("Hash %s", m.Hash())
	}
	if m.Name != "odd" || m.Config != odd || m.Generation != (model.Generation{}) {
		t.Errorf("%q, %+v, %+v", m.Name, m.Config, m.Generation)
	}
}

func TestLoadGeneration(t *testing.T) {
	fsys := folder(t, odd, tensors(odd, 1))
	fsys["generation_config.json"] = &fstest.MapFile{Data: []byte(`{"eos_token_id": 7, "max_new_tokens": 99, "do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95}`)}
	m, err := model.Load(fsys, "odd")
	if err != nil {
		t.Fatal(err)
	}
	want := model.Generation{MaxNewTokens: 99, DoSample: true, Temperature: 0.6, TopK: 20, TopP: 0.95}
	if m.Generation != want || !slices.Equal(m.EOS(), []int32{7}) {
		t.Errorf("%+v, EOS %v", m.Generation, m.EOS())
	}
}

// head_dim may be left out; then it is hidden_size / heads.
func TestLoadDefaultHeadDim(t *testing.T) {
	c := odd
	c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 12, 2, 1, 6
	fsys := folder(t, c, tensors(c, 3))
	fsys["config.json"] = &fstest.MapFile{Data: configJSON(t, c, map[string]any{"head_dim": nil})}
	m, err := model.Load(fsys, "odd")
	if err != nil || m.Config != c {
		t.Errorf("%+v, %v", m, err)
	}
}

// Files without random access are read as well.
type plainFS struct{ fs.FS }

type plainFile struct{ fs.File }

func (p plainFS) Open(name string) (fs.File, error) {
	f, err := p.FS.Open(name)
	return plainFile{f}, err
}

func TestLoadWithoutReaderAt(t *testing.T) {
	fsys := folder(t, odd, tensors(odd, 1))
	a, err := model.Load(plainFS{fsys}, "odd")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := loadOdd(t)
	if a.Hash() != b.Hash() {
		t.Error("hashes differ")
	}
}

func TestLoadRefuses(t *testing.T) {
	ts := tensors(odd, 1)
	base := folder(t, odd, ts)
	config := func(key string, value any) map[string][]byte {
		return map[string][]byte{"config.json": configJSON(t, odd, map[string]any{key: value})}
	}
	extra := maps.Clone(ts)
	extra["model.layers.0.self_attn.q_proj.bias"] = tensor{[]int{1}, []float32{0}}
	missing := maps.Clone(ts)
	delete(missing, "model.layers.2.mlp.down_proj.weight")
	for name, c := range map[string]struct {
		files map[string][]byte // replaced; nil removes
		want  string
	}{
		"no config":        {map[string][]byte{"config.json": nil}, "config.json"},
		"no weights":       {map[string][]byte{"model.safetensors": nil}, "model.safetensors"},
		"no tokenizer":     {map[string][]byte{"tokenizer.json": nil}, "tokenizer.json"},
		"no template":      {map[string][]byte{"tokenizer_config.json": nil}, "tokenizer_config.json"},
		"config not JSON":  {map[string][]byte{"config.json": []byte("{")}, "config.json is damaged"},
		"architecture":     {config("architectures", []string{"LlamaForCausalLM"}), `"LlamaForCausalLM"`},
		"no architecture":  {config("architectures", nil), "only Qwen3ForCausalLM"},
		"activation":       {config("hidden_act", "gelu"), `"gelu"`},
		"bias":             {config("attention_bias", true), "attention_bias"},
		"window":           {config("use_sliding_window", true), "use_sliding_window"},
		"rope scaling":     {config("rope_scaling", map[string]any{"type": "yarn"}), "rope_scaling"},
		"no layers":        {config("num_hidden_layers", 0), "num_hidden_layers is 0"},
		"huge hidden":      {config("hidden_size", 1<<30), "hidden_size is 1073741824"},
		"negative heads":   {config("num_attention_heads", -4), "num_attention_heads is -4"},
		"uneven heads":     {config("num_key_value_heads", 4), "6 attention heads cannot share 4"},
		"odd head":         {config("head_dim", 7), "head_dim is 7"},
		"wide heads":       {config("head_dim", 1<<19), "more than the limit"},
		"large table":      {config("max_position_embeddings", 1<<30), "max_position_embeddings is"},
		"eps":              {config("rms_norm_eps", 0), "rms_norm_eps"},
		"theta":            {config("rope_theta", 0), "rope_theta"},
		"vocabulary":       {config("vocab_size", 400), "vocabulary of 400"},
		"small vocabulary": {map[string][]byte{"config.json": configJSON(t, odd, map[string]any{"vocab_size": 420, "eos_token_id": 419})}, "423 tokens"},
		"shape":            {config("hidden_size", 12), "has shape [431 10], config.json implies [431 12]"},
		"no end":           {config("eos_token_id", nil), "eos_token_id"},
		"end outside":      {config("eos_token_id", 431), "eos_token_id 431"},
		"end is text":      {config("eos_token_id", "x"), "config.json is damaged"},
		"generation":       {map[string][]byte{"generation_config.json": []byte("[]")}, "generation_config.json is damaged"},
		"generation range": {map[string][]byte{"generation_config.json": []byte(`{"top_p": 1.5}`)}, "out of range"},
		"cut weights":      {map[string][]byte{"model.safetensors": base["model.safetensors"].Data[:5000]}, "at byte"},
		"missing tensor":   {map[string][]byte{"model.safetensors": encode(t, missing)}, `no tensor "model.layers.2.mlp.down_proj.weight"`},
		"unknown tensor":   {map[string][]byte{"model.safetensors": encode(t, extra)}, "q_proj.bias"},
		"bad tokenizer":    {map[string][]byte{"tokenizer.json": []byte("{}")}, "tokenizer.json"},
	} {
		fsys := maps.Clone(base)
		for n, b := range c.files {
			if b == nil {
				delete(fsys, n)
			} else {
				fsys[n] = &fstest.MapFile{Data: b}
			}
		}
		_, err := model.Load(fsys, "it")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "model it: ") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(configJSON(f, odd, nil))
	f.Add([]byte(`{"architectures":["Qwen3ForCausalLM"],"hidden_act":"silu","vocab_size":1e3}`))
	base := folder(f, odd, tensors(odd, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := maps.Clone(base)
		fsys["config.json"] = &fstest.MapFile{Data: b}
		m, err := model.Load(fsys, "fuzz")
		if err != nil {
			return
		}
		// Weights and config agree, so a step must work.
		var ws model.Workspace
		if err := m.Forward(&ws, m.NewPool(1), []model.Row{{Blocks: []int32{0}, Tokens: []int32{1}, Logits: true}}); err != nil && !bytes.Contains([]byte(err.Error()), []byte("token 1")) {
			t.Fatal(err)
		}
	})
}
