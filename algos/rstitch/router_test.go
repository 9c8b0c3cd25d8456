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
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

//go:embed router.lua
var router string

// Case I9: the router and the rule decide alike on 10,000 rows, ties at the
// threshold and its neighbours included.
func TestTwin(t *testing.T) {
	for _, threshold := range []float64{0, 0.03, 0.25, math.Nextafter(0.25, 1), 1} {
		vms := routertest.Load(t, "rstitch.lua", router, 2, 1, map[string]float64{"threshold": threshold})
		for i := range 2000 {
			o := routertest.Signals(rng.Key{Seed: 6, Req: uint64(i)})
			switch i % 4 {
			case 0:
				o.EntropyNorm = float32(threshold)
			case 1:
				o.EntropyNorm = math.Nextafter32(float32(threshold), float32(i%3))
			}
			for self := range event.Peer(2) {
				dest, action := rstitch.Rule(&o, self, threshold)
				d := vms[self].Route(&scripting.Row{Req: event.ReqID(i), Output: &o, Pos: 9, PromptLen: 5})
				if d.Fault != "" || d.Dest != dest || d.Action != action {
					t.Fatalf("H = %v at %d, threshold %v: %+v, want %d %s", o.EntropyNorm, self, threshold, d, dest, action)
				}
			}
		}
	}
}

// Ids, writers and dropped candidates equal those of the reference loop, at
// every threshold of the paper and at some that make long runs.
func TestReference(t *testing.T) {
	longest := 0
	for _, threshold := range []float64{0.001, 0.02, 0.03, 0.125, 0.5} {
		vms := routertest.Load(t, "rstitch.lua", router, 2, 3, map[string]float64{"threshold": threshold})
		for req := range 200 {
			run := reference.Run{
				Models: routertest.Models(2), Req: event.ReqID(req + 1), Prompt: []event.Token{1, 2, event.Token(req)},
				MaxTokens: 40, EOS: []event.Token{routertest.EOS}, Seed: 3,
			}
			want, got := rstitch.Reference(run, threshold), routertest.Play(t, run, vms)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("request %d, threshold %v: %s", req, threshold, diff)
			}
			length := 0
			for _, m := range want.Writers {
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
	small := script{{1, 0.1}, {2, 0.4}, {3, 0}, {4, 0}, {5, 0.3}, {6, 0.31}}
	large := script{{11, 1}, {12, 0.9}, {13, 0.3}, {14, 1}, {15, 1}, {16, 0}}
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

// script is a model that says the same whatever came before.
type script []struct {
	token   event.Token
	entropy float32
}

func (s script) Next(_ []event.Token, _ event.ReqID, pos int) event.Output {
	return event.Output{Token: s[pos].token, EntropyNorm: s[pos].entropy}
}
