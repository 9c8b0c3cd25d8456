package fabric_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

func hash(parts ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		h = (h ^ p) * 1099511628211
		h ^= h >> 29
	}
	return h
}

// fakeRouter is a model and a router in one: token and decision depend on
// request, position, model and seed and on nothing else, as real ones do.
func fakeRouter(seed uint64, n int) func(event.Peer, sched.View) event.RowResult {
	return func(p event.Peer, v sched.View) event.RowResult {
		h := hash(seed, uint64(v.ID), uint64(len(v.Tokens)), uint64(p))
		r := event.RowResult{Output: event.Output{Token: event.Token(h % 23)}, Dest: event.Peer(h >> 8 % uint64(n))}
		if h>>20%3 == 0 {
			r.Action = event.Drop
		}
		if h>>24%3 == 0 {
			r.Budget = int(h >> 28 % 4)
		}
		if h>>32%11 == 0 {
			r.Dest = event.Peer(n)
		}
		return r
	}
}

// wild adds what only a broken router or runner does.
func wild(t *rapid.T, n int) func(event.Peer, sched.View) event.RowResult {
	return func(event.Peer, sched.View) event.RowResult {
		r := event.RowResult{
			Output: event.Output{Token: event.Token(rapid.IntRange(0, 12).Draw(t, "token"))},
			Dest:   event.Peer(rapid.IntRange(-1, n).Draw(t, "dest")),
			Action: event.Action(rapid.IntRange(0, 1).Draw(t, "action")),
			Budget: rapid.IntRange(-1, 3).Draw(t, "budget"),
		}
		if rapid.IntRange(0, 15).Draw(t, "fault") == 0 {
			r.Fault = "fault"
		}
		return r
	}
}

func cluster(t *rapid.T) []sched.Config {
	n := rapid.IntRange(1, 3).Draw(t, "subservers")
	seats := rapid.SliceOfN(rapid.IntRange(1, 4), n, n).Draw(t, "seats")
	pools := rapid.SliceOfN(rapid.IntRange(16, 64), n, n).Draw(t, "kv")
	return fabric.Uniform(seats, pools, rapid.IntRange(1, 5).Draw(t, "block"))
}

func genPolicy(t *rapid.T) *event.Policy {
	return &event.Policy{
		Kind: event.PolicyKind(rapid.IntRange(0, 1).Draw(t, "policy")),
		B:    rapid.SliceOfN(rapid.IntRange(-1, 6), 0, 4).Draw(t, "B"),
		W:    rapid.Int64Range(0, 40).Draw(t, "W"),
	}
}

func arrival(t *rapid.T) *event.Arrival {
	tokens := rapid.SliceOfN(rapid.Int32Range(0, 30), 0, 12)
	return &event.Arrival{Prompt: tokens.Draw(t, "prompt"), MaxTokens: rapid.IntRange(0, 14).Draw(t, "max"), EOS: []event.Token{7}}
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// Random arrivals, ends, policies, decisions, faults and failures in random
// order: every invariant holds after every event, and at the end everything has
// ended and every KV block is free (cases C4, C5, C7, E3, E5).
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := cluster(t)
		receive := func(_ event.Peer, m *event.PeerReq, v sched.View) event.Verdict {
			if rapid.IntRange(0, 5).Draw(t, "verdict") > 0 {
				return event.Verdict{}
			}
			more := rapid.SliceOfN(rapid.Int32Range(0, 12), 0, 3).Draw(t, "more")
			if rapid.Bool().Draw(t, "behind") {
				more = append(slices.Clone(m.Suffix), more...)
			}
			return event.Verdict{Kind: event.Append, Ids: more}
		}
		w, err := newWorld(cfgs, receive)
		must(t, err)
		w.router = wild(t, len(cfgs))
		var last event.ReqID
		n := rapid.IntRange(1, 250).Draw(t, "operations")
		for range n {
			w.now += rapid.Int64Range(0, 3).Draw(t, "pass")
			ms := w.moves()
			switch op := rapid.IntRange(0, 19).Draw(t, "operation"); {
			case op == 0 || op < 3 && last < 4:
				last++
				must(t, w.arrive(last, arrival(t)))
			case op == 1:
				id := event.ReqID(rapid.IntRange(0, int(last)+1).Draw(t, "id"))
				if id <= last {
					must(t, w.step(event.Front, event.Event{Kind: event.Cancel, Req: id}))
				}
			case op == 2:
				id := event.ReqID(rapid.IntRange(0, int(last)).Draw(t, "id"))
				// A stop names a token that was emitted.
				if n := len(w.text[id]); n > 0 {
					pos := w.prompt[id] + rapid.IntRange(0, n-1).Draw(t, "pos")
					must(t, w.step(event.Front, event.Event{Kind: event.Stop, Req: id, Pos: pos}))
				}
			case op == 3:
				p := genPolicy(t)
				for i := range cfgs {
					must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
				}
			case op == 4:
				p := event.Peer(rapid.IntRange(0, len(cfgs)-1).Draw(t, "core"))
				must(t, w.step(p, event.Event{Kind: event.Wake, Gen: w.wake[p].Gen}))
			case op == 5 && rapid.IntRange(0, 3).Draw(t, "broken") == 0:
				for p := range event.Peer(len(cfgs)) {
					if b := w.f.Core(p).Running(); b != nil {
						must(t, w.step(p, event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: b.ID, Err: "broken"}}))
						break
					}
				}
			case len(ms) > 0:
				must(t, w.make(ms[rapid.IntRange(0, len(ms)-1).Draw(t, "move")]))
			}
		}
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		w.router = fakeRouter(uint64(n), len(cfgs))
		must(t, w.drain(rng.IntN, 1, true))
		must(t, w.leftovers())
		must(t, replay(cfgs, w.log, rapid.IntRange(0, len(w.log)).Draw(t, "clone")))
	})
}

