package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tiny"
)

// The scaling of rotary positions is named wherever a file has it: as a rule in
// config.json, as a tensor in GGUF.
func TestInfoOfScaledPositions(t *testing.T) {
	shape := synth.Shape{
		Name: "few", Family: "llama", Layers: 1, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Vocab: 512, MaxPos: 2048,
		RopeTheta: 1e4, Eps: 1e-6, Tied: true, Rope: synth.Rope{Kind: "llama3", Factor: 8, Low: 1, High: 4, Original: 128},
	}
	for name, want := range map[string]string{
		"folder": "2048 positions, rope base 10000, llama3 scaling by 8",
		"m.gguf": "2048 positions, rope base 10000, scaled by a tensor of the file",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := synth.Write(path, shape, synth.Options{Tokenizer: tiny.Tokenizer()}); err != nil {
			t.Fatal(err)
		}
		c, _, err := openModel(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		info, err := describe(c, name, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := info.context(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// What cannot be used is listed with its size on disk and the reason.
func TestListUnusable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.gguf")
	if err := os.WriteFile(path, make([]byte, 1234), 0o600); err != nil {
		t.Fatal(err)
	}
	got := listed(&checkpoint.Found{Path: path, Kind: checkpoint.GGUF})
	if got.Name != "broken" || got.Bytes != 1234 || !strings.Contains(got.Error, "it is no GGUF file") {
		t.Errorf("%+v", got)
	}
}
