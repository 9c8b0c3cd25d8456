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

// dice draws a number from 0 to n-1: by rapid, which shrinks what fails, or by
// a seeded generator, which is even.
type dice func(n int) int

// wildRouter adds what only a broken router does.
func wildRouter(roll dice, n int) func(event.Peer, sched.View) event.RowResult {
	return func(event.Peer, sched.View) event.RowResult {
		r := event.RowResult{
			Output: event.Output{Token: event.Token(roll(24))},
			Dest:   event.Peer(roll(n)),
			Action: event.Action(roll(4) / 3),
			Budget: roll(4) - 1,
		}
		switch roll(20) {
		case 0:
			r.Fault = "fault"
		case 1:
			r.Dest = event.Peer(n)
		case 2:
			r.Dest = -1
		}
		return r
	}
}

// wildReceive sometimes appends, rightly or against what was emitted.
func wildReceive(roll dice) fabric.Receive {
	return func(_ event.Peer, m *event.PeerReq, _ sched.View) event.Verdict {
		var more []event.Token
		switch roll(12) {
		case 0:
			more = slices.Clone(m.Suffix)
		case 1:
		case 2:
			return event.Verdict{Fault: "fault"}
		default:
			return event.Verdict{}
		}
		for range roll(4) {
			more = append(more, event.Token(roll(24)))
		}
		return event.Verdict{Kind: event.Append, Ids: more}
	}
}

func cluster(roll dice) []sched.Config {
	n := 1 + roll(3)
	seats, pools := make([]int, n), make([]int, n)
	for m := range n {
		seats[m], pools[m] = 1+roll(4), 16+roll(60)
	}
	return fabric.Uniform(seats, pools, 1+roll(5))
}

// churn does so many random things: arrivals, also impossible ones, ends in
// every state, new policies, failures, and whatever move comes next.
func churn(w *world, roll dice, operations int) error {
	n := w.f.Len()
	var last event.ReqID
	for range operations {
		w.now += int64(roll(4))
		var err error
		switch op := roll(40); {
		case op < 3:
			last++
			a := &event.Arrival{Prompt: make([]event.Token, roll(12)), MaxTokens: roll(16), EOS: []event.Token{7}}
			for i := range a.Prompt {
				a.Prompt[i] = event.Token(roll(24))
			}
			err = w.arrive(last, a)
		case op == 3:
			// Also unknown ids, and those that ended.
			id := last + 1 - min(last, event.ReqID(roll(8)))
			err = w.step(event.Front, event.Event{Kind: event.Cancel, Req: id})
		case op == 4:
			id := last - min(last, event.ReqID(roll(6)))
			// A stop names a token that was emitted.
			if n := len(w.text[id]); n > 0 {
				pos := w.prompt[id] + n - 1 - min(n-1, roll(3))
				err = w.step(event.Front, event.Event{Kind: event.Stop, Req: id, Pos: pos})
			}
		case op == 5 && roll(4) == 0:
			p := &event.Policy{Kind: event.PolicyKind(roll(2)), W: int64(roll(5) * roll(12))}
			for range roll(5) {
				p.B = append(p.B, roll(7)-1)
			}
			for i := 0; i < n && err == nil; i++ {
				err = w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p})
			}
		case op == 6:
			p := event.Peer(roll(n))
			err = w.step(p, event.Event{Kind: event.Wake, Gen: w.wake[p].Gen - uint64(roll(2))})
		case op == 7 && roll(4) == 0:
			p := event.Peer(roll(n))
			if b := w.f.Core(p).Running(); b != nil {
				err = w.step(p, event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: b.ID, Err: "broken"}})
			}
		default:
			ms := w.moves()
			if roll(8) > 0 {
				// News of the front are slow, so that peers learn late who ended.
				ms = slices.DeleteFunc(ms, func(m move) bool { return m.deliver && m.from == event.Front && m.to == 1 })
			}
			if len(ms) > 0 {
				err = w.make(ms[roll(len(ms))])
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// live runs a random life of a cluster to its end and tells it again.
func live(roll dice, operations int) (*world, error) {
	cfgs := cluster(roll)
	w, err := newWorld(cfgs, wildReceive(roll))
	if err != nil {
		return nil, err
	}
	w.router = wildRouter(roll, len(cfgs))
	if err := churn(w, roll, operations); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(uint64(operations), 1))
	w.router = fakeRouter(uint64(operations), len(cfgs))
	if err := w.drain(rng.IntN, 1, true); err != nil {
		return nil, err
	}
	if err := w.leftovers(); err != nil {
		return nil, err
	}
	if err := replay(cfgs, w.log, roll(len(w.log)+1)); err != nil {
		return nil, err
	}
	// A Dispatch that ordered nothing changed nothing: it may be left out.
	loud := slices.DeleteFunc(slices.Clone(w.log), func(e entry) bool {
		return e.ev.Kind == event.Dispatch && len(e.cmds) == 0
	})
	return w, replay(cfgs, loud, len(loud))
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
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "roll") }
		_, err := live(roll, rapid.IntRange(1, 250).Draw(t, "operations"))
		must(t, err)
	})
}

// The same for 10,000 events and more in a few long lives, in which nearly
// everything that can happen to a core does happen.
func TestLongLives(t *testing.T) {
	happened := map[string]int{}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w, err := live(rng.IntN, 1500)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, e := range w.log {
			happened["events"]++
			for _, c := range e.cmds {
				name := c.Kind.String()
				switch c.Kind {
				case event.Note:
					name += " " + c.Note.String()
				case event.RunBatch:
					name += " " + c.Batch.Rule.String()
				case event.Finish:
					name += " " + c.Reason.String()
				}
				happened[name]++
			}
		}
	}
	for _, name := range []string{
		"admit", "reject", "run-batch eager", "run-batch B", "run-batch guard", "send-peer", "tell-active", "emit",
		"finish stop", "finish length", "finish aborted", "finish error", "free", "wake-at",
		"note dead", "note unknown", "note fault", "note cut", "note clamp", "note budget",
	} {
		if happened[name] < 5 {
			t.Errorf("%q happened %d times; the test has lost its sense", name, happened[name])
		}
	}
	if happened["events"] < 10_000 {
		t.Errorf("only %d events", happened["events"])
	}
	t.Log(happened)
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
		cfgs := cluster(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
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
		cfgs := cluster(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
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
