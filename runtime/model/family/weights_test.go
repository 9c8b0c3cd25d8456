package family_test

import (
	"testing"

	"tokenrouter/runtime/model/family"
)

func TestWeights(t *testing.T) {
	c := family.Config{
		Family: "llama", Vocab: 11, Hidden: 6, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 4, FFN: 5,
		QKVBias: true, OBias: true, MLPBias: true, QKNorm: true,
	}
	hf, gg := c.Weights(family.HuggingFace), c.Weights(family.GGUF)
	if len(hf) != 2*18+3 || len(gg) != len(hf) {
		t.Fatalf("%d and %d weights", len(hf), len(gg))
	}
	seen := map[string]bool{}
	for i := range hf {
		if seen[hf[i].Name] || seen[gg[i].Name] {
			t.Errorf("%s or %s appears twice", hf[i].Name, gg[i].Name)
		}
		seen[hf[i].Name], seen[gg[i].Name] = true, true
		if hf[i].Heads != 0 {
			t.Errorf("%s is in pairs", hf[i].Name)
		}
	}
	for _, name := range []string{
		"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight", "model.layers.1.self_attn.q_norm.weight",
		"model.layers.0.mlp.down_proj.bias", "token_embd.weight", "output.weight", "output_norm.weight", "blk.1.attn_k_norm.weight",
		"blk.0.attn_output.bias", "blk.1.ffn_gate.weight",
	} {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
	// llama.cpp's converter turns rows (head, half, i) into (head, i, half); the
	// rows of queries and keys, and nothing else, come back from there.
	for _, w := range gg {
		paired := w.Role == family.Q || w.Role == family.K || w.Role == family.QBias || w.Role == family.KBias
		if paired != (w.Heads > 0) {
			t.Errorf("%s: %d heads in pairs", w.Name, w.Heads)
		}
		for i := range w.Rows {
			want := i
			if head, half, j := i/4, i/2%2, i%2; paired {
				want = head*4 + j*2 + half
			}
			if got := w.Row(i); got != want {
				t.Errorf("%s: row %d is row %d of the file, want %d", w.Name, i, got, want)
			}
		}
	}
	c.Family = "qwen3"
	for _, w := range c.Weights(family.GGUF) {
		if w.Heads != 0 {
			t.Errorf("%s of qwen3 is in pairs", w.Name)
		}
	}
}
