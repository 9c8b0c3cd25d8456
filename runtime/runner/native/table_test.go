package native_test

import (
	"reflect"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/runner/native"
)

// text is n tokens without meaning; another seed gives other ones.
func text(n, seed int) []event.Token {
	ids := make([]event.Token, n)
	for i := range ids {
		ids[i] = event.Token((i*37 + seed*i*i + 11*seed) % 417)
	}
	return ids
}

// part is a row over ids[from:to]; only the row that reaches the end samples.
func part(id event.ReqID, ids []event.Token, from, to int, blocks ...event.Block) event.Row {
	return event.Row{
		Req: id, Start: from, Tokens: ids[from:to], Sample: to == len(ids), Prefill: from == 0, Blocks: blocks,
		Sampling: event.Sampling{Temperature: 1, Seed: 5},
	}
}

// result is all that a row gives.
type result struct {
	event.Output
	hidden []float32
}

// last is the result of request id's row, the only one that samples.
func last(t *testing.T, r *native.Runner, id event.ReqID, rows ...event.Row) result {
	t.Helper()
	out := step(t, r, rows...)
	if len(out) != 1 {
		t.Fatalf("%d outputs, want 1", len(out))
	}
	h, ok := r.Hidden(id, nil)
	if !ok {
		t.Fatal("no hidden state")
	}
	return result{out[0], h}
}

// whole is the result of a text computed at once by a runner of its own.
func whole(t *testing.T, id event.ReqID, ids []event.Token) result {
	t.Helper()
	return last(t, newRunner(t, 0), id, part(id, ids, 0, len(ids), table(0, len(ids))...))
}

func same(t *testing.T, what string, got, want result) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// A prompt in two or three chunks is the prompt at once; a chunk that is not the
// last yields nothing.
func TestChunks(t *testing.T) {
	ids := text(40, 1)
	want := whole(t, 1, ids)
	table := []event.Block{9, 0, 4}
	for a := 1; a < len(ids); a++ {
		r := newRunner(t, 0)
		if out := step(t, r, part(1, ids, 0, a, table[:(a+15)/16]...)); len(out) != 0 {
			t.Fatalf("a chunk of %d yields %v", a, out)
		}
		if b := a + (len(ids)-a)/2; b > a {
			step(t, r, part(1, ids, a, b, table[a/16:]...))
			a = b
		}
		same(t, "the last chunk", last(t, r, 1, part(1, ids, a, len(ids), table[a/16:]...)), want)
	}
}

// A beginning that an earlier request filled gives what it gives when computed
// again, to two requests in one step and after its first owner is gone.
func TestPrefixCache(t *testing.T) {
	begin := text(32, 1)
	ids := func(n, seed int) []event.Token { return append(append([]event.Token(nil), begin...), text(n, seed)...) }
	r := newRunner(t, 0)
	first := ids(3, 7)
	step(t, r, part(1, first, 0, len(first), 3, 1, 5))
	two, three := ids(20, 2), ids(1, 3)
	cached := func(id event.ReqID, ids []event.Token, n int, blocks ...event.Block) event.Row {
		row := part(id, ids, n, len(ids), blocks...)
		row.Prefill, row.Cached = true, n
		return row
	}
	three2 := cached(3, three, 32, 3, 1, 0)
	three2.Sample = false
	same(t, "shared by two", last(t, r, 2, cached(2, two, 32, 3, 1, 2, 4), three2), whole(t, 2, two))
	r.Free(1)
	r.Free(2)
	four := ids(5, 4)
	same(t, "its owner gone", last(t, r, 4, cached(4, four, 16, 3, 5, 2)), whole(t, 4, four))
	same(t, "still in use", last(t, r, 3, part(3, three, 32, 33, 0)), whole(t, 3, three))
}

// What is at Start and behind is overwritten, blocks change where the row says.
func TestRewind(t *testing.T) {
	old, ids := text(50, 1), text(50, 1)
	copy(ids[21:], text(29, 6))
	r := newRunner(t, 0)
	step(t, r, part(1, old, 0, 50, 0, 1, 2, 3))
	same(t, "from 21", last(t, r, 1, part(1, ids, 21, 50, 1, 8, 9)), whole(t, 1, ids))
	same(t, "the last token again", last(t, r, 1, part(1, ids, 49, 50, 9)), whole(t, 1, ids))
	short := ids[:24]
	same(t, "from 16 in another block", last(t, r, 1, part(1, short, 16, 24, 7)), whole(t, 1, short))
	_, err := r.Run(t.Context(), &event.Batch{Rows: []event.Row{part(1, ids, 30, 31, 7)}}, nil)
	if err == nil || !strings.Contains(err.Error(), "request 1 asks for position 30, its KV ends at 24") {
		t.Errorf("what a rewind cut off is still there: %v", err)
	}
}

