package model_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/synth"
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
	// Three layers of two KV heads of six values; in a page values take whole
	// groups of 16.
	if m.Format() != "f32" || m.KVFormat() != "f32" || m.KVBytes() != 3*2*(6+16)*4 || len(m.Notes()) > 0 || m.Bytes() < 4*int64(n) {
		t.Errorf("%s, KV %s of %d bytes, %q, %d bytes", m.Format(), m.KVFormat(), m.KVBytes(), m.Notes(), m.Bytes())
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

// What package checkpoint refuses comes out with the model's name.
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
		"no tokenizer":     {map[string][]byte{"tokenizer.json": nil}, "no tokenizer.json"},
		"config not JSON":  {map[string][]byte{"config.json": []byte("{")}, "config.json is damaged"},
		"architecture":     {config("architectures", []string{"GemmaForCausalLM"}), `"GemmaForCausalLM" is not supported`},
		"bias":             {config("attention_bias", true), `no tensor "model.layers.0.self_attn.q_proj.bias"`},
		"window":           {config("use_sliding_window", true), "use_sliding_window"},
		"vocabulary":       {config("vocab_size", 400), "has shape [431 10], config.json implies [400 10]"},
		"small vocabulary": {map[string][]byte{"config.json": configJSON(t, odd, map[string]any{"vocab_size": 420})}, "implies [420 10]"},
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

// A vocabulary that the tokenizer does not fit in is found when both are read.
func TestLoadTokenizerTooLarge(t *testing.T) {
	c := odd
	c.Vocab = 420
	_, err := model.Load(folder(t, c, tensors(c, 1)), "it")
	if err == nil || !strings.Contains(err.Error(), "the tokenizer has 423 tokens, config.json only 420 rows") {
		t.Error(err)
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
		defer m.Close()
		// Weights and config agree, so a step must work.
		var ws model.Workspace
		kv := m.NewPool(1)
		if err := m.Forward(&ws, kv, []model.Row{{Blocks: []int32{0}, Tokens: []int32{1}, Logits: true}}); err != nil && !strings.Contains(err.Error(), "token 1") {
			t.Fatal(err)
		}
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A model that does not fit is refused with both numbers.
func TestMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "5m.gguf")
	s, err := synth.Find("5m")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(path, s, synth.Options{Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
		t.Fatal(err)
	}
	restore := model.SetAvailable(5 << 20)
	_, err = model.Open(path, model.Options{})
	restore()
	if err == nil || !strings.Contains(err.Error(), "the weights need 6 MiB of memory, only 5 MiB are available") || !strings.HasPrefix(err.Error(), "model 5m: ") {
		t.Errorf("too large: %v", err)
	}
	defer model.SetAvailable(5 << 20)()
	m, err := model.Open(path, model.Options{Format: "q4"})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "5m.gguf")
	s, err := synth.Find("5m")
	if err != nil {
		t.Fatal(err)
	}
	s.Vocab = 5001 // no whole number of groups of rows
	if err := synth.Write(path, s, synth.Options{Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 3} {
		var last, total int64
		calls := 0
		m, err := model.Open(path, model.Options{Threads: threads, Progress: func(d, n int64) {
			if calls++; d <= last || total != 0 && n != total {
				t.Errorf("%d of %d after %d of %d", d, n, last, total)
			}
			last, total = d, n
		}})
		if err != nil {
			t.Fatal(err)
		}
		if last != total || total == 0 || total > m.Bytes() || calls < 6*4+1 {
			t.Errorf("%d calls, the last with %d of %d", calls, last, total)
		}
		m.Close()
	}
}

func TestRunAll(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for _, threads := range []int{0, 1, 2, 5} {
		var done atomic.Int64
		tasks := make([]func() error, 100)
		for i := range tasks {
			tasks[i] = func() error { done.Add(1); return nil }
		}
		if err := model.RunAll(threads, tasks); err != nil || done.Load() != 100 {
			t.Errorf("%d threads: %d tasks, %v", threads, done.Load(), err)
		}
		// Both are under way together where there are two goroutines.
		met := make(chan struct{})
		fail := []func() error{
			func() error {
				if threads > 1 {
					<-met
				}
				return first
			},
			func() error { close(met); return second },
		}
		if err := model.RunAll(threads, fail); err != first {
			t.Errorf("%d threads: %v", threads, err)
		}
		func() {
			defer func() {
				if v := recover(); v == nil {
					t.Errorf("%d threads: a panic was swallowed", threads)
				}
			}()
			_ = model.RunAll(threads, []func() error{func() error { panic("it") }, func() error { return nil }})
		}()
	}
	// A panic comes out when no task is under way any more: they read files that
	// are closed then.
	for range 20 {
		var running atomic.Int64
		met := make(chan struct{})
		tasks := []func() error{
			func() error { <-met; panic("it") },
			func() error {
				running.Add(1)
				defer running.Add(-1)
				close(met)
				for range 1000 {
					runtime.Gosched()
				}
				return nil
			},
		}
		func() {
			defer func() {
				if v := recover(); v == nil || running.Load() != 0 {
					t.Errorf("%v comes out with %d tasks under way", v, running.Load())
				}
			}()
			_ = model.RunAll(2, tasks)
		}()
	}
	if err := model.RunAll(2, nil); err != nil {
		t.Error(err)
	}
}
