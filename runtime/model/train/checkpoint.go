package train

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"tokenrouter/kernels"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
)

// The tensors of a state: vectors of all weights in the order of the layout.
const (
	stateWeights = "weights"
	stateFirst   = "first"
	stateSecond  = "second"
)

// floats is a tensor of float32 on its way into a file.
func floats(name string, v []float32) tensor.Source {
	return tensor.Source{Name: name, Type: tensor.F32, Shape: []int{len(v)}, Write: func(w io.Writer) error {
		b := make([]byte, 0, 4*len(v))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		_, err := w.Write(b)
		return err
	}}
}

// Save writes everything that the next step depends on but the examples: weights
// and moments in float32, the number of steps and the configuration. The note is
// the caller's: where its examples stand.
func (t *Trainer) Save(path, note string) error {
	cfg, err := json.Marshal(t.cfg)
	if err != nil {
		return err
	}
	meta := map[string]string{"config": string(cfg), "step": strconv.Itoa(t.step), "note": note}
	return tensor.Create(path, func(w io.Writer) error {
		return safetensors.Write(w, meta, []tensor.Source{
			floats(stateWeights, t.w), floats(stateFirst, t.moments.first), floats(stateSecond, t.moments.second),
		})
	})
}

// Resume is the trainer that Save wrote, and its note. Steps go on as if it had
// never stopped, on examples that go on likewise. With workers above 0 it goes on
// with so many; from there on weights are those of that number.
func Resume(path string, workers int) (*Trainer, string, error) {
	t, note, err := resume(path, workers)
	if err != nil {
		return nil, "", fmt.Errorf("%s: no training to go on with: %w", path, err)
	}
	return t, note, nil
}

func resume(path string, workers int) (*Trainer, string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, "", err
	}
	var cfg Config
	if err := json.Unmarshal([]byte(f.Meta["config"]), &cfg); err != nil {
		return nil, "", fmt.Errorf("its configuration: %w", err)
	}
	if workers > 0 {
		cfg.Workers = workers
	}
	step, err := strconv.Atoi(f.Meta["step"])
	if err != nil || step < 0 {
		return nil, "", fmt.Errorf("its step is %q", f.Meta["step"])
	}
	t, err := New(cfg)
	if err != nil {
		return nil, "", err
	}
	t.step = step
	for name, dst := range map[string][]float32{stateWeights: t.w, stateFirst: t.moments.first, stateSecond: t.moments.second} {
		x, ok := f.Tensor(name)
		if !ok || x.Type != tensor.F32 || x.Len() != len(dst) {
			return nil, "", fmt.Errorf("its %s are not %d float32", name, len(dst))
		}
		tensor.Dequantize(x.Type, dst, x.Data)
	}
	t.turnAll()
	return t, f.Meta["note"], nil
}

// halves is a tensor of half precision on its way into a file.
func halves(s span, w []float32) tensor.Source {
	shape := []int{s.rows, s.cols}
	if s.rows == 0 {
		shape = shape[1:]
	}
	return tensor.Source{Name: s.name, Type: tensor.F16, Shape: shape, Write: func(out io.Writer) error {
		b := make([]byte, 0, 2*s.len())
		for _, x := range w[s.at:][:s.len()] {
			b = binary.LittleEndian.AppendUint16(b, kernels.ToF16(x))
		}
		_, err := out.Write(b)
		return err
	}}
}

// Tokens are the ids that a checkpoint names.
type Tokens struct{ BOS, EOS, Pad int32 }

// Export writes a checkpoint in Hugging Face's layout into a folder that exists:
// weights in half precision, config.json, generation_config.json. The tokenizer's
// files are the caller's to add.
func (t *Trainer) Export(dir string, ids Tokens) error {
	var sources []tensor.Source
	for _, s := range t.lay.spans {
		sources = append(sources, halves(s, t.w))
	}
	if err := safetensors.WriteDir(dir, 1, sources); err != nil {
		return err
	}
	s := t.cfg.Shape
	if err := writeJSON(filepath.Join(dir, "config.json"), config{
		Architectures: []string{"Qwen3ForCausalLM"}, ModelType: "qwen3",
		BOS: ids.BOS, EOS: ids.EOS, Pad: ids.Pad,
		HeadDim: s.HeadDim, Act: "silu", Hidden: s.Hidden, Range: embedScale, FFN: s.FFN, Positions: positions,
		Heads: s.Heads, Layers: s.Layers, KVHeads: s.KVHeads, Eps: eps, Theta: theta, Tied: true, DType: "float16", Vocab: s.Vocab,
	}); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "generation_config.json"), generation{EOS: ids.EOS, Pad: ids.Pad, Most: positions / 2})
}

// config is config.json of Qwen3.
type config struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	Bias          bool     `json:"attention_bias"`
	Dropout       float64  `json:"attention_dropout"`
	BOS           int32    `json:"bos_token_id"`
	EOS           int32    `json:"eos_token_id"`
	Pad           int32    `json:"pad_token_id"`
	HeadDim       int      `json:"head_dim"`
	Act           string   `json:"hidden_act"`
	Hidden        int      `json:"hidden_size"`
	Range         float64  `json:"initializer_range"`
	FFN           int      `json:"intermediate_size"`
	Positions     int      `json:"max_position_embeddings"`
	Heads         int      `json:"num_attention_heads"`
	Layers        int      `json:"num_hidden_layers"`
	KVHeads       int      `json:"num_key_value_heads"`
	Eps           float64  `json:"rms_norm_eps"`
	Scaling       any      `json:"rope_scaling"`
	Theta         float64  `json:"rope_theta"`
	Tied          bool     `json:"tie_word_embeddings"`
	DType         string   `json:"torch_dtype"`
	Window        bool     `json:"use_sliding_window"`
	Vocab         int      `json:"vocab_size"`
}

// generation is generation_config.json.
type generation struct {
	Sample bool  `json:"do_sample"`
	EOS    int32 `json:"eos_token_id"`
	Pad    int32 `json:"pad_token_id"`
	Most   int   `json:"max_new_tokens"`
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return tensor.Create(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}
