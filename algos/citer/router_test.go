package citer_test

import (
	_ "embed"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/citer"
	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

//go:embed router.lua
var router string

//go:embed no_weights.lua
var noWeights string

func top1(_ event.Peer, o event.Output) float64 { return float64(o.Top1) }

func TestTwin(t *testing.T) {
	routertest.Twin{
		File: "citer.lua", Text: router, Thresholds: []float64{0.25, 0.5, 0.9, 0.95, math.Nextafter(0.5, 1)},
		Signal: routertest.Head, Rule: citer.Rule,
	}.Check(t)
	routertest.Twin{
		File: "citer_no_weights.lua", Text: noWeights, Thresholds: []float64{0.25, 0.5, 0.75, 1},
		Signal: routertest.Field(func(o *event.Output, v float32) { o.Top1 = v }), Rule: citer.Rule,
	}.Check(t)
}

// Ids, writers and dropped candidates equal those of the reference loop.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		file, text string
		score      reference.Score
	}{
		{"citer.lua", router, routertest.Score},
		{"citer_no_weights.lua", noWeights, top1},
	} {
		routed := 0
		for _, threshold := range []float64{0.25, 0.5, 0.75, 0.95} {
			vms := routertest.Load(t, c.file, c.text, 2, routertest.Seed, map[string]float64{"threshold": threshold})
			for _, r := range routertest.Equal(t, vms, 100, func(run reference.Run) reference.Result {
				return citer.Reference(run, threshold, c.score)
			}) {
				routed += len(r.Dropped)
			}
		}
		if routed < 1000 {
			t.Errorf("%s: only %d tokens were routed", c.file, routed)
		}
	}
}

// The rule by hand: a tie stays with the small model, a low score goes to the
// large one, and a dropped EOS does not end the answer.
func TestReferenceByHand(t *testing.T) {
	confidence := []float64{0.95, math.Nextafter(0.95, 0), 1, 0, 0.96}
	small := routertest.Script{{Token: 3}, {Token: routertest.EOS}, {Token: 5}, {Token: 6}, {Token: routertest.EOS}}
	large := routertest.Script{{Token: 13}, {Token: 14}, {Token: 15}, {Token: 16}, {Token: 17}}
	run := reference.Run{Models: []reference.Model{small, large}, MaxTokens: 9, EOS: []event.Token{routertest.EOS}}
	at := -1
	got := citer.Reference(run, 0.95, func(event.Peer, event.Output) float64 { at++; return confidence[at] })
	want := reference.Result{
		Tokens:  []event.Token{3, 14, 5, 16, routertest.EOS},
		Writers: []event.Peer{0, 1, 0, 1, 0},
		Dropped: []reference.Dropped{{Pos: 1, Token: routertest.EOS}, {Pos: 3, Token: 6}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
