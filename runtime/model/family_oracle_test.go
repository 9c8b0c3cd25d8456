package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/synth"
)

// hold compares what every token gives with the exact computation, and returns
// how far logits and hidden states are off at most.
func hold(t *testing.T, m *model.Model, e *exact, ids []int32) (logits, hidden float64) {
	t.Helper()
	e.t, e.c, e.cache = t, m.Config, map[string][]float64{}
	for i, g := range alone(t, m, ids) {
		wantLogits, wantHidden := e.feed(ids[i])
		logits, hidden = max(logits, off(g.logits, wantLogits)), max(hidden, off(g.hidden, wantHidden))
	}
	return logits, hidden
}

// The forward pass is within float32 rounding of the exact one: odd widths,
// every kind of bias, every scaling of the rotary positions.
func TestForwardOracle(t *testing.T) {
	scaled := func(r family.Rope) family.Rope {
		r.Theta = 500
		if r.Scale == 0 {
			r.Scale = 1
		}
		return r
	}
	for name, c := range map[string]struct {
		config  model.Config
		scaling map[string]any
	}{
		"qwen3": {config: odd},
		"qwen2": {config: model.Config{
			Family: "qwen2", Vocab: 425, Hidden: 33, Layers: 2, Heads: 3, KVHeads: 1, HeadDim: 14, FFN: 41,
			MaxPos: 60, Eps: 1e-6, Rope: scaled(family.Rope{}), QKVBias: true, Tied: true,
		}},
		"llama": {
			config: model.Config{
				Family: "llama", Vocab: 427, Hidden: 40, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 10, FFN: 27,
				MaxPos: 60, Eps: 1e-5, QKVBias: true, OBias: true, MLPBias: true,
				Rope: scaled(family.Rope{Kind: family.Llama3, Factor: 8, Low: 1, High: 4, Original: 32}),
			},
			scaling: map[string]any{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32},
		},
		"linear": {
			config: model.Config{
				Family: "llama", Vocab: 427, Hidden: 24, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 12, FFN: 16,
				MaxPos: 60, Eps: 1e-5, Rope: scaled(family.Rope{Kind: family.Linear, Factor: 3}),
			},
			scaling: map[string]any{"rope_type": "linear", "factor": 3},
		},
		"yarn": {
			config: model.Config{
				Family: "qwen3", Vocab: 427, Hidden: 24, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 16, QKNorm: true,
				MaxPos: 64, Eps: 1e-6, Rope: scaled(family.Rope{Kind: family.Yarn, Factor: 4, Original: 16, Fast: 32, Slow: 1, Scale: 1.1386294361119891}),
			},
			scaling: map[string]any{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := folder(t, c.config, tensors(c.config, 1))
			if c.scaling != nil {
				fsys["config.json"].Data = configJSON(t, c.config, map[string]any{"rope_scaling": c.scaling, "rms_norm_eps": c.config.Eps})
			}
			m, err := model.Load(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			if m.Config != c.config {
				t.Fatalf("loaded as %+v, want %+v", m.Config, c.config)
			}
			st, err := safetensors.OpenFS(fsys)
			if err != nil {
				t.Fatal(err)
			}
			ids := randomIDs(rand.New(rand.NewPCG(5, 5)), m, m.Config.MaxPos)
			logits, hidden := hold(t, m, &exact{store: st, names: namesHF}, ids)
			t.Logf("logits off by %.1e, hidden states by %.1e", logits, hidden)
			if !(logits < 2e-5 && hidden < 2e-5) {
				t.Errorf("logits off by %g, hidden states by %g", logits, hidden)
			}
		})
	}
}

// shape is a small model of a family for a file.
func shape(fam string) synth.Shape {
	s := synth.Shape{
		Name: "small-" + fam, Family: fam, Layers: 2, Hidden: 96, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 160,
		Vocab: 600, MaxPos: 512, RopeTheta: 10000, Eps: 1e-6, Tied: fam != "qwen2",
	}
	if fam == "llama" {
		s.HeadDim, s.Rope = 16, synth.Rope{Kind: "llama3", Factor: 8, Low: 1, High: 4, Original: 64}
	}
	return s
}

// write makes a file of a shape.
func write(t testing.TB, s synth.Shape, format string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), s.Name+"-"+format+".gguf")
	if err := synth.Write(path, s, synth.Options{Format: format, Seed: 3, Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
		t.Fatal(err)
	}
	return path
}

// Of files in every format the forward pass is as far from the exact one as the
// rounding of activations and keys says: half precision of the KV (2^-11), 16
// bits a block of 32 with Q8, 8 bits with Q4.
func TestForwardOracleFormats(t *testing.T) {
	for format, most := range map[string]float64{"f32": 2e-5, "f16": 1e-3, "bf16": 1e-3, "q8_0": 1e-3, "q4_0": 8e-2} {
		for _, fam := range []string{"qwen3", "qwen2", "llama"} {
			t.Run(fmt.Sprint(fam, "/", format), func(t *testing.T) {
				path := write(t, shape(fam), format)
				m, err := model.Open(path, model.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				f, err := gguf.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				n := 50
				if fam == "qwen3" && format == "f16" {
					n = 280 // attention goes by splits of 256 positions
				}
				ids := randomIDs(rand.New(rand.NewPCG(5, 5)), m, n)
				logits, hidden := hold(t, m, &exact{store: f, names: namesGGUF, paired: fam == "llama"}, ids)
				t.Logf("logits off by %.1e, hidden states by %.1e", logits, hidden)
				if !(logits < most && hidden < most) {
					t.Errorf("logits off by %g, hidden states by %g, at most %g is rounding", logits, hidden, most)
				}
			})
		}
	}
}
