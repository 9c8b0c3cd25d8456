package emulated

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

// Each round has every recorded request once; a seed gives one order, whoever asks
// first for what.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := make([]event.ReqID, rapid.IntRange(1, 40).Draw(t, "requests"))
		seed := rapid.Uint64().Draw(t, "seed")
		a, err := NewOrder(ids, seed)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := NewOrder(ids, seed)
		n := len(ids)
		late := b.At(3*n - 1)
		for round := range 3 {
			var seen []int
			for i := range n {
				seen = append(seen, a.At(round*n+i))
			}
			if round == 2 && seen[n-1] != late {
				t.Fatalf("%d, and %d for who asks for it first", seen[n-1], late)
			}
			if slices.Sort(seen); seen[0] != 0 || seen[n-1] != n-1 || len(slices.Compact(seen)) != n {
				t.Fatalf("round %d has %v", round, seen)
			}
		}
	})
	if _, err := NewOrder(nil, 1); err == nil {
		t.Error("an order of nothing")
	}
}

// A request that comes again says what the recorded one said, and the batch of who
// asks is left as it was.
func TestAgain(t *testing.T) {
	r := record(t, short())
	o, err := NewOrder([]event.ReqID{1, 2}, 9)
	if err != nil {
		t.Fatal(err)
	}
	a := &Again{Recording: r, Order: o}
	for i := range 8 {
		id := event.ReqID(i + 1)
		of := o.ids[o.At(i)]
		want := map[event.ReqID]event.Token{1: 11, 2: 21}[of]
		b := &event.Batch{Rows: []event.Row{decode(id, 3, event.Sampling{})}}
		out, err := New(a, 0).Run(t.Context(), b, nil)
		if err != nil || out[0].Token != want {
			t.Errorf("request %d is %d again: %v, %v; want %d", id, of, out, err, want)
		}
		if b.Rows[0].Req != id {
			t.Errorf("the batch asks for request %d now", b.Rows[0].Req)
		}
	}
	if r.Missing() != 0 {
		t.Errorf("%d missing", r.Missing())
	}
	if _, err := a.Answer(0, &event.Batch{Rows: []event.Row{decode(0, 3, event.Sampling{})}}, nil); err == nil {
		t.Error("request 0 is none")
	}
}
