package tiny_test

import (
	"slices"
	"testing"

	"tokenrouter/runtime/model"
)

// TestThreadsChangeNothing: a step large enough to be split gives the same bits
// however many threads it is split over (case G1).
func TestThreadsChangeNothing(t *testing.T) {
	m := load(t, "tiny-842k")
	run := func(threads int) []float32 {
		ws := model.Workspace{Threads: threads}
		kv := m.NewPool(25)
		var rows []model.Row
		for i := range 5 {
			rows = append(rows, model.Row{Blocks: table(5*i, 80), Tokens: prompt(40 + 7*i), Logits: true})
		}
		step(t, m, &ws, kv, rows...)
		var all []float32
		for i := range rows {
			all = append(all, ws.Logits(i)...)
		}
		return all
	}
	want := run(1)
	for _, threads := range []int{2, 3, 64} {
		if got := run(threads); !slices.Equal(got, want) {
			t.Errorf("%d threads give other logits than one", threads)
		}
	}
}
