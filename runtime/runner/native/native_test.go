package native_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/runner/native"
)

func newRunner(t testing.TB, self int) *native.Runner {
	t.Helper()
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	return native.New(m, self)
}

// row is a sampling row of a request that has the blocks from 4*id on.
func row(id event.ReqID, start int, s event.Sampling, tokens ...event.Token) event.Row {
	return event.Row{
		Req: id, Start: start, Tokens: tokens, Sample: true, Sampling: s, Prefill: start == 0,
		Blocks: table(4*int(id)+start/model.BlockLen, start%model.BlockLen+len(tokens)),
	}
}

// table is blocks for n positions, from one id on.
func table(from, n int) []event.Block {
	var ids []event.Block
	for ; n > 0; n -= model.BlockLen {
		ids = append(ids, event.Block(from))
		from++
	}
	return ids
}

func step(t testing.TB, r *native.Runner, rows ...event.Row) []event.Output {
	t.Helper()
	out, err := r.Run(t.Context(), &event.Batch{Rows: rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The signals agree with each other: probabilities and log-probabilities of the
// five most likely tokens, entropy in nats and over ln V.
func TestSignals(t *testing.T) {
	o := step(t, newRunner(t, 0), row(1, 0, event.Sampling{}, 418, 310, 198))[0]
	if len(o.TopK) != 5 || o.Token != o.TopK[0].Token {
		t.Fatalf("greedy took %d, the most likely are %v", o.Token, o.TopK)
	}
	if p := math.Exp(float64(o.TopK[0].Logprob)); math.Abs(p-float64(o.Top1)) > 1e-6 {
		t.Errorf("top1 is %g, the first log-probability says %g", o.Top1, p)
	}
	if p := math.Exp(float64(o.TopK[1].Logprob)); math.Abs(p-float64(o.Top2)) > 1e-6 || o.Margin() != o.Top1-o.Top2 {
		t.Errorf("top2 is %g, the second log-probability says %g", o.Top2, p)
	}
	if want := float64(o.Entropy) / math.Log(424); math.Abs(want-float64(o.EntropyNorm)) > 1e-6 || o.Entropy <= 0 {
		t.Errorf("entropy %g nats is %g over ln V, want %g", o.Entropy, o.EntropyNorm, want)
	}
}

// A row yields the same alone and among others, in one step or in two.
func TestRowsAreIndependent(t *testing.T) {
	s := event.Sampling{Temperature: 1, Seed: 5}
	alone := step(t, newRunner(t, 0), row(1, 0, s, 418, 310, 198, 328))[0]
	among := step(t, newRunner(t, 0), row(7, 0, s, 418), row(1, 0, s, 418, 310, 198, 328), row(9, 0, s, 310, 198))[1]
	r := newRunner(t, 0)
	step(t, r, row(1, 0, s, 418, 310))
	resumed := step(t, r, row(1, 2, s, 198, 328))[0]
	for name, got := range map[string]event.Output{"among others": among, "in two steps": resumed} {
		if got.Token != alone.Token || got.Entropy != alone.Entropy || !slices.Equal(got.TopK, alone.TopK) {
			t.Errorf("%s: %+v, alone %+v", name, got, alone)
		}
	}
}

// The draw depends on seed, request, position and model.
func TestSamplingKey(t *testing.T) {
	draws := func(self int, id event.ReqID, seed uint64) []event.Token {
		r := newRunner(t, self)
		var got []event.Token
		for pos := range 40 {
			got = append(got, step(t, r, row(id, pos, event.Sampling{Temperature: 5, Seed: seed}, 198))[0].Token)
		}
		return got
	}
	base := draws(0, 1, 1)
	if !slices.Equal(base, draws(0, 1, 1)) {
		t.Error("the same key gives other tokens")
	}
	for what, other := range map[string][]event.Token{"model": draws(1, 1, 1), "request": draws(0, 2, 1), "seed": draws(0, 1, 2)} {
		if slices.Equal(base, other) {
			t.Errorf("another %s gives the same 40 tokens", what)
		}
	}
}

func TestHiddenAndFree(t *testing.T) {
	r := newRunner(t, 0)
	if _, ok := r.Hidden(1, nil); ok {
		t.Error("a request that never ran has a hidden state")
	}
	step(t, r, row(1, 0, event.Sampling{}, 418, 310))
	h, ok := r.Hidden(1, nil)
	if !ok || len(h) != 32 {
		t.Errorf("hidden state of %d values, want 32", len(h))
	}
	if _, err := r.Run(t.Context(), &event.Batch{Rows: []event.Row{row(1, 5, event.Sampling{}, 198)}}, nil); err == nil || !strings.Contains(err.Error(), "its KV ends at 2") {
		t.Errorf("a gap is answered by %v", err)
	}
	r.Free(1)
	r.Free(1)
	if _, err := r.Run(t.Context(), &event.Batch{Rows: []event.Row{row(1, 2, event.Sampling{}, 198)}}, nil); err == nil {
		t.Error("a freed request still has KV")
	}
}
