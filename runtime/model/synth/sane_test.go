package synth_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/synth"
)

// A made model behaves: logits of used rows have the promised deviation, unused
// rows are never drawn, and the distributions differ from position to position.
func TestSane(t *testing.T) {
	for _, c := range []struct {
		family, format string
		vocab          int
		rope           synth.Rope
	}{
		{"qwen3", "q8_0", 1000, synth.Rope{}},
		{"qwen3", "q4_0", 1000, synth.Rope{}},
		{"qwen2", "f16", 500, synth.Rope{Kind: "yarn", Factor: 4, Original: 64}},
		{"llama", "q4_k_m", 5000, synth.Rope{Kind: "llama3", Factor: 8, Low: 1, High: 4, Original: 64}},
	} {
		t.Run(c.family+" "+c.format, func(t *testing.T) {
			s, err := synth.Find("5m")
			if err != nil {
				t.Fatal(err)
			}
			s.Layers = 3
			s.Family, s.Vocab, s.Rope, s.Tied = c.family, c.vocab, c.rope, c.family == "qwen3"
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := synth.Write(path, s, synth.Options{Format: c.format, Seed: 1, Tokenizer: os.DirFS("../tiny/tokenizer")}); err != nil {
				t.Fatal(err)
			}
			m, err := model.Open(path, model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			used := m.Tokenizer.Size()
			pool := m.NewPool(4)
			defer pool.Close()
			var ws model.Workspace
			best := map[int32]bool{}
			token, lowest, highest := int32(50), math.Inf(1), 0.0
			for pos := range 48 {
				row := model.Row{Blocks: []int32{0, 1, 2, 3}[:pos/16+1], Start: pos, Tokens: []int32{token}, Logits: true}
				if err := m.Forward(&ws, pool, []model.Row{row}); err != nil {
					t.Fatal(err)
				}
				l := ws.Logits(0)
				deviation, entropy, unused, top := describe(l, used)
				if deviation < 2 || deviation > 4 {
					t.Errorf("position %d: logits have deviation %.2f", pos, deviation)
				}
				if unused > 1e-5 || top >= used {
					t.Errorf("position %d: unused rows have probability %.1e", pos, unused)
				}
				lowest, highest = min(lowest, entropy), max(highest, entropy)
				best[int32(top)] = true
				token = int32((pos*37 + 11) % used)
			}
			if lowest < 0.05 || lowest > 3 || highest < 2.5 || highest > 5 || len(best) < 15 {
				t.Errorf("entropy from %.2f to %.2f nats, %d different best tokens of 48", lowest, highest, len(best))
			}
		})
	}
}

// describe gives the deviation of the used rows' logits, the entropy in nats,
// the probability of the unused rows together and the best row.
func describe(logits []float32, used int) (deviation, entropy, unused float64, top int) {
	mean := 0.0
	for i, v := range logits {
		if i < used {
			mean += float64(v) / float64(used)
		}
		if v > logits[top] {
			top = i
		}
	}
	sum := 0.0
	for i, v := range logits {
		if i < used {
			deviation += (float64(v) - mean) * (float64(v) - mean) / float64(used)
		}
		sum += math.Exp(float64(v - logits[top]))
	}
	for i, v := range logits {
		p := math.Exp(float64(v-logits[top])) / sum
		if i >= used {
			unused += p
		}
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return math.Sqrt(deviation), entropy, unused, top
}
