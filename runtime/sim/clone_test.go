package sim_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sim"
)

// full is a run in which everything is in play that can be: three models that
// slow one another down, jitter, stalls, latency, an overhead, blocks of KV that are
// shared by prefix and run short, requests that end, and every switch a new
// request.
func full(t testing.TB, seed uint64) sim.Config {
	cfg := open(t, seed)
	cfg.Contention = [][]float64{{0, 1.3, 1.8}, {1.2, 0, 1.5}, {0, 1.1, 0}}
	cfg.Overhead = func(_, rows int) time.Duration { return time.Duration(300+20*rows) * time.Microsecond }
	cfg.Stall = func(seed uint64, model int, step uint64) (longer, later time.Duration) {
		key := rng.Key{Seed: seed, Pos: int(step), Model: model, Purpose: rng.Stall}
		return time.Duration(key.Uint64(0) % 9 / 8 * 9e6), time.Duration(key.Uint64(1) % 9 / 8 * 1e6)
	}
	for i := range cfg.Cluster {
		c := &cfg.Cluster[i]
		c.KVTokens, c.Block, c.NoPrefix, c.Overcommit = []int{512, 768, 640}, 8, false, 250
		c.Chunk, c.Resubmit = 16, true
	}
	cfg.Length = func(id event.ReqID) int { return 20 + int(id*13%60) }
	return cfg
}

// The run of full is what it says, so that tests on it have their sense.
func TestFullIsFull(t *testing.T) {
	_, log := logged(t, full(t, 3))
	events, cmds := map[event.Kind]int{}, map[event.CmdKind]int{}
	found, stretched := 0, map[int64]bool{}
	for _, e := range log {
		events[e.ev.Kind]++
		if e.ev.Step != nil && e.core == 1 {
			stretched[e.ev.Step.ExecNs] = true
		}
		for _, c := range e.cmds {
			cmds[c.Kind]++
			if c.Kind != event.RunBatch {
				continue
			}
			for _, row := range c.Batch.Rows {
				if row.Prefill && row.Start > 0 {
					found++
				}
			}
		}
	}
	t.Logf("events %v, commands %v, %d rows found KV by prefix", events, cmds, found)
	if cmds[event.Preempt] < 500 || found < 500 || cmds[event.Finish] < 50 || events[event.Wake] < 50 || len(stretched) < 200 {
		t.Errorf("%d times KV was taken, %d rows found some, %d requests ended, %d timers, %d lengths of steps", cmds[event.Preempt], found, cmds[event.Finish], events[event.Wake], len(stretched))
	}
}

// watch adds what s does from now on to log.
func watch(s *sim.Sim, log *[]entry) {
	s.SetTap(func(core event.Peer, ev *event.Event, cmds []event.Command) {
		*log = append(*log, entry{core, ev, cmds})
	})
}

// A clone made at any event continues as its original, byte for byte, whatever
// the one does that runs first; and the original is none the worse (case E11).
func TestCloneContinues(t *testing.T) {
	for name, make := range map[string]func(testing.TB, uint64) sim.Config{"open": open, "full": full, "held": held} {
		for seed := range uint64(5) {
			cfg := make(t, seed)
			cfg.WarmUp, cfg.Until = second/2, 4*second
			whole, want := logged(t, cfg)
			draw := rng.Key{Seed: seed, Purpose: 99}
			s := begin(t, cfg)
			for range draw.Uint64(0) % uint64(whole.Events*3/4) {
				s.Step()
			}
			early, err := s.Clone()
			if err != nil {
				t.Fatal(err)
			}
			late, err := s.Clone()
			if err != nil {
				t.Fatal(err)
			}
			var logs [3][]entry
			results := [3]sim.Result{}
			for i, x := range []*sim.Sim{early, s, late} {
				watch(x, &logs[i])
				if i == 0 {
					x.Advance(x.Now() + second)
					x.SetPolicy(event.Policy{Kind: event.Fixed, B: []int{2, 2, 3}, W: 60 * ms}) // what is in force
					n := len(logs[i])
					results[i] = x.Run()
					sets := 0
					for _, e := range logs[i][n:] {
						if e.ev.Kind == event.SetPolicy {
							sets++
						}
					}
					if sets != 3 {
						t.Errorf("%s, seed %d: a policy was set %d times", name, seed, sets)
					}
					continue
				}
				results[i] = x.Run()
			}
			tail := encode(want[len(want)-len(logs[1]):])
			if !bytes.Equal(encode(logs[1]), tail) || !bytes.Equal(encode(logs[2]), tail) || len(logs[1]) < 100 {
				t.Errorf("%s, seed %d: from %d on the original makes %d events, its clone %d; not those of a run without clones", name, seed, s.Now(), len(logs[1]), len(logs[2]))
			}
			if !reflect.DeepEqual(results[1], whole) || !reflect.DeepEqual(results[2], whole) {
				t.Errorf("%s, seed %d:\noriginal %+v\nclone %+v\nwhole %+v", name, seed, results[1], results[2], whole)
			}
		}
	}
}

