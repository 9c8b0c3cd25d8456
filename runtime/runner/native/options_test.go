package native_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/runner/native"
)

// Greedy rows, whose logits are never written down, take the first of the most
// likely tokens; a row that draws at next to no temperature takes the same.
func TestGreedy(t *testing.T) {
	ids := text(30, 3)
	for _, s := range []event.Sampling{{}, {Temperature: -1, TopK: 4}, {Temperature: 2, TopK: 1}, {Temperature: 1e-6, Seed: 9}} {
		o := step(t, newRunner(t, 0), row(1, 0, s, ids...))[0]
		if o.Token != o.TopK[0].Token {
			t.Errorf("%+v: takes %d, the most likely are %v", s, o.Token, o.TopK)
		}
	}
}

// Tokens beyond the vocabulary are never drawn, though signals list them: greedy
// rows take the best one below the bound, also where none of the listed is.
func TestVocabBounds(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	ids := text(30, 3)
	ws, pool := &model.Workspace{}, m.NewPool(4)
	if err := m.Forward(ws, pool, []model.Row{{Blocks: table(0, len(ids)), Tokens: ids, Logits: true}}); err != nil {
		t.Fatal(err)
	}
	logits := ws.Logits(0)
	free := step(t, native.New(m, 0), row(1, 0, event.Sampling{}, ids...))[0]
	var bounds []int
	for _, p := range free.TopK {
		bounds = append(bounds, int(p.Token), int(p.Token)+1)
	}
	bounds = append(bounds, 1, len(logits), len(logits)+100)
	for _, bound := range bounds {
		if bound == 0 {
			continue
		}
		want, err := kernels.Argmax(logits[:min(bound, len(logits))])
		if err != nil {
			t.Fatal(err)
		}
		r := native.NewWith(m, 0, native.Options{Vocab: bound})
		got := step(t, r, row(1, 0, event.Sampling{}, ids...))[0]
		if got.Token != want {
			t.Errorf("bound %d: takes %d, the best below it is %d", bound, got.Token, want)
		}
		got.Token = free.Token
		if !reflect.DeepEqual(got, free) {
			t.Errorf("bound %d: signals %+v, without it %+v", bound, got, free)
		}
		for seed := range uint64(50) {
			s := event.Sampling{Temperature: 50, Seed: seed}
			if got := step(t, r, row(2, 0, s, ids...))[0]; int(got.Token) >= bound {
				t.Fatalf("bound %d, seed %d: drew %d", bound, seed, got.Token)
			}
		}
	}
}

// Parameters that are no numbers are refused, greedy or not.
func TestParametersAreNumbers(t *testing.T) {
	nan := float32(math.NaN())
	for _, s := range []event.Sampling{{Temperature: nan}, {Temperature: nan, TopK: 1}, {TopP: nan}, {Temperature: 1, TopP: nan}} {
		_, err := newRunner(t, 0).Run(t.Context(), &event.Batch{Rows: []event.Row{row(1, 0, s, 418)}}, nil)
		if err == nil || !strings.Contains(err.Error(), "tiny-37k: request 1 at position 1: ") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// What a row yields does not depend on the cores, nor on a neighbour that has a
// seat at them too.
func TestCoresChangeNothing(t *testing.T) {
	m, err := tiny.Load("tiny-842k")
	if err != nil {
		t.Fatal(err)
	}
	ids, other, late := text(70, 5), text(45, 6), text(20, 7)
	batches := [][]event.Row{
		{part(1, ids, 0, 50, table(0, 50)...), part(2, other, 0, 44, table(10, 44)...)},
		{part(1, ids, 50, 70, 3, 4), part(3, late, 0, 20, 20, 21), part(2, other, 44, 45, 12)},
	}
	run := func(r *native.Runner) (got [][]event.Output) {
		for _, rows := range batches {
			got = append(got, step(t, r, rows...))
		}
		return got
	}
	want := run(native.New(m, 0))
	cores := team.New(2)
	defer cores.Close()
	a, b := native.NewWith(m, 0, native.Options{Cores: cores}), native.NewWith(m, 0, native.Options{Blocks: 64, Cores: cores})
	done := make(chan [][]event.Output)
	go func() {
		var got [][]event.Output
		for _, rows := range batches {
			out, err := b.Run(t.Context(), &event.Batch{Rows: rows}, nil)
			if err != nil {
				t.Error(err)
			}
			got = append(got, out)
		}
		done <- got
	}()
	if got := run(a); !reflect.DeepEqual(got, want) {
		t.Errorf("two cores give %+v, one %+v", got, want)
	}
	if got := <-done; !reflect.DeepEqual(got, want) {
		t.Errorf("the neighbour gives %+v, alone %+v", got, want)
	}
	for _, r := range []*native.Runner{a, b, a} {
		if err := r.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}
