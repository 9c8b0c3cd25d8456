package routertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// Equal plays requests over invented models and fails where tokens, writers or
// dropped candidates are not those of the reference. What it played is returned.
func Equal(t *testing.T, vms []*scripting.VM, requests int, want func(reference.Run) reference.Result) (all []reference.Result) {
	t.Helper()
	for req := range requests {
		run := Run(len(vms), req)
		a, b := want(run), Play(t, run, vms)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("%s, request %d: %s", vms[0].Program().File, req, diff)
		}
		all = append(all, b)
	}
	return all
}

// Run is a request over n invented models, of a length of its own.
func Run(n, req int) reference.Run {
	return reference.Run{
		Models: Models(n), Req: event.ReqID(req + 1), Prompt: []event.Token{1, 2, event.Token(req)}[:1+req%3],
		MaxTokens: 20 + req%40, EOS: []event.Token{EOS}, Seed: Seed,
	}
}

// Seed is the session's.
const Seed = 3

// Script is a model that says the same whatever came before, by position.
type Script []event.Output

// Next implements reference.Model.
func (s Script) Next(_ []event.Token, _ event.ReqID, pos int) event.Output { return s[pos] }

// Interleaved plays requests in turns, a step of each at a time, and fails where
// one differs from its run alone (case F2).
func Interleaved(t *testing.T, vms []*scripting.VM, requests int) {
	t.Helper()
	var players []*Player
	for req := range requests {
		players = append(players, NewPlayer(t, Run(len(vms), req), vms))
	}
	for on := true; on; {
		on = false
		for _, p := range players {
			if !p.done {
				p.done = !p.Step()
				on = on || !p.done
			}
		}
	}
	for req, p := range players {
		if diff := cmp.Diff(Play(t, Run(len(vms), req), vms), p.Result()); diff != "" {
			t.Errorf("%s, request %d differs alone: %s", vms[0].Program().File, req, diff)
		}
	}
}
