package r2r_test

import (
	_ "embed"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/r2r"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

//go:embed router.lua
var router string

//go:embed neural.lua
var neural string

//go:embed outcome.lua
var outcome string

func TestTwin(t *testing.T) {
	routertest.Twin{
		File: "r2r.lua", Text: router, Thresholds: []float64{0, 0.45, 0.5, 0.75, math.Nextafter(0.5, 0)},
		Signal: routertest.Field(func(o *event.Output, v float32) { o.Entropy = v }), Rule: r2r.Rule,
	}.Check(t)
	for file, text := range map[string]string{"r2r_neural.lua": neural, "r2r_outcome.lua": outcome} {
		routertest.Twin{
			File: file, Text: text, Thresholds: []float64{0, 0.1387, 0.406, 0.42, 0.5},
			Signal: routertest.Head, Rule: r2r.Rule,
		}.Check(t)
	}
}

// Ids, writers and dropped candidates equal those of the reference loop.
func TestReference(t *testing.T) {
	routed := 0
	for _, threshold := range []float64{0.2, 0.45, math.Log(routertest.Vocab) / 4} {
		vms := routertest.Load(t, "r2r.lua", router, 2, routertest.Seed, map[string]float64{"threshold": threshold})
		for _, r := range routertest.Equal(t, vms, 200, func(run reference.Run) reference.Result { return r2r.Reference(run, threshold) }) {
			routed += len(r.Dropped)
		}
	}
	for threshold, text := range map[float64]string{0.25: neural, 0.5: neural, 0.375: outcome} {
		vms := routertest.Load(t, "r2r_neural.lua", text, 2, routertest.Seed, map[string]float64{"threshold": threshold})
		for _, r := range routertest.Equal(t, vms, 200, func(run reference.Run) reference.Result {
			return r2r.NeuralReference(run, threshold, routertest.Score)
		}) {
			routed += len(r.Dropped)
		}
	}
	if routed < 5000 {
		t.Errorf("only %d tokens were routed", routed)
	}
}

// The rule by hand: which model writes, what is dropped, and that
// a dropped EOS does not end the answer.
func TestReferenceByHand(t *testing.T) {
	small, large := script(3, 0.1, float64(routertest.EOS), 0.9, 5, 0.5, 6, 0.49, float64(routertest.EOS), 0), script(13, 9, 14, 9, 15, 9, 16, 9, 17, 9)
	run := reference.Run{Models: []reference.Model{small, large}, MaxTokens: 9, EOS: []event.Token{routertest.EOS}}
	got := r2r.Reference(run, 0.5)
	want := reference.Result{
		Tokens:  []event.Token{3, 14, 15, 6, routertest.EOS},
		Writers: []event.Peer{0, 1, 1, 0, 0},
		Dropped: []reference.Dropped{{Pos: 1, Token: routertest.EOS}, {Pos: 2, Token: 5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	run.MaxTokens = 2
	if got := r2r.Reference(run, 0.5); fmt.Sprint(got.Tokens) != "[3 14]" {
		t.Errorf("%v", got.Tokens)
	}
}

// script is a model that says the same whatever came before: tokens with their
// entropies.
func script(said ...float64) (s routertest.Script) {
	for i := 0; i < len(said); i += 2 {
		s = append(s, event.Output{Token: event.Token(said[i]), Entropy: float32(said[i+1])})
	}
	return s
}
