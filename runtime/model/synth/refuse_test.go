package synth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
)

func TestRefuses(t *testing.T) {
	shape := func(change func(*Shape)) Shape {
		s := small("qwen3")
		change(&s)
		return s
	}
	config := `{"eos_token":"<|im_end|>"}`
	tok := func(json, cfg string) fs.FS {
		return fstest.MapFS{"tokenizer.json": {Data: []byte(json)}, "tokenizer_config.json": {Data: []byte(cfg)}}
	}
	ok := small("qwen3")
	for _, c := range []struct {
		name  string
		path  string
		shape Shape
		o     Options
		want  string
	}{
		{"format", "m.gguf", ok, Options{Format: "q3_k"}, "choose one of q8_0, q4_0, q4_k_m, bf16, f16, f32"},
		{"format of a folder", "m", ok, Options{Format: "q8_0"}, "choose one of bf16, f16, f32"},
		{"family", "m.gguf", shape(func(s *Shape) { s.Family = "gemma" }), Options{}, `the family is "gemma"`},
		{"heads", "m.gguf", shape(func(s *Shape) { s.KVHeads = 4 }), Options{}, "cannot share"},
		{"odd head", "m.gguf", shape(func(s *Shape) { s.HeadDim = 9 }), Options{}, "an even one"},
		{"no layers", "m.gguf", shape(func(s *Shape) { s.Layers = 0 }), Options{}, "layers is 0"},
		{"eps", "m.gguf", shape(func(s *Shape) { s.Eps = 0 }), Options{}, "eps is 0"},
		{"scaling", "m.gguf", shape(func(s *Shape) { s.Rope.Kind = "dynamic" }), Options{}, `scaling is "dynamic"`},
		{"factor", "m.gguf", shape(func(s *Shape) { s.Rope.Kind = "yarn" }), Options{}, "factor is 0"},
		{"llama3", "m.gguf", shape(func(s *Shape) { s.Rope = Rope{Kind: "llama3", Factor: 8} }), Options{}, "needs low and high"},
		{"small vocabulary", "m.gguf", shape(func(s *Shape) { s.Vocab = 400 }), Options{}, "a vocabulary of 400, the tokenizer one of 423"},
		{"no folder", "nothing/m.gguf", ok, Options{}, "nothing"},
		{"no files", "m.gguf", ok, Options{Tokenizer: fstest.MapFS{}}, "tokenizer.json"},
		{"no JSON", "m.gguf", ok, Options{Tokenizer: tok("x", config)}, "tokenizer.json is damaged"},
		{"not BPE", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"Unigram"}}`, config)}, `"Unigram"`},
		{"no tokens", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"BPE"}}`, config)}, "the largest id is -1"},
		{"far id", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"BPE","vocab":{"a":2147483647}}}`, config)}, "the largest id is 2147483647"},
		{"negative id", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"BPE","vocab":{"a":-1,"b":2}}}`, config)}, `"a" has id -1`},
		{"negative added", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"BPE","vocab":{"b":2}},"added_tokens":[{"id":-2,"content":"x"}]}`, config)}, `"x" has id -2`},
		{"merge", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"BPE","vocab":{"b":2},"merges":[5]}}`, config)}, "a merge is damaged"},
		{"no end", "m.gguf", ok, Options{Tokenizer: tok(`{"model":{"type":"BPE","vocab":{"b":2}}}`, config)}, `eos_token "<|im_end|>" is no added token`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.o.Tokenizer == nil {
				c.o.Tokenizer = tiny()
			}
			if err := Write(filepath.Join(dir, c.path), c.shape, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
	if err := Write(filepath.Join(t.TempDir(), "m.gguf"), ok, Options{}); err == nil || !strings.Contains(err.Error(), "a tokenizer is needed") {
		t.Error(err)
	}
}

// Case H1: a model cut at every 64 KiB is refused with the place.
func TestTruncated(t *testing.T) {
	s, err := Find("5m")
	if err != nil {
		t.Fatal(err)
	}
	path, _ := create(t, "m.gguf", s, Options{Format: "q4_0"})
	dir, _ := create(t, "m", s, Options{})
	for path, parse := range map[string]func(b []byte) error{
		path:                                   func(b []byte) error { _, err := gguf.Parse(b); return err },
		filepath.Join(dir, safetensors.Single): func(b []byte) error { _, err := safetensors.Parse(b); return err },
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(b); n += 1 << 16 {
			var g *gguf.Error
			var st *safetensors.Error
			switch err := parse(b[:n]); {
			case errors.As(err, &g) && g.Offset <= int64(n):
			case errors.As(err, &st) && st.Offset <= int64(n):
			default:
				t.Errorf("%s cut at byte %d of %d: %v", filepath.Base(path), n, len(b), err)
			}
		}
		if err := parse(b); err != nil {
			t.Errorf("the whole file: %v", err)
		}
	}
}

// failing takes some bytes and then no more.
type failing int

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if *f -= failing(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A full disk ends the writing, and what was begun in the background.
func TestWriteFails(t *testing.T) {
	s := wide()
	for _, room := range []failing{0, 1 << 10, 1 << 20} {
		w := newWriter(s, Options{}, 423)
		src := w.source(matrix{hf: "x", rows: 100_000, cols: s.Hidden, role: roleInner}, "x", tensor.F32, func(r int) int { return r })
		if err := src.CopyTo(&room); !errors.Is(err, errFull) {
			t.Errorf("%v", err)
		}
		for i, c := range w.chunks {
			if len(c) > 0 {
				t.Errorf("chunk %d was not taken", i)
			}
		}
	}
}

// FuzzVocabulary: whatever the tokenizer's files say, each id gets one text and
// one kind, or the files are refused.
func FuzzVocabulary(f *testing.F) {
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := fs.ReadFile(tiny(), name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(`{"eos_token":{"content":"<|im_end|>"}}`))
	}
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":3},"merges":["a b",["a","b"]]},"added_tokens":[{"id":5,"content":"x","special":true}]}`), []byte(`{"eos_token":"x"}`))
	f.Fuzz(func(t *testing.T, tok, cfg []byte) {
		v, err := readVocabulary(fstest.MapFS{"tokenizer.json": {Data: tok}, "tokenizer_config.json": {Data: cfg}})
		if err != nil {
			return
		}
		if len(v.types) != len(v.tokens) || v.eos < 0 || int(v.eos) >= len(v.tokens) || int(v.pad) >= len(v.tokens) {
			t.Fatalf("%d tokens, %d kinds, end %d, pad %d", len(v.tokens), len(v.types), v.eos, v.pad)
		}
		for id, k := range v.types {
			if k != tokenNormal && k != tokenControl && k != tokenUser && k != tokenUnused {
				t.Fatalf("token %d is of kind %d", id, k)
			}
		}
	})
}
