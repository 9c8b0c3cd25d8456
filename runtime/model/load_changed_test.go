//go:build unix

package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/synth"
)

// A file that another program cuts while it is loaded is an error of the load,
// not the end of the process.
func TestCutWhileLoading(t *testing.T) {
	s := synth.Shape{
		Name: "cut", Family: "qwen3", Layers: 3, Hidden: 64, Heads: 2, KVHeads: 1, HeadDim: 32,
		FFN: 96, Vocab: 600, MaxPos: 64, RopeTheta: 1e4, Eps: 1e-6, Tied: true,
	}
	for _, name := range []string{"m.gguf", "folder"} {
		path := filepath.Join(t.TempDir(), name)
		if err := synth.Write(path, s, synth.Options{Format: "bf16", Seed: 1, Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
			t.Fatal(err)
		}
		file := path
		if name == "folder" {
			file = filepath.Join(path, "model.safetensors")
		}
		c, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		cut := sync.OnceFunc(func() {
			if err := os.Truncate(file, 0); err != nil {
				t.Error(err)
			}
		})
		for _, threads := range []int{1, 3} {
			m, err := model.FromCheckpoint(c, model.Options{Threads: threads, Progress: func(int64, int64) { cut() }})
			if m != nil || err == nil || !strings.Contains(err.Error(), file) && !strings.Contains(err.Error(), "changed while it was read") {
				t.Errorf("%s, %d threads: %v", name, threads, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
