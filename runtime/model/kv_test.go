package model_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"tokenrouter/runtime/model"
)

func feed(t testing.TB, m *model.Model, ws *model.Workspace, kv *model.Pool, rows ...model.Row) {
	t.Helper()
	if err := m.Forward(ws, kv, rows); err != nil {
		t.Fatal(err)
	}
}

// Block 0 holds 16 positions, block 1 three and block 4 15; then everything a step may do
// wrong, and what it changed: nothing.
func TestForwardErrors(t *testing.T) {
	m := small(t)
	other, _ := loadOdd(t)
	var ws model.Workspace
	kv := m.NewPool(8)
	ids := randomIDs(rand.New(rand.NewPCG(3, 3)), m, 40)
	feed(t, m, &ws, kv, model.Row{Blocks: []int32{0, 1}, Tokens: ids[:19]})
	feed(t, m, &ws, kv, model.Row{Blocks: []int32{4}, Tokens: ids[:15]})
	one, two := ids[:1], ids[14:16]
	for _, c := range []struct {
		row  int // to blame, -1 for none
		want string
		rows []model.Row
	}{
		{-1, "at least one row", nil},
		{1, "row 1 has no tokens", []model.Row{{Blocks: []int32{2}, Tokens: one}, {Blocks: []int32{3}}}},
		{0, "starts at position -1", []model.Row{{Blocks: []int32{2}, Start: -1, Tokens: one}}},
		{0, "reaches position 512, but tiny-37k has max_position_embeddings 512", []model.Row{{Blocks: table(0, 600), Start: 3, Tokens: make([]int32, 510)}}},
		{0, "token 424", []model.Row{{Blocks: []int32{0, 1}, Start: 19, Tokens: []int32{424}}}},
		{0, "token -1", []model.Row{{Blocks: []int32{0, 1}, Start: 19, Tokens: []int32{-1}}}},
		{0, "reaches position 0, but its 0 KV blocks end at 0", []model.Row{{Tokens: one}}},
		{0, "reaches position 32, but its 2 KV blocks end at 32", []model.Row{{Blocks: []int32{0, 1}, Start: 19, Tokens: ids[:14]}}},
		{0, "has KV block 8, but the pool has 0..7", []model.Row{{Blocks: []int32{0, 8}, Start: 10, Tokens: one}}},
		{0, "has KV block -1", []model.Row{{Blocks: []int32{-1}, Tokens: one}}},
		{0, "starts at position 20, but KV block 1 holds 3 of the 4", []model.Row{{Blocks: []int32{0, 1}, Start: 20, Tokens: one}}},
		{1, "starts at position 32, but KV block 1 holds 3 of the 16", []model.Row{{Blocks: []int32{2}, Tokens: one}, {Blocks: []int32{0, 1, 3}, Start: 32, Tokens: one}}},
		{0, "KV block 7 holds 0 of the 16", []model.Row{{Blocks: []int32{7, 1}, Start: 16, Tokens: one}}},
		{1, "writes KV block 1, and so does row 0", []model.Row{{Blocks: []int32{0, 1}, Start: 19, Tokens: one}, {Blocks: []int32{0, 1}, Start: 19, Tokens: one}}},
		{1, "writes KV block 4, and so does row 0", []model.Row{{Blocks: []int32{4}, Start: 15, Tokens: one}, {Blocks: []int32{4}, Start: 15, Tokens: one}}},
		{0, "reads KV block 0, which row 1 writes", []model.Row{{Blocks: []int32{0, 1}, Start: 19, Tokens: one}, {Blocks: []int32{0, 2}, Start: 14, Tokens: two}}},
		{0, "writes KV block 2, and so does row 0", []model.Row{{Blocks: []int32{0, 2, 2}, Start: 16, Tokens: ids[:20]}}},
		{0, "reads KV block 0, which row 0 writes", []model.Row{{Blocks: []int32{0, 0}, Start: 16, Tokens: one}}},
	} {
		err := m.Forward(&ws, kv, c.rows)
		var blame *model.RowError
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		} else if errors.As(err, &blame) != (c.row >= 0) || blame != nil && blame.Row != c.row {
			t.Errorf("%v: blames %+v, want row %d", err, blame, c.row)
		}
	}
	for _, p := range []*model.Pool{nil, other.NewPool(4)} {
		if err := m.Forward(&ws, p, []model.Row{{Blocks: []int32{0}, Tokens: one}}); err == nil || !strings.Contains(err.Error(), "not one of tiny-37k") {
			t.Errorf("a foreign pool: %v", err)
		}
	}
	if kv.Taken() != 3 {
		t.Errorf("errors took blocks: %d, want 3", kv.Taken())
	}
	row := all(model.Row{Blocks: []int32{0, 1}, Start: 19, Tokens: ids[19:20]})
	feed(t, m, &ws, kv, row)
	if err := alone(t, m, ids[:20])[19].compare(&ws, 0, &row); err != nil {
		t.Errorf("errors changed what the pool holds: %v", err)
	}
	feed(t, m, &ws, kv, model.Row{Blocks: []int32{0, 1, 2, 3, 4, 5, 6, 7}, Start: 19, Tokens: make([]int32, 109), Logits: true})
}

