package fabric_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// trickle runs requests that come one by one in a random order of moves, so that
// the active count rises and falls, and ends when all have ended.
func trickle(t *rapid.T, cfgs []sched.Config, p *event.Policy, requests int, router, order uint64, look func(*world)) *world {
	w, err := newWorld(cfgs, nil)
	must(t, err)
	w.router = fakeRouter(router, len(cfgs))
	for i := range cfgs {
		must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
	}
	rng := rand.New(rand.NewPCG(order, 5))
	for id := event.ReqID(1); id <= event.ReqID(requests); id++ {
		a := &event.Arrival{Prompt: prompt(rng.IntN, 8), MaxTokens: 1 + rng.IntN(7)}
		a.Prompt = append(a.Prompt, event.Token(id))
		must(t, w.arrive(id, a))
		for range rng.IntN(40) {
			if ms := w.moves(); len(ms) > 0 {
				w.now++
				must(t, w.make(ms[rng.IntN(len(ms))]))
				look(w)
			}
		}
	}
	must(t, w.drain(rng.IntN, 1, false))
	must(t, w.leftovers())
	return w
}

// Lock-step is the vector (N, 1, ..., 1): the same batches, byte for byte, as the
// fixed policy that is clamped to it, while the active count rises and falls. And
// it is the public R2R loop: where all have seats, the front starts when nobody
// is anywhere else. No timer is ever needed (INV-7).
func TestLockStepIsTheVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := plain(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
		resubmit := rapid.Bool().Draw(t, "resubmit")
		for i := range cfgs {
			cfgs[i].Resubmit = resubmit
		}
		requests := rapid.IntRange(1, 9).Draw(t, "requests")
		router, order := rapid.Uint64().Draw(t, "router"), rapid.Uint64().Draw(t, "order")
		vector := slices.Repeat([]int{1}, len(cfgs))
		vector[event.Front] = requests
		var logs [2][]byte
		for i, p := range []event.Policy{{Kind: event.LockStep}, {Kind: event.Fixed, B: vector, W: 1 << 60}} {
			w := trickle(t, cfgs, &p, requests, router, order, func(w *world) {
				last := w.log[len(w.log)-1]
				front := w.f.Core(event.Front)
				if last.core != event.Front || last.ev.Kind != event.Dispatch || len(last.cmds) == 0 || front.Running() == nil {
					return
				}
				l := front.Load()
				if l.Active <= cfgs[0].Seats[0] && l.Pending > 0 || front.Running().Rule != event.RuleB {
					t.Fatalf("the front starts by %v with %d of %d requests elsewhere", front.Running().Rule, l.Pending, l.Active)
				}
			})
			for _, e := range w.log {
				for _, c := range e.cmds {
					if c.Kind != event.Note || c.Note != event.NoteClamp {
						logs[i] = event.AppendCommand(logs[i], &c)
					}
				}
			}
		}
		if !bytes.Equal(logs[0], logs[1]) {
			t.Fatalf("lock-step and B = %v order different things", vector)
		}
	})
}

// With one active at a time requests are admitted and end one after the other, in
// the order of their arrival; all that wait are counted (INV-3, case C7).
func TestOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := cluster(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
		for i := range cfgs {
			cfgs[i].MaxActive = 1
		}
		requests := rapid.IntRange(1, 9).Draw(t, "requests")
		w := trickle(t, cfgs, &event.Policy{}, requests, rapid.Uint64().Draw(t, "router"), rapid.Uint64().Draw(t, "order"), func(w *world) {
			front := w.f.Core(event.Front)
			k := front.Counts()
			over := k.Finished + k.Cancelled + k.Rejected
			if open := k.Arrived - over; front.Load().Active != min(open, 1) || front.In(sched.Waiting) != max(open-1, 0) {
				t.Fatalf("%d of %d requests are open: %d active, %d waiting", open, k.Arrived, front.Load().Active, front.In(sched.Waiting))
			}
		})
		var now, last event.ReqID
		for _, e := range w.log {
			for _, c := range e.cmds {
				switch c.Kind {
				case event.Admit:
					if now != 0 || c.Req <= last {
						t.Fatalf("request %d is admitted while %d runs, behind %d", c.Req, now, last)
					}
					now, last = c.Req, c.Req
				case event.Finish:
					now = 0
				}
			}
		}
	})
}
