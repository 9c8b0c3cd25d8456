package tiny_test

import (
	"slices"
	"testing"

	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
)

// TestThreadsChangeNothing: a step large enough to be split gives the same bits
// however many cores it is split over (case G1).
func TestThreadsChangeNothing(t *testing.T) {
	m := load(t, "tiny-842k")
	run := func(seat *team.Seat) []float32 {
		ws := model.Workspace{Seat: seat}
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
	want := run(nil)
	for _, n := range []int{1, 2, 3, 8} {
		cores := team.New(n)
		if got := run(cores.Seat()); !slices.Equal(got, want) {
			t.Errorf("%d cores give other logits than one", n)
		}
		cores.Close()
	}
}
