package rstitch_test

import (
	_ "embed"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/reference"
	"tokenrouter/algos/rstitch"
	"tokenrouter/runtime/event"
)

//go:embed router.lua
var router string

func TestTwin(t *testing.T) {
	routertest.Twin{
		File: "rstitch.lua", Text: router, Thresholds: []float64{0, 0.001, 0.03, 0.25, math.Nextafter(0.25, 1)},
		Signal: routertest.Field(func(o *event.Output, v float32) { o.EntropyNorm = v }),
		Rule: func(norm float64, self event.Peer, threshold float64) (event.Peer, event.Action) {
			return rstitch.Rule(&event.Output{EntropyNorm: float32(norm)}, self, threshold)
		},
	}.Check(t)
}

// Ids, writers and dropped candidates equal those of the reference loop, at
// every threshold of the paper and at some that make long runs.
func TestReference(t *testing.T) {
	longest := 0
	for _, threshold := range []float64{0.001, 0.02, 0.03, 0.125, 0.5} {
		vms := routertest.Load(t, "rstitch.lua", router, 2, routertest.Seed, map[string]float64{"threshold": threshold})
		for _, r := range routertest.Equal(t, vms, 200, func(run reference.Run) reference.Result { return rstitch.Reference(run, threshold) }) {
			length := 0
			for _, m := range r.Writers {
				if length++; m == 0 {
					length = 0
				}
				longest = max(longest, length)
			}
		}
	}
	if longest < 5 {
		t.Errorf("the longest run of the large model has %d tokens", longest)
	}
}

// Algorithm 1 by hand: the unsure token of the small model is dropped, the large
// model's sure token is kept and gives control back.
func TestReferenceByHand(t *testing.T) {
	small, large := script(1, 0.1, 2, 0.4, 3, 0, 4, 0, 5, 0.3, 6, 0.31), script(11, 1, 12, 0.9, 13, 0.3, 14, 1, 15, 1, 16, 0)
	got := rstitch.Reference(reference.Run{Models: []reference.Model{small, large}, MaxTokens: 6}, 0.3)
	want := reference.Result{
		Tokens:  []event.Token{1, 12, 13, 4, 5, 16},
		Writers: []event.Peer{0, 1, 1, 0, 0, 1},
		Dropped: []reference.Dropped{{Pos: 1, Token: 2}, {Pos: 5, Token: 6}},
	}
	// 0.3 and its float32 differ: the tie at position 2 needs the exact value.
	if diff := cmp.Diff(want, got); diff == "" {
		t.Error("float32(0.3) > 0.3 was taken for a tie")
	}
	got = rstitch.Reference(reference.Run{Models: []reference.Model{small, large}, MaxTokens: 6}, float64(float32(0.3)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// script is a model that says the same whatever came before: tokens with their
// normalised entropies.
func script(said ...float32) (s routertest.Script) {
	for i := 0; i < len(said); i += 2 {
		s = append(s, event.Output{Token: event.Token(said[i]), EntropyNorm: said[i+1]})
	}
	return s
}
