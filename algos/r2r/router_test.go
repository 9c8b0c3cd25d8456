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
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

//go:embed router.lua
var router string

// Case I9: the router and the rule decide alike on 10,000 rows, ties at the
// threshold and its neighbours included.
func TestTwin(t *testing.T) {
	for _, threshold := range []float64{0, 0.5, 0.75, math.Nextafter(0.5, 0), 4} {
		vms := routertest.Load(t, "r2r.lua", router, 2, 1, map[string]float64{"threshold": threshold})
		ties := 0
		for i := range 2000 {
			o := routertest.Signals(rng.Key{Seed: 5, Req: uint64(i)})
			switch i % 4 {
			case 0:
				o.Entropy = float32(threshold)
			case 1:
				o.Entropy = math.Nextafter32(float32(threshold), float32(i%3)*10)
			}
			if float64(o.Entropy) == threshold {
				ties++
			}
			for self := range event.Peer(2) {
				dest, action := r2r.Rule(&o, self, threshold)
				d := vms[self].Route(&scripting.Row{Req: event.ReqID(i), Output: &o, Pos: 9, PromptLen: 5})
				if d.Fault != "" || d.Dest != dest || d.Action != action {
					t.Fatalf("H = %v at %d, threshold %v: %+v, want %d %s", o.Entropy, self, threshold, d, dest, action)
				}
			}
		}
		if float64(float32(threshold)) == threshold && ties < 500 {
			t.Errorf("only %d rows lie on the threshold %v", ties, threshold)
		}
	}
}

// Ids, writers and dropped candidates equal those of the reference loop.
func TestReference(t *testing.T) {
	routed := 0
	for _, threshold := range []float64{0.2, 0.5, math.Log(routertest.Vocab) / 4} {
		vms := routertest.Load(t, "r2r.lua", router, 2, 3, map[string]float64{"threshold": threshold})
		for req := range 200 {
			run := reference.Run{
				Models: routertest.Models(2), Req: event.ReqID(req + 1), Prompt: []event.Token{1, 2, event.Token(req)},
				MaxTokens: 40, EOS: []event.Token{routertest.EOS}, Seed: 3,
			}
			want, got := r2r.Reference(run, threshold), routertest.Play(t, run, vms)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("request %d, threshold %v: %s", req, threshold, diff)
			}
			routed += len(want.Dropped)
		}
	}
	if routed < 1000 {
		t.Errorf("only %d tokens were routed", routed)
	}
}

// The rule by hand: which model writes, what is dropped, and that
// a dropped EOS does not end the answer.
func TestReferenceByHand(t *testing.T) {
	small := script{{3, 0.1}, {routertest.EOS, 0.9}, {5, 0.5}, {6, 0.49}, {routertest.EOS, 0}}
	large := script{{13, 9}, {14, 9}, {15, 9}, {16, 9}, {17, 9}}
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

// script is a model that says the same whatever came before.
type script []struct {
	token   event.Token
	entropy float32
}

func (s script) Next(_ []event.Token, _ event.ReqID, pos int) event.Output {
	return event.Output{Token: s[pos].token, Entropy: s[pos].entropy}
}
