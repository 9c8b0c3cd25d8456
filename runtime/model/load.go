package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"tokenrouter/kernels"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tokenizer"
)

// Generation is what generation_config.json recommends. Zero values mean that
// the file says nothing.
type Generation struct {
	MaxNewTokens int
	DoSample     bool
	Temperature  float32
	TopK         int
	TopP         float32
}

// Model is a loaded model. Its exported fields are not to be changed.
type Model struct {
	Name       string
	Config     Config
	Tokenizer  *tokenizer.Tokenizer
	Generation Generation

	eos    []int32
	hash   string
	embed  kernels.Matrix
	head   kernels.Matrix
	layers []layer
	norm   []float32
	rope   *kernels.RoPE
}

// layer holds the weights of one transformer block.
type layer struct {
	norm1, norm2 []float32
	qNorm, kNorm []float32
	q, kv, o     kernels.Matrix // kv: keys' rows, then values' rows
	gateUp, down kernels.Matrix // gateUp: gate's rows, then up's rows
}

// EOS lists the tokens that end an answer, not to be changed.
func (m *Model) EOS() []int32 { return m.eos }

// Hash is the SHA-256 in hex of the weights' file.
func (m *Model) Hash() string { return m.hash }

// Params is the number of weights.
func (m *Model) Params() int { return m.Config.params() }

// Load reads a model from a folder in Hugging Face's layout: config.json,
// model.safetensors, tokenizer.json, tokenizer_config.json and, if present,
// generation_config.json. Weights become float32 in memory.
func Load(fsys fs.FS, name string) (*Model, error) {
	m := &Model{Name: name}
	if err := m.load(fsys); err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return m, nil
}

func (m *Model) load(fsys fs.FS) error {
	b, err := fs.ReadFile(fsys, "config.json")
	if err != nil {
		return err
	}
	var eos intList
	if m.Config, eos, err = parseConfig(b); err != nil {
		return err
	}
	if err := m.loadGeneration(fsys, eos); err != nil {
		return err
	}
	if err := m.loadTokenizer(fsys); err != nil {
		return err
	}
	return m.loadWeights(fsys)
}

// loadGeneration reads generation_config.json; its end tokens override those
// of config.json.
func (m *Model) loadGeneration(fsys fs.FS, eos intList) error {
	var g struct {
		EOS          intList `json:"eos_token_id"`
		MaxNewTokens int     `json:"max_new_tokens"`
		DoSample     bool    `json:"do_sample"`
		Temperature  float32 `json:"temperature"`
		TopK         int     `json:"top_k"`
		TopP         float32 `json:"top_p"`
	}
	b, err := fs.ReadFile(fsys, "generation_config.json")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(b, &g); err != nil {
			return fmt.Errorf("generation_config.json is damaged: %w", err)
		}
	}
	if g.MaxNewTokens < 0 || g.Temperature < 0 || g.TopK < 0 || g.TopP < 0 || g.TopP > 1 {
		return errors.New("generation_config.json has a number out of range: max_new_tokens, temperature and top_k are at least 0, top_p is 0..1")
	}
	m.Generation = Generation{g.MaxNewTokens, g.DoSample, g.Temperature, g.TopK, g.TopP}
	m.eos = eos
	if len(g.EOS) > 0 {
		m.eos = g.EOS
	}
	if len(m.eos) == 0 {
		return errors.New("neither generation_config.json nor config.json names an eos_token_id: answers would never end")
	}
	for _, id := range m.eos {
		if id < 0 || int(id) >= m.Config.Vocab {
			return fmt.Errorf("eos_token_id %d is outside the vocabulary of %d: the files do not belong together", id, m.Config.Vocab)
		}
	}
	return nil
}

