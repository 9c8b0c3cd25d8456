package fabric_test

import (
	"math/rand/v2"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

// Peers die at random moments, also several times and right behind each other,
// and forget who is over. Requests whose pen dies with them end by the time-out,
// all others go on; nothing stays anywhere, and those that lost no pen are as if
// nobody had died (INV-10). The router keeps every token: where a peer dropped a
// position dies with it.
func TestDeaths(t *testing.T) {
	seen := map[string]int{}
	lost, same := 0, 0
	for seed := range uint64(4 * lives) {
		rng := rand.New(rand.NewPCG(seed, 11))
		cfgs := fabric.Uniform([]int{3, 3, 3}, []int{48, 48, 48}, 4)
		for i := range cfgs {
			cfgs[i].Timeout, cfgs[i].Overcommit, cfgs[i].Chunk = 3000, 100+int(seed%3)*150, int(seed%4)
			cfgs[i].Resubmit = seed%5 == 4
		}
		run := func(deaths bool) *world {
			w, err := newWorld(cfgs, nil)
			if err != nil {
				t.Fatal(err)
			}
			decide := fakeRouter(seed, len(cfgs))
			w.router = func(p event.Peer, v sched.View) event.RowResult {
				r := decide(p, v)
				r.Action = event.Keep
				return r
			}
			for id := event.ReqID(1); id <= 30; id++ {
				err := w.arrive(id, &event.Arrival{Prompt: prompt(rand.New(rand.NewPCG(seed, uint64(id))).IntN, 12), MaxTokens: 1 + int(id)%12, EOS: []event.Token{7}})
				for range rng.IntN(60) {
					w.now++
					switch ms := w.moves(); {
					case err != nil:
						t.Fatalf("seed %d: %v", seed, err)
					case deaths && rng.IntN(40) == 0:
						err = w.restart(event.Peer(1 + rng.IntN(2)))
					case deaths && rng.IntN(40) == 0:
						err = w.step(event.Front, event.Event{Kind: event.Cancel, Req: 1 + event.ReqID(rng.IntN(int(id)))})
					case len(ms) > 0:
						err = w.make(ms[rng.IntN(len(ms))])
					}
				}
			}
			if err := w.drain(rng.IntN, 1, true); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := w.leftovers(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return w
		}
		calm, w := run(false), run(true)
		for id, reason := range w.done {
			switch {
			case reason == event.ReasonError && calm.done[id] != event.ReasonError:
				if !w.f.Lost(id) {
					t.Errorf("seed %d: request %d ends with an error and lost no pen", seed, id)
				}
				lost++
			case reason != event.ReasonAborted:
				same++
				if calm.done[id] != reason {
					t.Errorf("seed %d: request %d ends with %v in place of %v", seed, id, reason, calm.done[id])
				}
				for i, x := range calm.text[id] {
					if i >= len(w.text[id]) || w.text[id][i] != x {
						t.Errorf("seed %d: request %d is %v in place of %v", seed, id, w.text[id], calm.text[id])
						break
					}
				}
			}
		}
		for name, n := range w.seen {
			seen[name] += n
		}
	}
	if lost < 20 || same < 20 || seen["note timeout"] < 20 || seen["note resend"] < 20 || seen["restart"] < 100 {
		t.Errorf("%d requests lost, %d not, %v; the test has lost its sense", lost, same, seen)
	}
	t.Log(lost, same, seen)
}
