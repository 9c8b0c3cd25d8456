package fabric_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

// A client that leaves after any number of moves, waiting, in the middle of a
// prefill, running, pending, or with a message under way in either direction:
// everything is freed everywhere, once, and the others are as without it (cases
// C1 and C2: the core knows no streaming). It may leave twice (case C4).
func TestCancelAnywhere(t *testing.T) {
	states := map[string]bool{}
	for _, tc := range []struct {
		over     int
		resubmit bool
	}{{100, false}, {300, false}, {100, true}, {300, true}} {
		over := tc.over
		for moves := 0; ; moves += over / 100 {
			cfgs := fabric.Uniform([]int{2, 2, 2}, []int{28, 28, 28}, 4)
			for i := range cfgs {
				cfgs[i].Chunk, cfgs[i].Overcommit, cfgs[i].Resubmit = 3, over, tc.resubmit
			}
			w, err := newWorld(cfgs, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.router = fakeRouter(5, 3)
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%+v, cancelled after %d moves: %v", tc, moves, err)
				}
			}
			for id := event.ReqID(1); id <= 4; id++ {
				check(w.arrive(id, &event.Arrival{Prompt: []event.Token{1, 2, 3, 4, 5, event.Token(id)}, MaxTokens: 12}))
			}
			turn := 0
			next := func(n int) int { turn++; return turn % n }
			for range moves {
				if ms := w.moves(); len(ms) > 0 {
					w.now++
					check(w.make(ms[next(len(ms))]))
				}
			}
			idle := w.f.Idle()
			for p := range event.Peer(3) {
				if v, ok := w.f.Core(p).View(3); ok {
					states[fmt.Sprintf("%d %v fed=%v", p, v.Phase, v.Fed > 0)] = true
					if tc.resubmit {
						states[fmt.Sprintf("%d %v fed=%v anew", p, v.Phase, v.Fed > 0)] = true
					}
					if v.Fed > 0 && v.Fed < v.PromptLen {
						states[fmt.Sprintf("%d %v part", p, v.Phase)] = true
					}
				}
			}
			for range 2 {
				check(w.step(event.Front, event.Event{Kind: event.Cancel, Req: 3}))
			}
			check(w.drain(next, 1, true))
			check(w.leftovers())
			if idle {
				break
			}
			if w.done[3] != event.ReasonAborted && len(w.text[3]) == 0 {
				t.Fatalf("cancelled after %d moves: %v", moves, w.done)
			}
			for _, id := range []event.ReqID{1, 2, 4} {
				if w.done[id] == event.ReasonAborted || len(w.text[id]) == 0 {
					t.Fatalf("cancelled after %d moves: request %d is %v, %v", moves, id, w.done[id], w.text[id])
				}
			}
		}
	}
	for _, want := range []string{
		"0 waiting fed=false", "0 ready fed=false", "0 ready fed=true", "0 running part", "0 running fed=true", "0 pending fed=true",
		"1 ready fed=false", "1 running part", "1 running fed=true", "1 pending fed=true", "2 ready fed=false", "2 running fed=true",
		"0 pending fed=false anew", "0 ready fed=false anew", "1 running fed=true anew", "1 pending fed=false anew",
	} {
		if !states[want] {
			t.Errorf("never cancelled while %q; the test has lost its sense: %v", want, states)
		}
	}
}