// replay tells fresh cores the same events: the commands are the same, byte for
// byte, and so are those of clones made after the first cut events (case E11).
// Neither an event nor a command has changed since it was handed over (INV-15).
func replay(cfgs []sched.Config, log []entry, cut int) error {
	var cores, clones []*sched.Core
	for _, cfg := range cfgs {
		c, err := sched.New(cfg)
		if err != nil {
			return err
		}
		cores = append(cores, c)
	}
	for i, e := range log {
		if i == cut {
			for _, c := range cores {
				clones = append(clones, c.Clone())
			}
		}
		want := encode(e.cmds)
		if got := encode(cores[e.core].Step(&e.ev, nil)); !bytes.Equal(got, want) {
			return fmt.Errorf("INV-1: event %d, %v, gives other commands when told again", i, e.ev)
		}
		if clones != nil {
			if got := encode(clones[e.core].Step(&e.ev, nil)); !bytes.Equal(got, want) {
				return fmt.Errorf("INV-1: event %d, %v, gives other commands from a clone made at %d", i, e.ev, cut)
			}
		}
	}
	return nil
}

func encode(cmds []event.Command) []byte {
	var b []byte
	for i := range cmds {
		b = event.AppendCommand(b, &cmds[i])
	}
	return b
}

// stable is a workload of requests that all fit, on a cluster of n.
func stable(t *rapid.T, w *world, requests int) {
	for id := event.ReqID(1); id <= event.ReqID(requests); id++ {
		h := hash(uint64(id), 99)
		prompt := make([]event.Token, 1+h%6)
		for i := range prompt {
			prompt[i] = event.Token(h >> (i + 3) % 40)
		}
		must(t, w.arrive(id, &event.Arrival{Prompt: prompt, MaxTokens: 1 + int(h>>20%9), EOS: []event.Token{7}}))
	}
}

// Any thresholds, any order of delivery: the same tokens by the same writers as
// eager in another order, and the same ends (INV-16, cases E2, E3, E7). The
// guard is far away, so it is the clamp alone that keeps all moving (INV-7).
func TestBatchingChangesNoToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := cluster(t)
		seed := rapid.Uint64().Draw(t, "router")
		requests := rapid.IntRange(1, 7).Draw(t, "requests")
		far := int64(1) << 50
		run := func(p *event.Policy, order uint64) *world {
			w, err := newWorld(cfgs, nil)
			must(t, err)
			w.router = fakeRouter(seed, len(cfgs))
			for i := range cfgs {
				must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
			}
			stable(t, w, requests)
			rng := rand.New(rand.NewPCG(order, 2))
			must(t, w.drain(rng.IntN, 1, false))
			must(t, w.leftovers())
			return w
		}
		eager := run(&event.Policy{}, rapid.Uint64().Draw(t, "order"))
		b := rapid.SliceOfN(rapid.IntRange(1, 6), len(cfgs), len(cfgs)).Draw(t, "B")
		other := run(&event.Policy{Kind: event.Fixed, B: b, W: far}, rapid.Uint64().Draw(t, "order"))
		if !reflect.DeepEqual(eager.text, other.text) || !reflect.DeepEqual(eager.done, other.done) {
			t.Fatalf("B = %v changes tokens, writers or ends:\n%v\n%v", b, eager.text, other.text)
		}
	})
}

// B = 1 everywhere is eager, step for step (case E7).
func TestB1IsEager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := cluster(t)
		seed, order := rapid.Uint64().Draw(t, "router"), rapid.Uint64().Draw(t, "order")
		requests := rapid.IntRange(1, 7).Draw(t, "requests")
		run := func(p *event.Policy) [][]event.Row {
			w, err := newWorld(cfgs, nil)
			must(t, err)
			w.router = fakeRouter(seed, len(cfgs))
			for i := range cfgs {
				must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
			}
			stable(t, w, requests)
			rng := rand.New(rand.NewPCG(order, 3))
			must(t, w.drain(rng.IntN, 1, false))
			var rows [][]event.Row
			for _, e := range w.log {
				for _, c := range e.cmds {
					if c.Kind == event.RunBatch {
						rows = append(rows, c.Batch.Rows)
					}
				}
			}
			return rows
		}
		if a, b := run(&event.Policy{}), run(&event.Policy{Kind: event.Fixed, B: []int{1, 1, 1}, W: 5}); !reflect.DeepEqual(a, b) {
			t.Fatalf("%v\n%v", a, b)
		}
	})
}

// Always STAY writes everything at home, always the last writes everything
// there but for what home commits (case F1).
func TestProvenance(t *testing.T) {
	for _, tc := range []struct {
		name string
		dest event.Peer
	}{{"small", 0}, {"large", 1}} {
		w, err := newWorld(fabric.Uniform([]int{2, 2}, []int{64, 64}, 4), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.router = func(p event.Peer, v sched.View) event.RowResult {
			r := event.RowResult{Output: event.Output{Token: 1}, Dest: tc.dest}
			if p != tc.dest {
				r.Action = event.Drop
			}
			return r
		}
		for id := event.ReqID(1); id <= 3; id++ {
			if err := w.arrive(id, &event.Arrival{Prompt: []event.Token{1}, MaxTokens: 5}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.drain(func(int) int { return 0 }, 1, false); err != nil {
			t.Fatal(err)
		}
		for id, text := range w.text {
			if len(text) != 5 || slices.ContainsFunc(text, func(x wrote) bool { return x.by != tc.dest }) {
				t.Errorf("%s: request %d is %v", tc.name, id, text)
			}
		}
	}
}
