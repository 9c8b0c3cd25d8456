package native_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/runner/paced"
)

// top is the k largest logits after a text, from a forward pass of its own.
func top(t *testing.T, m *model.Model, k int, text ...event.Token) []float32 {
	t.Helper()
	var ws model.Workspace
	pool := m.NewPool(8)
	defer pool.Close()
	err := m.Forward(&ws, pool, []model.Row{{Blocks: table(0, len(text)), Tokens: text, Logits: true}})
	if err != nil {
		t.Fatal(err)
	}
	l := slices.Clone(ws.Logits(0))
	slices.Sort(l)
	slices.Reverse(l)
	return l[:min(k, len(l))]
}

// The largest logits are those of the text alone, whether the step kept them, as
// from the second question on, or the row is looked at again; greedy and sampled.
func TestTopLogits(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	for _, temperature := range []float32{0, 1} {
		r := native.New(m, 0)
		s := event.Sampling{Temperature: temperature, Seed: 2}
		if _, ok := r.TopLogits(1, 5, nil); ok {
			t.Error("a request that never ran has logits")
		}
		texts := map[event.ReqID][]event.Token{1: {418, 310, 198}, 2: {310}, 3: {7, 8, 9, 10}}
		step(t, r, row(2, 0, s, texts[2]...), row(1, 0, s, texts[1]...), row(3, 0, s, texts[3]...))
		for round := range 3 {
			for id, text := range texts {
				for _, k := range []int{1, 5, 100, 424, 1000} {
					got, ok := r.TopLogits(id, k, nil)
					if want := top(t, m, k, text...); !ok || !slices.Equal(got, want) {
						t.Fatalf("round %d, request %d, the %d largest: %v, alone %v", round, id, k, got, want)
					}
				}
			}
			var rows []event.Row
			for id := event.ReqID(1); id <= 3; id++ {
				next := event.Token(20*round) + event.Token(id)
				rows = append(rows, row(id, len(texts[id]), s, next))
				texts[id] = append(texts[id], next)
			}
			step(t, r, rows...)
		}
		step(t, r, row(1, len(texts[1]), s, 5))
		if _, ok := r.TopLogits(2, 5, nil); ok {
			t.Error("a row of an earlier step has logits")
		}
		r.Free(1)
		if _, ok := r.TopLogits(1, 5, nil); ok {
			t.Error("a request that is gone has logits")
		}
	}
}

// Steps keep logits only while somebody asks.
func TestLogitsAreKeptOnDemand(t *testing.T) {
	r := newRunner(t, 0)
	s := event.Sampling{}
	step(t, r, row(1, 0, s, 418))
	if native.KeptLogits(r, 1) {
		t.Error("logits are kept though nobody has asked")
	}
	r.TopLogits(1, 5, nil)
	for pos := 1; pos <= native.KeepSteps+1; pos++ {
		step(t, r, row(1, pos, s, 310))
		if want := pos <= native.KeepSteps; native.KeptLogits(r, 1) != want {
			t.Fatalf("%d steps after the question logits are kept: %v", pos, !want)
		}
	}
}

func TestEmbedding(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	r := native.New(m, 0)
	seen := map[float32]bool{}
	for _, id := range []event.Token{0, 17, 423} {
		e, ok := r.Embedding(id, nil)
		if !ok || len(e) != m.Config.Hidden || seen[e[0]] {
			t.Errorf("the embedding of %d is %v", id, e)
		}
		seen[e[0]] = true
	}
	for _, id := range []event.Token{-1, 424, math.MaxInt32} {
		if _, ok := r.Embedding(id, nil); ok {
			t.Errorf("token %d has an embedding", id)
		}
	}
}

// Features are found through the pacer, and not where no model computes.
func TestFeaturesOf(t *testing.T) {
	r := newRunner(t, 0)
	if f, ok := runner.FeaturesOf(paced.New(r, paced.NewPacer(), 0)); !ok || f != runner.Features(r) {
		t.Error("the features of a paced runner are not found")
	}
	if _, ok := runner.FeaturesOf(none{}); ok {
		t.Error("a runner without a model has features")
	}
}

type none struct{ runner.Runner }

// The heap gives what a sort gives, with ties, infinities and values that are no
// numbers.
func TestTopOfAnyLogits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 400; n += 7 {
		l := make([]float32, n)
		for i := range l {
			switch r.IntN(12) {
			case 0:
				l[i] = float32(math.Inf(-1))
			case 1:
				l[i] = float32(math.NaN())
			default:
				l[i] = float32(r.IntN(50)) / 4
			}
		}
		want := slices.Clone(l)
		for i, v := range want {
			if v != v {
				want[i] = float32(math.Inf(-1))
			}
		}
		slices.Sort(want)
		slices.Reverse(want)
		for _, k := range []int{1, 2, 10, 100, n, n + 1} {
			got := native.TopOf(nil, l, k)
			for i := range got {
				// NaN never pushes out -Inf: both are the least.
				if got[i] != want[i] {
					t.Fatalf("the %d largest of %v: %v, want %v", k, l, got, want[:min(k, n)])
				}
			}
			if len(got) != min(k, n) {
				t.Fatalf("%d values, want %d", len(got), min(k, n))
			}
		}
	}
}

func BenchmarkTopLogits(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	l := make([]float32, 151_936)
	for i := range l {
		l[i] = float32(r.NormFloat64())
	}
	var dst []float32
	b.ReportAllocs()
	for b.Loop() {
		dst = native.TopOf(dst[:0], l, 100)
	}
}
