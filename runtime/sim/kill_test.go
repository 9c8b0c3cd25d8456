package sim_test

import (
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sim"
)

// killed is a finite run in which a peer is killed at random, once a second on
// average, as long as it goes on.
func killed(t testing.TB, seed uint64, timeout int64) (*sim.Sim, *int) {
	cfg := open(t, seed)
	cfg.Requests, cfg.Until, cfg.WarmUp = 40, 0, 0
	if seed%2 == 0 {
		spec := r2r(6, 0.35, 6, 27.9)
		two := of(t, spec, seed, second)
		cfg.Cluster, cfg.Source, cfg.Step = two.Cluster, two.Source, two.Step
		cfg.Policy.B = []int{1, 3}
	}
	if seed%3 == 1 {
		cfg.Contention = make([][]float64, len(cfg.Cluster))
		for i := range cfg.Contention {
			cfg.Contention[i] = make([]float64, len(cfg.Cluster))
			cfg.Contention[i][(i+1)%len(cfg.Cluster)] = 1.5
		}
		cfg.Overhead = func(int, int) time.Duration { return time.Millisecond }
	}
	for i := range cfg.Cluster {
		cfg.Cluster[i].Timeout = timeout
	}
	s := begin(t, cfg)
	kills := new(int)
	var next func()
	next = func() {
		key := rng.Key{Seed: seed, Pos: *kills, Purpose: 99}
		if k := s.Fabric().Core(event.Front).Counts(); k.Arrived == cfg.Requests && k.Finished == k.Arrived {
			return
		}
		if *kills++; *kills > 200 {
			return
		}
		if err := s.Restart(event.Peer(1 + key.Uint64(0)%uint64(len(cfg.Cluster)-1))); err != nil {
			t.Fatal(err)
		}
		s.At(s.Now()+1+int64(key.Uint64(1)%uint64(2*second)), next)
	}
	s.At(second/2, next)
	return s, kills
}

// A killed subserver begins again with the policy in force, and nothing of its
// first life reaches the second: no end of a batch that it does not run, no
// timer that it did not ask for.
func TestRestartIsClean(t *testing.T) {
	cfg := open(t, 3)
	cfg.Clients = 200 // each kill costs what the subserver had
	cfg.Cluster = sim.Roomy(200, 8, 8, 8)
	var s *sim.Sim
	var policies, fresh int
	life := map[event.Peer]int{}
	ran, ended := map[event.Peer]*event.Batch{}, 0
	timers := map[event.Peer]event.Command{}
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		switch ev.Kind {
		case event.SetPolicy:
			if ev.At > 0 {
				policies++
			}
		case event.StepDone:
			if b := ran[core]; b == nil || b.ID != ev.Step.Batch {
				t.Fatalf("batch %d of subserver %d ends and does not run", ev.Step.Batch, core)
			}
			ran[core] = nil
			ended++
		case event.Wake:
			if c := timers[core]; c.Gen != ev.Gen || c.At != ev.At {
				t.Fatalf("subserver %d is woken at %d as %d, asked for %d as %d", core, ev.At, ev.Gen, c.At, c.Gen)
			}
		}
		for _, c := range cmds {
			switch c.Kind {
			case event.RunBatch:
				ran[core] = c.Batch
				if life[core] > 0 && c.Batch.Rule == event.RuleB && c.Batch.B > 1 {
					fresh++
				}
			case event.WakeAt:
				timers[core] = c
			}
		}
	}
	s = begin(t, cfg)
	for i := int64(1); i <= 30; i++ {
		s.At(i*200*ms+i, func() {
			p := event.Peer(1 + i%2)
			life[p]++
			delete(ran, p)
			delete(timers, p)
			if err := s.Restart(p); err != nil {
				t.Fatal(err)
			}
		})
	}
	s.Run()
	if policies != 30 || fresh == 0 || ended < 500 {
		t.Errorf("%d policies after a kill, %d batches by threshold, %d batches ended", policies, fresh, ended)
	}
}

// Without a time-out what a killed peer had is lost for ever, and the run says
// so: it ends with requests that are stuck.
func TestKillsWithoutTimeout(t *testing.T) {
	s, kills := killed(t, 3, 0)
	r := s.Run()
	if r.Stuck == 0 || r.Stuck+r.Finished != r.Sent || r.Failed != 0 {
		t.Errorf("%d kills: %d sent, %d finished, %d failed, %d stuck", *kills, r.Sent, r.Finished, r.Failed, r.Stuck)
	}
	if err := s.Restart(event.Front); err == nil {
		t.Error("the front was restarted")
	}
}

// With a time-out no kill leaves anything stuck: every request ends, those whose
// pen was lost with an error, in bounded time, and everything is free at last.
func TestKillsWithTimeout(t *testing.T) {
	kills, failed := 0, 0
	for seed := range uint64(20) {
		s, n := killed(t, seed, second/2)
		r := s.Run()
		kills, failed = kills+*n, failed+r.Failed
		if r.Stuck > 0 || r.Finished != r.Sent || r.Sent != 40 || r.Failed > 6**n {
			t.Errorf("seed %d: %d kills, %d sent, %d finished, %d failed, %d stuck", seed, *n, r.Sent, r.Finished, r.Failed, r.Stuck)
		}
		if err := s.Fabric().Check(); err != nil || !s.Fabric().Idle() {
			t.Errorf("seed %d: idle %v, %v", seed, s.Fabric().Idle(), err)
		}
		if r.LastEnd > 120*second {
			t.Errorf("seed %d: the last request ended after %d ns", seed, r.LastEnd)
		}
	}
	if kills < 40 || failed < 20 {
		t.Errorf("%d kills, %d requests failed; the test has lost its sense", kills, failed)
	}
}