// A request whose blocks were taken and given to another in the same step
// computes the same again, elsewhere; so does one whose Free never came.
func TestPreempt(t *testing.T) {
	ids, other := text(45, 1), text(30, 2)
	r := newRunner(t, 0)
	step(t, r, part(1, ids, 0, 40, 0, 1, 2), part(9, ids, 0, 40, 10, 11, 12))
	r.Free(1)
	same(t, "the taker", last(t, r, 2, part(2, other, 0, 30, 2, 0), part(9, ids, 40, 44, 12)), whole(t, 2, other))
	same(t, "computed again", last(t, r, 1, part(1, ids, 0, 45, 4, 1, 3)), whole(t, 1, ids))
	same(t, "without Free", last(t, r, 9, part(9, ids, 0, 45, 12, 10, 13), part(3, other, 0, 16, 11)), whole(t, 9, ids))
}

// Memory is what the ids in use need, however many requests come.
func TestMemoryIsReused(t *testing.T) {
	r := newRunner(t, 0)
	for id := event.ReqID(1); id < 60; id++ {
		ids := text(1+int(id*7)%60, int(id))
		step(t, r, part(id, ids, 0, len(ids), table(int(id)%5, len(ids))...))
		r.Free(id)
	}
	if r.Taken() != 8 {
		t.Errorf("%d blocks have memory, want the 8 that were named", r.Taken())
	}
}

// Wrong rows are refused, by the name of their request, and change nothing.
func TestFaults(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	ids := text(60, 1)
	r := native.NewWithBlocks(m, 0, 8)
	step(t, r, part(1, ids, 0, 20, 0, 1))
	prefill := func(from, cached int, blocks ...event.Block) event.Row {
		row := part(7, ids, from, from+4, blocks...)
		row.Prefill, row.Cached = true, cached
		return row
	}
	for want, row := range map[string]event.Row{
		"request 7 has a row without KV blocks":                             part(7, ids, 0, 4),
		"request 7 has KV block 8, but the pool has 0..7":                   part(7, ids, 0, 20, 2, 8),
		"request 7 has KV block -1":                                         part(7, ids, 0, 4, -1),
		"request 7 reaches position 32, but its 2 KV blocks end at 32":      part(7, ids, 0, 33, 2, 3),
		"request 1 reaches position 32, but its 2 KV blocks end at 32":      part(1, ids, 20, 33, 1),
		"request 1 asks for position 21, its KV ends at 20":                 part(1, ids, 21, 22, 1),
		"request 7 asks for position 3, its KV ends at 0":                   part(7, ids, 3, 4, 2),
		"request 7 asks for position -1":                                    {Req: 7, Start: -1, Tokens: ids[:2], Blocks: []event.Block{2}},
		"request 7 begins at position 16, but the prefix cache gives it 0":  prefill(16, 0, 0, 2),
		"request 7 begins at position 0, but the prefix cache gives it 16":  prefill(0, 16, 0, 2),
		"request 7 is given 20 positions of the prefix cache":               prefill(20, 20, 0, 1),
		"request 7 starts at position 32, but KV block 1 holds 4 of the 16": prefill(32, 32, 0, 1, 2),
		"request 7 starts at position 16, but KV block 5 holds 0 of the 16": prefill(16, 16, 5, 2),
		"request 7 writes KV block 1, and so does row 0":                    part(7, ids, 0, 4, 1),
		"request 7 has token 424":                                           {Req: 7, Tokens: []event.Token{424}, Blocks: []event.Block{2}},
	} {
		good := part(1, ids, 20, 21, 1)
		rows := []event.Row{good, row}
		if row.Req == 1 {
			rows = rows[1:]
		}
		if out, err := r.Run(t.Context(), &event.Batch{Rows: rows}, nil); err == nil || len(out) != 0 || !strings.HasPrefix(err.Error(), "tiny-37k: "+want) {
			t.Errorf("%d outputs, %v; want %q", len(out), err, want)
		}
		r.Free(7)
	}
	if r.Taken() != 2 {
		t.Errorf("refused rows took blocks: %d, want 2", r.Taken())
	}
	same(t, "after all that", last(t, r, 1, part(1, ids[:30], 20, 30, 1)), whole(t, 1, ids[:30]))
	// The other row of a refused step has moved its request's table all the same.
	for _, c := range []struct {
		want string
		rows []event.Row
	}{
		{"request 7 has a row without KV blocks", []event.Row{part(1, ids, 16, 18, 5), part(7, ids, 0, 4)}},
		{"request 1 asks for position 30, its KV ends at 16", []event.Row{part(1, ids, 30, 31, 5)}},
	} {
		if _, err := r.Run(t.Context(), &event.Batch{Rows: c.rows}, nil); err == nil || !strings.HasPrefix(err.Error(), "tiny-37k: "+c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// A slice of a batch is never kept: the core may hand it to others (INV-15).
func TestTableIsCopied(t *testing.T) {
	ids := text(20, 1)
	r := newRunner(t, 0)
	first := part(1, ids, 0, 17, 3, 4)
	step(t, r, first)
	first.Blocks[0] = 6
	same(t, "the caller's slice changed", last(t, r, 1, part(1, ids, 17, 20, 4)), whole(t, 1, ids))
}