// A request that needs the whole pool is not starved by younger ones that fit
// beside each other and come without end: once it is the oldest, only those that
// hold KV may go on before it (case E5).
func TestLargeOneIsNotStarved(t *testing.T) {
	for _, over := range []int{100, 250, 1000} {
		cfgs := fabric.Uniform([]int{4}, []int{64}, 4)
		cfgs[0].Overcommit, cfgs[0].Chunk = over, 5
		w, err := newWorld(cfgs, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.router = func(_ event.Peer, v sched.View) event.RowResult {
			return event.RowResult{Output: event.Output{Token: event.Token(len(v.Tokens))}}
		}
		const large = 4
		next, behind := event.ReqID(0), 0
		for w.done[large] == 0 && behind < 1000 {
			for len(w.prompt)-len(w.done) < 8 {
				next++
				prompt, most := []event.Token{event.Token(next), 2, 3}, 6
				if next == large {
					prompt, most = make([]event.Token, 50), 14
				}
				if err := w.arrive(next, &event.Arrival{Prompt: prompt, MaxTokens: most}); err != nil {
					t.Fatal(err)
				}
			}
			before := len(w.done)
			for _, ev := range []event.Kind{event.Dispatch, event.StepDone} {
				w.now++
				if ev == event.Dispatch {
					err = w.step(0, event.Event{Kind: ev})
				} else if w.f.Core(0).Running() != nil {
					err = w.finish(0)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			behind += len(w.done) - before
			if w.done[large] == event.ReasonLength {
				break
			}
		}
		if w.done[large] != event.ReasonLength || behind > 12 {
			t.Errorf("overcommit %d: the large one ends %v after %d others", over, w.done[large], behind)
		}
	}
}

// A peer whose step does not end holds up who goes there and nobody else: what
// cannot come in is counted as waiting at the front and nowhere else, no link
// ever has more messages with the pen than there are active requests, those that
// stay at home go on, and clients may leave in any place of the queue (case E9).
func TestBackPressureIsAtTheFront(t *testing.T) {
	for _, bound := range []int{0, 5} {
		cfgs := fabric.Uniform([]int{4, 4}, []int{96, 96}, 4)
		for i := range cfgs {
			cfgs[i].MaxActive = bound
		}
		w, err := newWorld(cfgs, nil)
		if err != nil {
			t.Fatal(err)
		}
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("at most %d active: %v", bound, err)
			}
		}
		w.router = func(p event.Peer, v sched.View) event.RowResult {
			r := event.RowResult{Dest: p, Output: event.Output{Token: event.Token(len(v.Tokens))}}
			if p == event.Front && v.ID%4 != 0 {
				r.Dest, r.Action = 1, event.Drop
			}
			return r
		}
		rng := rand.New(rand.NewPCG(5, uint64(bound)))
		stands := func(m move) bool { return m.finish && m.to == 1 }
		waited, active := 0, 0
		for id := event.ReqID(1); id <= 80; id++ {
			check(w.arrive(id, &event.Arrival{Prompt: []event.Token{1, 2, event.Token(id)}, MaxTokens: 9}))
			if id%10 == 0 { // one that a peer has, or that waits
				check(w.step(event.Front, event.Event{Kind: event.Cancel, Req: id - 10 + event.ReqID(1+rng.IntN(10))}))
			}
			for range 6 {
				if ms := slices.DeleteFunc(w.moves(), stands); len(ms) > 0 {
					w.now++
					check(w.make(ms[rng.IntN(len(ms))]))
				}
			}
			l := w.f.Core(event.Front).Load()
			waited, active = max(waited, l.Waiting), max(active, l.Active)
			pens := 0
			for _, m := range w.f.InFlight() {
				if m.Peer != nil && (m.Peer.Status == event.New || m.Peer.Status == event.Alive) {
					pens++
				}
			}
			k := w.f.Core(event.Front).Counts()
			if peer := w.f.Core(1); pens > l.Active || peer.In(sched.Waiting) != 0 || k.Arrived != l.Waiting+l.Active+k.Finished+k.Cancelled {
				t.Fatalf("%d arrived, %d waiting, %d active, %d with their pen on its way: %+v", k.Arrived, l.Waiting, l.Active, pens, peer.Load())
			}
		}
		most := 96 / 12
		if bound > 0 {
			most = bound
		}
		if active != most || waited < 20 {
			t.Errorf("at most %d active: %d were, and %d waited; the test has lost its sense", bound, active, waited)
		}
		if w.seen["finish length"] == 0 || w.seen["finish aborted"] == 0 {
			t.Errorf("at most %d active: nobody ended while the peer stood: %v", bound, w.seen)
		}
		check(w.drain(rng.IntN, 1, true))
		check(w.leftovers())
	}
}
