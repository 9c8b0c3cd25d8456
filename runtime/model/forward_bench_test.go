package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/synth"
)

// BenchmarkForward measures steps of the 5M shape in Q8, as MB/s where one is a
// million weights times tokens: prompts of 128 tokens, and 1, 4 and 16 rows of
// one token at contexts of 1 to 128, with signals, on one core and on two.
func BenchmarkForward(b *testing.B) {
	s, err := synth.Find("5m")
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "5m.gguf")
	if err := synth.Write(path, s, synth.Options{Format: "q8_0", Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
		b.Fatal(err)
	}
	m, err := model.Open(path, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	const length = 128
	text := randomIDs(rand.New(rand.NewPCG(1, 1)), m, length)
	for _, n := range []int{1, 2} {
		cores := team.New(n)
		defer cores.Close()
		for _, batch := range []int{0, 1, 4, 16} {
			name := fmt.Sprintf("cores=%d/batch=%d", n, batch)
			if batch == 0 {
				name = fmt.Sprintf("cores=%d/prompt=%d", n, length)
			}
			b.Run(name, func(b *testing.B) {
				ws := model.Workspace{Seat: cores.Seat()}
				kv := m.NewPool(16 * len(table(0, length)))
				defer kv.Close()
				rows := make([]model.Row, max(batch, 1))
				for i := range rows {
					rows[i] = model.Row{Blocks: table(i*len(table(0, length)), length), Tokens: text, Signals: true}
				}
				feed(b, m, &ws, kv, rows...)
				tokens := length
				if batch > 0 {
					tokens = batch
				}
				b.SetBytes(int64(m.Params() * tokens))
				b.ReportAllocs()
				for k := 0; b.Loop(); k++ {
					if batch > 0 {
						for i := range rows {
							rows[i].Start, rows[i].Tokens = k%length, text[k%length:][:1]
						}
					}
					feed(b, m, &ws, kv, rows...)
				}
				b.ReportMetric(float64(b.N*tokens)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
