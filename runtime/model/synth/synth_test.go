package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
)

// small is a shape in which little is a multiple of anything.
func small(family string) Shape {
	return Shape{
		Name: "small", Family: family, Layers: 2, Hidden: 40, Heads: 6, KVHeads: 2, HeadDim: 10, FFN: 96, Vocab: 500,
		MaxPos: 100, RopeTheta: 1e4, Eps: 1e-5, Tied: family != "llama",
	}
}

// wide has rows that are whole super-blocks of 256.
func wide() Shape {
	s := small("qwen3")
	s.Layers, s.Hidden, s.Heads, s.KVHeads, s.HeadDim, s.FFN = 9, 256, 4, 2, 64, 512
	return s
}

func tiny() fs.FS { return os.DirFS("../tiny/tokenizer") }

// create writes a model and opens its weights.
func create(t *testing.T, name string, s Shape, o Options) (string, tensor.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if o.Tokenizer == nil {
		o.Tokenizer = tiny()
	}
	if err := Write(path, s, o); err != nil {
		t.Fatal(err)
	}
	var store tensor.Store
	var err error
	if isGGUF(path) {
		store, err = gguf.Open(path)
	} else {
		store, err = safetensors.OpenDir(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return path, store
}

func values(t *testing.T, s tensor.Store, name string) []float32 {
	t.Helper()
	x, ok := s.Tensor(name)
	if !ok {
		t.Fatalf("there is no tensor %s in %v", name, s.Names())
	}
	v := make([]float32, x.Len())
	tensor.Dequantize(x.Type, v, x.Data)
	return v
}

// The names of a layer's tensors, as both formats have them in public models.
var layerNames = map[string]string{
	"self_attn.q_proj.weight": "attn_q.weight", "self_attn.k_proj.weight": "attn_k.weight", "self_attn.v_proj.weight": "attn_v.weight",
	"self_attn.o_proj.weight": "attn_output.weight", "mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight",
	"mlp.down_proj.weight": "ffn_down.weight", "input_layernorm.weight": "attn_norm.weight", "post_attention_layernorm.weight": "ffn_norm.weight",
}

var ownNames = map[string]map[string]string{
	"qwen3": {"self_attn.q_norm.weight": "attn_q_norm.weight", "self_attn.k_norm.weight": "attn_k_norm.weight"},
	"qwen2": {"self_attn.q_proj.bias": "attn_q.bias", "self_attn.k_proj.bias": "attn_k.bias", "self_attn.v_proj.bias": "attn_v.bias"},
	"llama": {},
}

func names(s Shape) map[string]string {
	out := map[string]string{"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
	if !s.Tied {
		out["lm_head.weight"] = "output.weight"
	}
	for i := range s.Layers {
		for _, m := range []map[string]string{layerNames, ownNames[s.Family]} {
			for hf, g := range m {
				out[fmt.Sprintf("model.layers.%d.%s", i, hf)] = fmt.Sprintf("blk.%d.%s", i, g)
			}
		}
	}
	return out
}

// A GGUF file, a folder and its shards hold the same weights under their own
// names; a quantised file holds them rounded.
func TestSameModel(t *testing.T) {
	for _, family := range []string{"qwen3", "qwen2", "llama"} {
		t.Run(family, func(t *testing.T) {
			s := small(family)
			_, folder := create(t, "folder", s, Options{Format: "f32", Seed: 7})
			_, shards := create(t, "shards", s, Options{Format: "f32", Seed: 7, Shards: 4})
			_, file := create(t, "m.gguf", s, Options{Format: "f32", Seed: 7})
			_, q8 := create(t, "q.gguf", s, Options{Format: "q8_0", Seed: 7})
			_, other := create(t, "o.gguf", s, Options{Format: "f32", Seed: 8})
			if n := len(shards.(*safetensors.Folder).Shards()); n != 4 {
				t.Errorf("%d shards", n)
			}
			all := names(s)
			if len(folder.Names()) != len(all) || len(file.Names()) != len(all) {
				t.Errorf("%d and %d tensors, want %d", len(folder.Names()), len(file.Names()), len(all))
			}
			for hf, g := range all {
				want := values(t, folder, hf)
				if !slices.Equal(values(t, shards, hf), want) {
					t.Errorf("%s: shards differ", hf)
				}
				got := values(t, file, g)
				if slices.Equal(values(t, other, g), got) {
					t.Errorf("%s: another seed makes no difference", g)
				}
				x, _ := file.Tensor(g)
				if family == "llama" && (strings.HasSuffix(g, "attn_q.weight") || strings.HasSuffix(g, "attn_k.weight")) {
					got = unpair(got, s.HeadDim, s.Hidden)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: the file differs from the folder", g)
				}
				y, _ := q8.Tensor(g)
				kind := tensor.Q8_0
				switch {
				case len(x.Shape) == 1:
					kind = tensor.F32
				case x.Cols()%32 != 0:
					kind = tensor.F16
				}
				b := make([]byte, kind.Bytes(x.Len()))
				tensor.Quantize(kind, b, values(t, file, g))
				if y.Type != kind || !bytes.Equal(y.Data, b) {
					t.Errorf("%s: %s, want %s of the same weights", g, y.Type, kind)
				}
			}
		})
	}
}

// unpair undoes llama.cpp's order of rotary rows: its row 2i+j of a head is row
// j*dim/2+i of the model.
func unpair(v []float32, dim, cols int) []float32 {
	out := make([]float32, len(v))
	for r := range len(v) / cols {
		head, at := r/dim*dim, r%dim
		to := head + at%2*(dim/2) + at/2
		copy(out[to*cols:][:cols], v[r*cols:][:cols])
	}
	return out
}

// The weights of a seed are these, on every machine.
func TestValues(t *testing.T) {
	_, file := create(t, "m.gguf", small("qwen3"), Options{Format: "f32", Seed: 1})
	for name, want := range map[string][]float32{
		"token_embd.weight":      {4.2426405, 0.086652085, -1.1457331, -0.8408461},
		"blk.0.attn_norm.weight": {0.96875, 0.9921875, 1.0546875, 0.8125},
		"blk.0.attn_q.weight":    {-0.08023341, -0.26423538, -0.2021882, -0.022465356},
		"output_norm.weight":     {1.0234375, 1.03125, 1.0390625, 0.8828125},
	} {
		got := values(t, file, name)[:4]
		if !slices.Equal(got, want) {
			t.Errorf("%s begins with %v, want %v", name, got, want)
		}
	}
}

// The same bytes come from one core and from several.
func TestDeterministic(t *testing.T) {
	var first []byte
	for _, cores := range []int{1, 2, 7} {
		before := runtime.GOMAXPROCS(cores)
		path, _ := create(t, "m.gguf", wide(), Options{Format: "q4_k_m", Seed: 3})
		runtime.GOMAXPROCS(before)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%d cores make another file", cores)
		}
	}
}

// Matrices have the deviation that keeps activations as they are.
func TestScale(t *testing.T) {
	s := wide()
	_, file := create(t, "m.gguf", s, Options{Format: "f32"})
	for name, want := range map[string]float64{
		"blk.3.attn_q.weight":      1 / math.Sqrt(256),
		"blk.3.ffn_up.weight":      1 / math.Sqrt(256),
		"blk.3.attn_output.weight": math.Sqrt(residual / 18 / 256),
		"blk.3.ffn_down.weight":    math.Sqrt(residual/18/512) / gateUp,
		"token_embd.weight":        3 / math.Sqrt(256),
	} {
		g := newGenerator(s, matrix{hf: "x", rows: 1, cols: s.Hidden}, 0, 0)
		x, _ := file.Tensor(name)
		v, sum, sq, n := values(t, file, name), 0.0, 0.0, 0.0
		for i, w := range v {
			row, col := i/x.Cols(), i%x.Cols()
			if name == "token_embd.weight" && g.marked(col) {
				if want := g.mark; w != want && (row < 423 || w != -want) {
					t.Fatalf("mark %d of row %d is %v", col, row, w)
				}
				continue
			}
			if strings.Contains(name, "output") || strings.Contains(name, "down") {
				if g.marked(row) {
					if w != 0 {
						t.Fatalf("%s writes to the marked place %d", name, row)
					}
					continue
				}
			}
			sum, sq, n = sum+float64(w), sq+float64(w)*float64(w), n+1
		}
		if dev := math.Sqrt(sq / n); math.Abs(dev/want-1) > 0.02 || math.Abs(sum/n) > 5*want/math.Sqrt(n) {
			t.Errorf("%s: mean %v, deviation %v, want 0 and %v", name, sum/n, dev, want)
		}
	}
	for _, name := range []string{"blk.3.attn_norm.weight", "output_norm.weight"} {
		for _, w := range values(t, file, name) {
			if w < 0.6 || w > 1.4 || w*128 != float32(math.Round(float64(w*128))) {
				t.Errorf("%s has %v", name, w)
			}
		}
	}
}

// The mixture of q4_k_m, and what takes the place of its types in odd widths.
func TestMixture(t *testing.T) {
	count := func(s Shape) map[tensor.Type]int {
		_, file := create(t, "m.gguf", s, Options{Format: "q4_k_m"})
		n := map[tensor.Type]int{}
		for _, x := range file.(*gguf.File).Tensors() {
			n[x.Type]++
		}
		return n
	}
	// Of nine layers 0, 3, 6 and 8 have two matrices of Q6_K; the embedding is one.
	if n := count(wide()); n[tensor.Q6_K] != 9 || n[tensor.Q4_K] != 9*7-8 || n[tensor.F32] != 9*4+1 {
		t.Errorf("%v", n)
	}
	s := wide()
	s.Hidden, s.FFN = 96, 96 // attention outputs still have 256 columns
	if n := count(s); n[tensor.Q8_0] != 9 || n[tensor.Q4_K] != 9 || n[tensor.Q5_0] != 9*6-8 {
		t.Errorf("%v", n)
	}
	s.Hidden, s.FFN, s.HeadDim = 40, 40, 10
	if n := count(s); n[tensor.F16] != 9*7+1 {
		t.Errorf("%v", n)
	}
}

func TestVocabulary(t *testing.T) {
	path, _ := create(t, "m.gguf", small("qwen3"), Options{})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	types, _ := f.Int32s("tokenizer.ggml.token_type")
	merges, _ := f.Strings("tokenizer.ggml.merges")
	if len(tokens) != 500 || len(types) != 500 || len(merges) == 0 {
		t.Fatalf("%d tokens, %d types, %d merges", len(tokens), len(types), len(merges))
	}
	for id, want := range map[int]struct {
		text string
		kind int32
	}{419: {"<|im_end|>", tokenControl}, 420: {"<think>", tokenUser}, 423: {"[PAD423]", tokenUnused}, 499: {"[PAD499]", tokenUnused}} {
		if tokens[id] != want.text || types[id] != want.kind {
			t.Errorf("token %d is %q of kind %d", id, tokens[id], types[id])
		}
	}
	if types[0] != tokenNormal || !slices.Contains(tokens, "Ġgives") || !slices.Contains(merges, "Ġgiv es") {
		t.Errorf("the vocabulary is not that of the tokenizer: %q", tokens[:10])
	}
	if id, ok := f.Uint("tokenizer.ggml.eos_token_id"); !ok || id != 419 {
		t.Errorf("end token %d", id)
	}
	if s, _ := f.String("tokenizer.chat_template"); !strings.Contains(s, "<|im_start|>") {
		t.Errorf("template %q", s)
	}
}

// A folder's files are those of the tokenizer, and a config of the family.
func TestFolderFiles(t *testing.T) {
	s := small("llama")
	s.Rope = Rope{Kind: "llama3", Factor: 8, Low: 1, High: 4, Original: 64}
	dir, _ := create(t, "m", s, Options{Format: "f16"})
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		want, err2 := fs.ReadFile(tiny(), name)
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs: %v, %v", name, err, err2)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"hidden_size": 40.0, "num_hidden_layers": 2.0, "head_dim": 10.0, "tie_word_embeddings": false, "rms_norm_eps": 1e-5,
		"torch_dtype": "float16", "eos_token_id": 419.0, "model_type": "llama", "vocab_size": 500.0,
	} {
		if c[key] != want {
			t.Errorf("config.json: %s is %v, want %v", key, c[key], want)
		}
	}
	r, _ := c["rope_scaling"].(map[string]any)
	if r["rope_type"] != "llama3" || r["factor"] != 8.0 || r["original_max_position_embeddings"] != 64.0 || r["high_freq_factor"] != 4.0 {
		t.Errorf("rope_scaling %v", r)
	}
}

func TestProgress(t *testing.T) {
	var done, total int64
	path, _ := create(t, "m.gguf", wide(), Options{Progress: func(d, n int64) {
		if d < done || d > n || total != 0 && n != total {
			t.Errorf("%d of %d after %d of %d", d, n, done, total)
		}
		done, total = d, n
	}})
	info, err := os.Stat(path)
	if err != nil || done != total || total < info.Size()/2 || total > info.Size() {
		t.Errorf("%d of %d bytes in a file of %d, %v", done, total, info.Size(), err)
	}
}

func BenchmarkWrite(b *testing.B) {
	s, err := Find("5m")
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range Formats("m.gguf") {
		b.Run(format, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "m.gguf")
			b.SetBytes(s.Params())
			b.ReportAllocs()
			for b.Loop() {
				if err := Write(path, s, Options{Format: format, Tokenizer: tiny()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
