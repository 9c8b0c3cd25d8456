package tiny_test

import (
	"fmt"
	"testing"

	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
)

// BenchmarkDecode measures steps of one token per row at contexts of 50 to 140
// tokens, the length of the family's problems, with logits.
func BenchmarkDecode(b *testing.B) {
	for _, name := range tiny.Names() {
		for _, batch := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(b *testing.B) {
				m := load(b, name)
				var ws model.Workspace
				kv := m.NewPool(9 * batch)
				rows := make([]model.Row, batch)
				ids := prompt(50)
				for i := range rows {
					rows[i] = model.Row{Blocks: table(9*i, 140), Tokens: ids, Logits: true}
				}
				step(b, m, &ws, kv, rows...)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					for j := range rows {
						rows[j].Start, rows[j].Tokens = 50+i%90, ids[:1]
					}
					if err := m.Forward(&ws, kv, rows); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

// BenchmarkPrefill measures prompts of 50 tokens in one step, on one thread and
// on two.
func BenchmarkPrefill(b *testing.B) {
	for _, name := range tiny.Names() {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				m := load(b, name)
				cores := team.New(threads)
				defer cores.Close()
				ws := model.Workspace{Seat: cores.Seat()}
				kv := m.NewPool(4)
				rows := []model.Row{{Blocks: table(0, 50), Tokens: prompt(50), Logits: true}}
				b.ReportAllocs()
				for b.Loop() {
					if err := m.Forward(&ws, kv, rows); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*50)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

// prompt is n ids without meaning, the same each time.
func prompt(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i * 37 % 417)
	}
	return ids
}