// Rows of one step share the blocks of a common beginning. One of them may feed
// the last position of such a block again, for its logits.
func TestSharedBlocks(t *testing.T) {
	m := small(t)
	r := rand.New(rand.NewPCG(4, 4))
	var ws model.Workspace
	kv := m.NewPool(8)
	prefix := randomIDs(r, m, 32)
	feed(t, m, &ws, kv, model.Row{Blocks: []int32{5, 2}, Tokens: prefix})
	again := all(model.Row{Blocks: []int32{5, 2}, Start: 31, Tokens: prefix[31:]})
	rows := []model.Row{again, again}
	want := []given{alone(t, m, prefix)[31], alone(t, m, prefix)[31]}
	for i := range 2 {
		own := randomIDs(r, m, 9+i)
		whole := alone(t, m, append(append([]int32(nil), prefix...), own...))
		want = append(want, whole[len(whole)-1])
		rows = append(rows, all(model.Row{Blocks: []int32{5, 2, int32(i)}, Start: 32, Tokens: own}))
	}
	feed(t, m, &ws, kv, rows...)
	for i := range rows {
		if err := want[i].compare(&ws, i, &rows[i]); err != nil {
			t.Error(err)
		}
	}
	if kv.Taken() != 4 {
		t.Errorf("%d blocks have memory, want 4", kv.Taken())
	}
}

// Memory comes with a block's first write, block by block, and is used again.
func TestPoolGrowsAsUsed(t *testing.T) {
	m := small(t)
	var ws model.Workspace
	kv := m.NewPool(1 << 20)
	for i, c := range []struct {
		blocks []int32
		start  int
		n      int
		taken  int
	}{
		{[]int32{3, 900, 7}, 0, 16, 1},
		{[]int32{3, 900, 7}, 16, 1, 2},
		{[]int32{3, 900, 7}, 17, 15, 2},
		{[]int32{3, 900, 7}, 32, 1, 3},
		{[]int32{7, 3}, 0, 32, 3},
		{[]int32{7, 3}, 4, 2, 3},
	} {
		feed(t, m, &ws, kv, model.Row{Blocks: c.blocks, Start: c.start, Tokens: make([]int32, c.n)})
		if kv.Taken() != c.taken {
			t.Errorf("step %d: %d blocks have memory, want %d", i, kv.Taken(), c.taken)
		}
	}
	// The last of these steps left 6 positions in block 7.
	err := m.Forward(&ws, kv, []model.Row{{Blocks: []int32{7, 3}, Start: 7, Tokens: make([]int32, 1)}})
	if err == nil || !strings.Contains(err.Error(), "KV block 7 holds 6 of the 7") {
		t.Errorf("what a rewind cut off is still there: %v", err)
	}
}
