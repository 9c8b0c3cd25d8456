package me_test

import (
	_ "embed"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/me"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

//go:embed router.lua
var router string

func knobs(weights []float64) map[string]float64 {
	set := map[string]float64{"small": weights[0], "large": weights[len(weights)-1]}
	if len(weights) == 3 {
		set["middle"] = weights[1]
	}
	return set
}

var settings = [][]float64{{1, 1}, {3, 1}, {0, 1}, {1, 0}, {0, 0}, {1, 1, 1}, {2, 0.5, 1}, {0, 1, 0}, {1, 0, 3}, {0.1, 0.2, 0.3}}

// Case I9: the router and the rule decide alike on 10,000 rows.
func TestTwin(t *testing.T) {
	for _, weights := range settings {
		vms := routertest.Load(t, "me.lua", router, len(weights), 77, knobs(weights))
		for i := range 1000 {
			o := routertest.Signals(rng.Key{Seed: 7, Req: uint64(i)})
			self := event.Peer(i % len(weights))
			pos := 5 + i/7%3
			key := rng.Key{Seed: 77, Req: uint64(i), Pos: pos, Model: int(self), Purpose: rng.Router}
			dest, action := me.Rule(key, pos == 5, self, weights)
			d := vms[self].Route(&scripting.Row{Req: event.ReqID(i), Output: &o, Pos: pos, PromptLen: 5})
			if d.Fault != "" || d.Dest != dest || d.Action != action {
				t.Fatalf("row %d at %d, weights %v: %+v, want %d %s", i, self, weights, d, dest, action)
			}
		}
	}
}

// Ids, writers and dropped candidates equal those of the reference loop.
func TestReference(t *testing.T) {
	for _, weights := range settings {
		vms := routertest.Load(t, "me.lua", router, len(weights), 3, knobs(weights))
		for req := range 80 {
			run := reference.Run{
				Models: routertest.Models(len(weights)), Req: event.ReqID(req + 1), Prompt: []event.Token{1, 2, event.Token(req)},
				MaxTokens: 30, EOS: []event.Token{routertest.EOS}, Seed: 3,
			}
			want, got := me.Reference(run, weights), routertest.Play(t, run, vms)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("request %d, weights %v: %s", req, weights, diff)
			}
		}
	}
}

// Every token's writer, the first included, is an independent draw from the
// weights: shares at each position, and pairs of neighbours, within five
// standard deviations.
func TestDrawsAreIndependent(t *testing.T) {
	weights := []float64{2, 0.5, 1}
	const requests, length = 6000, 4
	var single [length][3]float64
	var pairs [3][3]float64
	for req := range requests {
		run := reference.Run{
			Models: routertest.Models(3), Req: event.ReqID(req + 1), Prompt: []event.Token{1}, MaxTokens: length, Seed: 11,
		}
		r := me.Reference(run, weights)
		for i, m := range r.Writers {
			single[i][m]++
			if i > 0 {
				pairs[r.Writers[i-1]][m]++
			}
		}
	}
	near := func(what string, got, p float64, n int) {
		t.Helper()
		if sd := math.Sqrt(p * (1 - p) / float64(n)); math.Abs(got/float64(n)-p) > 5*sd {
			t.Errorf("%s: share %.4f, want %.4f", what, got/float64(n), p)
		}
	}
	for m, w := range weights {
		p := w / 3.5
		for i := range single {
			near("position", single[i][m], p, requests)
		}
		for m2, w2 := range weights {
			near("pair", pairs[m][m2], p*w2/3.5, requests*(length-1))
		}
	}
}

// Draw by hand: pieces of [0, 1), edges to the right piece, zero weights never.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		u       float64
		want    event.Peer
	}{
		{[]float64{1, 1}, 0, 0},
		{[]float64{1, 1}, 0.4999, 0},
		{[]float64{1, 1}, 0.5, 1},
		{[]float64{1, 1}, math.Nextafter(1, 0), 1},
		{[]float64{0, 1}, 0, 1},
		{[]float64{1, 0}, math.Nextafter(1, 0), 0},
		{[]float64{1, 2, 1}, 0.25, 1},
		{[]float64{1, 2, 1}, 0.75, 2},
		{[]float64{0.1, 0.2, 0}, math.Nextafter(1, 0), 1},
		{[]float64{0, 0}, 0.3, 1}, // nothing to draw from: self
	} {
		if got := me.Draw(c.weights, c.u, 1); got != c.want {
			t.Errorf("Draw(%v, %v) = %d, want %d", c.weights, c.u, got, c.want)
		}
	}
}
