package fabric_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

// plain draws a cluster of small pools with nothing special switched on.
func plain(roll dice) []sched.Config {
	n := 1 + roll(3)
	seats, pools := make([]int, n), make([]int, n)
	for m := range n {
		seats[m], pools[m] = 1+roll(4), 16+roll(60)
	}
	return fabric.Uniform(seats, pools, 1+roll(5))
}

// cluster draws one with everything that may be switched on: chunks, budgets,
// overcommit, time-outs, a bound on the active, new requests in place of
// hand-offs, with and without prefix cache.
func cluster(roll dice) []sched.Config {
	cfgs := plain(roll)
	chunk, budget, overcommit, timeout := roll(3)*roll(4), roll(3)*roll(5), 100, int64(0)
	if roll(2) == 0 {
		overcommit = 60 + roll(400)
	}
	if roll(2) == 0 {
		timeout = 30 + int64(roll(400))
	}
	private, domain := roll(4) == 0, uint64(roll(3))
	most, resubmit := roll(2)*roll(5), roll(3) == 0
	for i := range cfgs {
		cfgs[i].Chunk, cfgs[i].Budget, cfgs[i].Overcommit = chunk, budget, overcommit
		cfgs[i].Timeout, cfgs[i].NoPrefix, cfgs[i].Domain = timeout, private, domain+uint64(i)
		cfgs[i].MaxActive, cfgs[i].Resubmit = most, resubmit
	}
	return cfgs
}

// prompt draws a prompt that may begin as others do.
func prompt(roll dice, most int) []event.Token {
	out := make([]event.Token, roll(most))
	common, style := roll(most), roll(2)
	for i := range out {
		if i < common {
			out[i] = event.Token(i*7+style) % 24
		} else {
			out[i] = event.Token(roll(24))
		}
	}
	return out
}

// policy draws one of any kind.
func policy(roll dice, n int) *event.Policy {
	p := &event.Policy{Kind: event.PolicyKind(roll(int(event.LockStep) + 1)), W: int64(roll(5) * roll(12))}
	vector := func() (b []int) {
		for range roll(5) {
			b = append(b, roll(7)-1)
		}
		return b
	}
	switch p.Kind {
	case event.Fixed:
		p.B = vector()
	case event.Table:
		for range roll(4) {
			p.Table = append(p.Table, vector())
		}
	case event.LookAhead:
		p.Forecast = &event.Forecast{Latency: int64(roll(9))}
		for range n {
			share := make([]int, n)
			for j := range share {
				share[j] = roll(1_000_001)
			}
			p.Forecast.Share = append(p.Forecast.Share, share)
			p.Forecast.Step = append(p.Forecast.Step, event.StepTime{Base: int64(roll(20)) * 1000, PerRow: int64(roll(9))})
		}
	}
	return p
}

// churn does so many random things: arrivals, also impossible ones, ends in
// every state, new policies, failures, deaths of peers where a time-out gives up
// what dies with them, and whatever move comes next.
func churn(w *world, roll dice, operations int) error {
	n := w.f.Len()
	for range operations {
		w.now += int64(roll(4))
		var err error
		last := event.ReqID(len(w.prompt))
		switch op := roll(40); {
		case op < 3:
			last++
			err = w.arrive(last, &event.Arrival{Prompt: prompt(roll, 16), MaxTokens: roll(16), EOS: []event.Token{7}})
		case op == 3:
			// Also unknown ids, and those that ended (case C4).
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
			p := policy(roll, n)
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
		case op == 8 && n > 1 && w.cfgs[0].Timeout > 0 && roll(6) == 0:
			err = w.restart(event.Peer(1 + roll(n-1)))
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

// Random arrivals, ends, policies, decisions, faults, failures and deaths in
// random order: every invariant holds after every event, and at the end
// everything has ended and every KV block is free or cached (cases C1, C4, C5,
// C7, E3, E5).
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "roll") }
		_, err := live(roll, rapid.IntRange(1, 250).Draw(t, "operations"))
		must(t, err)
	})
}

// The same for tens of thousands of events in a few long lives, in which nearly
// everything that can happen to a core does happen. On one processor and on two
// the commands are the same, byte for byte (case E11).
func TestLongLives(t *testing.T) {
	happened := map[string]int{}
	for seed := range uint64(lives) {
		var logs [2][]byte
		for i := range logs {
			before := runtime.GOMAXPROCS(i + 1)
			w, err := live(rand.New(rand.NewPCG(seed, 7)).IntN, 1500)
			runtime.GOMAXPROCS(before)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, e := range w.log {
				logs[i] = append(logs[i], encode(e.cmds)...)
			}
			if i == 0 {
				happened["events"] += len(w.log)
				for name, n := range w.seen {
					happened[name] += n
				}
			}
		}
		if !bytes.Equal(logs[0], logs[1]) {
			t.Fatalf("INV-1: seed %d gives other commands on two processors", seed)
		}
	}
	for _, name := range []string{
		"admit", "reject", "run-batch eager", "run-batch B", "run-batch guard", "run-batch look-ahead", "send-peer", "tell-active", "emit",
		"finish stop", "finish length", "finish aborted", "finish error", "free", "wake-at", "preempt", "restart",
		"row part", "row cached", "row recomputed", "switch without KV",
		"truncate", "emit for another", "emit later",
		"note dead", "note unknown", "note fault", "note cut", "note clamp", "note budget", "note kv-full", "note resend", "note timeout",
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
	cores, clones := make([]*sched.Core, len(cfgs)), make([]*sched.Core, len(cfgs))
	for i, cfg := range cfgs {
		var err error
		if cores[i], err = sched.New(cfg); err != nil {
			return err
		}
	}
	cloned := false
	for i, e := range log {
		if i == cut {
			cloned = true
			for j, c := range cores {
				clones[j] = c.Clone()
			}
		}
		if e.restart {
			cores[e.core], _ = sched.New(cfgs[e.core])
			clones[e.core], _ = sched.New(cfgs[e.core])
			continue
		}
		want := encode(e.cmds)
		if got := encode(cores[e.core].Step(&e.ev, nil)); !bytes.Equal(got, want) {
			return fmt.Errorf("INV-1: event %d, %v, gives other commands when told again", i, e.ev)
		}
		if !cloned {
			continue
		}
		if got := encode(clones[e.core].Step(&e.ev, nil)); !bytes.Equal(got, want) {
			return fmt.Errorf("INV-1: event %d, %v, gives other commands from a clone made at %d", i, e.ev, cut)
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

// A clone is a deep copy of all that changes: its core and the original go apart
// without touching each other, also where blocks are shared and preempted.
func TestCloneIsApart(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		cfgs := cluster(rng.IntN)
		w, err := newWorld(cfgs, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.router = fakeRouter(seed, len(cfgs))
		if err := churn(w, rng.IntN, 200); err != nil {
			t.Fatal(err)
		}
		c := w.f.Core(0).Clone()
		before := c.Clone()
		if err := churn(w, rng.IntN, 100); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, c.Clone()) {
			t.Fatalf("seed %d: the original has changed its clone", seed)
		}
	}
}
