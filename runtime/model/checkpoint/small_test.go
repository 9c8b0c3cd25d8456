package checkpoint_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tensor"
)

// draft is a GGUF file under way: a model of family qwen3 with two layers, its
// tensors zero, to be bent by a test.
type draft struct {
	meta    map[string]any
	tensors map[string]tensor.Source
}

const (
	vocab  = 288 // 256 bytes, some marks, unused rows
	hidden = 64
)

func zeros(name string, t tensor.Type, shape ...int) tensor.Source {
	s := tensor.Source{Name: name, Type: t, Shape: shape}
	s.Write = func(w io.Writer) error {
		_, err := w.Write(make([]byte, s.Size()))
		return err
	}
	return s
}

// byteTokens is a vocabulary of the 256 bytes in byte-level form, and marks.
func byteTokens() (tokens []string, types []int32) {
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b > ' ' && b < 0x7f || b > 0xa0 && b != 0xad) {
			r, next = next, next+1
		}
		tokens, types = append(tokens, string(r)), append(types, 1)
	}
	for _, m := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		tokens, types = append(tokens, m), append(types, 3)
	}
	for len(tokens) < vocab {
		tokens, types = append(tokens, "[PAD"+strconv.Itoa(len(tokens))+"]"), append(types, 5)
	}
	return tokens, types
}

func newDraft() *draft {
	tokens, types := byteTokens()
	d := &draft{
		meta: map[string]any{
			"general.architecture": "qwen3", "qwen3.block_count": uint32(2), "qwen3.context_length": uint32(512),
			"qwen3.embedding_length": uint32(hidden), "qwen3.feed_forward_length": uint32(96), "qwen3.attention.head_count": uint32(4),
			"qwen3.attention.head_count_kv": uint32(2), "qwen3.attention.key_length": uint32(32), "qwen3.attention.value_length": uint32(32),
			"qwen3.attention.layer_norm_rms_epsilon": float32(1e-6), "qwen3.rope.freq_base": float32(1e6),
			"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
			"tokenizer.ggml.merges": []string{"a b"}, "tokenizer.ggml.eos_token_id": uint32(258), "tokenizer.ggml.add_bos_token": false,
		},
		tensors: map[string]tensor.Source{},
	}
	// The merge needs its result, in the place of an unused row.
	tokens[280], types[280] = "ab", 1
	d.add("token_embd.weight", tensor.Q8_0, vocab, hidden)
	d.add("output_norm.weight", tensor.F32, hidden)
	for _, l := range []string{"blk.0.", "blk.1."} {
		for _, n := range []string{"attn_norm", "ffn_norm"} {
			d.add(l+n+".weight", tensor.F32, hidden)
		}
		for _, n := range []string{"attn_q_norm", "attn_k_norm"} {
			d.add(l+n+".weight", tensor.F32, 32)
		}
		d.add(l+"attn_q.weight", tensor.Q8_0, 128, hidden)
		d.add(l+"attn_k.weight", tensor.Q8_0, 64, hidden)
		d.add(l+"attn_v.weight", tensor.Q8_0, 64, hidden)
		d.add(l+"attn_output.weight", tensor.Q8_0, hidden, 128)
		d.add(l+"ffn_gate.weight", tensor.Q8_0, 96, hidden)
		d.add(l+"ffn_up.weight", tensor.Q8_0, 96, hidden)
		d.add(l+"ffn_down.weight", tensor.Q8_0, hidden, 96)
	}
	return d
}

func (d *draft) add(name string, t tensor.Type, shape ...int) {
	d.tensors[name] = zeros(name, t, shape...)
}

// write makes the file, its keys and tensors in the order of their names.
func (d *draft) write(t testing.TB, path string) {
	t.Helper()
	var meta []gguf.Entry
	for _, k := range sorted(d.meta) {
		meta = append(meta, gguf.Entry{Key: k, Value: d.meta[k]})
	}
	var tensors []tensor.Source
	for _, n := range sorted(d.tensors) {
		tensors = append(tensors, d.tensors[n])
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gguf.Write(f, meta, tensors); err != nil {
		t.Fatal(err)
	}
}

func sorted[T any](m map[string]T) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// open writes and opens the draft.
func (d *draft) open(t testing.TB) (*checkpoint.Checkpoint, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "draft.gguf")
	d.write(t, path)
	c, err := checkpoint.Open(path)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// shape is a small model of a family with nothing round about it.
func shape(family string) synth.Shape {
	s := synth.Shape{
		Name: "odd", Family: family, Layers: 3, Hidden: 96, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 160, Vocab: 448, MaxPos: 512,
		RopeTheta: 5e5, Eps: 1e-5, Tied: family == "qwen3",
	}
	if family == "llama" {
		s.Rope = synth.Rope{Kind: "llama3", Factor: 8, Low: 1, High: 4, Original: 128}
	}
	return s
}

var tokenizerFiles = os.DirFS("../tiny/tokenizer")

// synthesised writes a model of a family and opens it.
func synthesised(t testing.TB, s synth.Shape, name string, o synth.Options) *checkpoint.Checkpoint {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	o.Tokenizer = tokenizerFiles
	if err := synth.Write(path, s, o); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