func (m *Model) loadTokenizer(fsys fs.FS) error {
	tok, err := fs.ReadFile(fsys, "tokenizer.json")
	if err != nil {
		return err
	}
	cfg, err := fs.ReadFile(fsys, "tokenizer_config.json")
	if err != nil {
		return err
	}
	if m.Tokenizer, err = tokenizer.Load(tok, cfg); err != nil {
		return err
	}
	if n := m.Tokenizer.Size(); n > m.Config.Vocab {
		return fmt.Errorf("tokenizer.json has %d tokens, config.json only %d rows: the files do not belong together", n, m.Config.Vocab)
	}
	return nil
}

// loadWeights reads model.safetensors and tiles it.
func (m *Model) loadWeights(fsys fs.FS) error {
	file, err := fsys.Open("model.safetensors")
	if err != nil {
		return err
	}
	defer file.Close()
	r, size, err := readerAt(file)
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, size)); err != nil {
		return err
	}
	m.hash = hex.EncodeToString(h.Sum(nil))
	st, err := safetensors.Open(r, size)
	if err != nil {
		return err
	}
	w := &weights{file: st}
	c := &m.Config
	d, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	m.embed = w.matrix(c.Vocab, d, "model.embed_tokens.weight")
	m.head = m.embed
	if !c.Tied {
		m.head = w.matrix(c.Vocab, d, "lm_head.weight")
	}
	m.norm = w.vector(d, "model.norm.weight")
	for i := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		m.layers = append(m.layers, layer{
			norm1:  w.vector(d, p+"input_layernorm.weight"),
			norm2:  w.vector(d, p+"post_attention_layernorm.weight"),
			qNorm:  w.vector(c.HeadDim, p+"self_attn.q_norm.weight"),
			kNorm:  w.vector(c.HeadDim, p+"self_attn.k_norm.weight"),
			q:      w.matrix(q, d, p+"self_attn.q_proj.weight"),
			kv:     w.matrix(kv, d, p+"self_attn.k_proj.weight", p+"self_attn.v_proj.weight"),
			o:      w.matrix(d, q, p+"self_attn.o_proj.weight"),
			gateUp: w.matrix(c.FFN, d, p+"mlp.gate_proj.weight", p+"mlp.up_proj.weight"),
			down:   w.matrix(d, c.FFN, p+"mlp.down_proj.weight"),
		})
		if w.err != nil {
			return w.err
		}
	}
	if w.err != nil {
		return w.err
	}
	m.rope = kernels.NewRoPE(c.MaxPos, c.HeadDim, c.RopeTheta)
	return w.unused()
}

// readerAt gives random access to a file, in memory where it has none itself.
func readerAt(f fs.File) (io.ReaderAt, int64, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if r, ok := f.(io.ReaderAt); ok {
		return r, info.Size(), nil
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, err
	}
	return bytes.NewReader(b), int64(len(b)), nil
}

// weights reads tensors until the first error.
type weights struct {
	file *safetensors.File
	used []string
	err  error
}

func (w *weights) read(name string, shape ...int) []float32 {
	if w.err != nil {
		return nil
	}
	var v []float32
	v, w.err = w.file.ReadFloat32(name, shape...)
	w.used = append(w.used, name)
	return v
}

func (w *weights) vector(n int, name string) []float32 { return w.read(name, n) }

// matrix stacks tensors of the same shape.
func (w *weights) matrix(rows, cols int, names ...string) kernels.Matrix {
	var all []float32
	for _, n := range names {
		v := w.read(n, rows, cols)
		if all == nil {
			all = v
		} else {
			all = append(all, v...)
		}
	}
	if w.err != nil {
		return kernels.Matrix{}
	}
	return kernels.NewMatrix(rows*len(names), cols, all)
}

// unused refuses a file with tensors that the architecture does not have.
func (w *weights) unused() error {
	slices.Sort(w.used)
	for _, n := range w.file.Names() {
		if _, ok := slices.BinarySearch(w.used, n); !ok && n != "lm_head.weight" {
			return fmt.Errorf("model.safetensors: tensor %q does not belong to %s: config.json and weights are of different models", n, Architecture)
		}
	}
	return nil
}