// A clone and its original are apart where they are told different things, in
// turns: neither notices the other, nor changes what the tap was given before. The
// tap itself stays with the original.
func TestCloneIsApart(t *testing.T) {
	told := func(s *sim.Sim, k int) {
		for i := range 1 + k%5 {
			s.Tell(event.Front, event.Event{Kind: event.Cancel, Req: event.ReqID(10 + 3*k + i)})
		}
		s.SetPolicy(event.Policy{Kind: event.Fixed, B: []int{1, 1 + k%2, 2}, W: 60 * ms})
	}
	start := func(log *[]entry) *sim.Sim {
		s := begin(t, full(t, 41))
		watch(s, log)
		for _, k := range []int{4, 3} { // so that places in the list of facts are free
			told(s, k)
			s.Advance(s.Now() + 500*ms)
		}
		told(s, 2)
		return s
	}
	on := func(s *sim.Sim, k int) {
		s.Advance(s.Now() + 50*ms)
		told(s, k) // outstanding while the other goes on
	}
	const rounds = 20
	var alone [2][]entry // the original and the clone, each for itself
	before := 0
	for i := range alone {
		s := start(&alone[i])
		before = len(alone[i])
		for k := range rounds {
			on(s, 5+k+2*i)
		}
	}
	for _, cloneFirst := range []bool{true, false} {
		var logs [2][]entry
		s := start(&logs[0])
		c, err := s.Clone()
		if err != nil {
			t.Fatal(err)
		}
		if c.Step(); len(logs[0]) != before {
			t.Error("the clone speaks to the tap of its original")
		}
		if c, err = s.Clone(); err != nil {
			t.Fatal(err)
		}
		logs[1] = slices.Clone(logs[0])
		watch(c, &logs[1])
		for k := range rounds {
			if !cloneFirst {
				on(s, 5+k)
			}
			on(c, 7+k)
			if cloneFirst {
				on(s, 5+k)
			}
		}
		for i := range logs {
			if !bytes.Equal(encode(logs[i]), encode(alone[i])) {
				t.Errorf("the clone first: %v; number %d of original and clone does not go on as alone", cloneFirst, i)
			}
		}
	}
}

// What is outstanding goes with a clone, but for functions, which can be called
// once only.
func TestCloneRefuses(t *testing.T) {
	refused := func(s *sim.Sim, want string) {
		t.Helper()
		if _, err := s.Clone(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	cfg := open(t, 1)
	s := begin(t, cfg)
	called := 0
	s.At(second, func() {
		called++
		if _, err := s.Clone(); err != nil {
			t.Errorf("behind the last function: %v", err)
		}
	})
	refused(s, "1 functions")
	s.Advance(second)
	s.SetPolicy(event.Policy{})
	s.Tell(event.Front, event.Event{Kind: event.Cancel, Req: 2})
	c, err := s.Clone()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[event.Kind]int{}
	c.SetTap(func(_ event.Peer, ev *event.Event, _ []event.Command) { kinds[ev.Kind]++ })
	c.Advance(second)
	if kinds[event.SetPolicy] != 3 || kinds[event.Cancel] != 1 || called != 1 {
		t.Errorf("in the clone %v; the function was called %d times", kinds, called)
	}
	inside := 0
	s.SetTap(func(event.Peer, *event.Event, []event.Command) {
		if inside++; inside == 1 {
			refused(s, "is being handled")
		}
	})
	s.Advance(2 * second)
	cfg.Control = func(event.Peer, *event.Event) *event.Policy { return nil }
	refused(begin(t, cfg), "Control")
}

// What if: each policy brings what it would have brought, and the regret of a
// policy at a moment is what it misses of the best.
func TestWhatIf(t *testing.T) {
	const at, span = 10 * second, 20 * second
	lock := event.Policy{Kind: event.Fixed, B: []int{8, 1}, W: sim.NoGuard}
	best := event.Policy{Kind: event.Fixed, B: []int{1, 5}, W: sim.NoGuard}
	policies := []event.Policy{{}, best, lock}
	prepare := func() sim.Config {
		cfg := of(t, r2r(8, 0.35, 6, 27.9), 3, second)
		cfg.WarmUp, cfg.Until = at, at+span
		cfg.Jitter, cfg.Latency = 0.03, ms/5
		return cfg
	}
	s := begin(t, prepare())
	s.Advance(at)
	got, err := s.WhatIf(span, policies...)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range policies {
		really := begin(t, prepare())
		really.At(at, func() { really.SetPolicy(p) })
		// What happens at the very moment is before the policy here and behind it there.
		if n := really.Run().Tokens; n != got[i].Tokens {
			t.Errorf("policy %d would bring %d tokens and brings %d", i, got[i].Tokens, n)
		}
	}
	if got[1].Regret != 0 || got[0].Regret < 0.04 || got[0].Regret > 0.1 || got[2].Regret < 0.15 {
		t.Errorf("regrets of eager, B = (1,5) and lock-step: %+v", got)
	}
	t.Logf("from 10 s on, for 20 s, tokens and regret: eager %+v, B = (1,5) %+v, lock-step %+v", got[0], got[1], got[2])
	if s.Now() != at || s.Run().Tokens != got[0].Tokens {
		t.Error("asking changed the run")
	}
	s.At(0, func() {})
	if _, err := s.WhatIf(span, policies...); err == nil {
		t.Error("what if with functions outstanding")
	}
}
