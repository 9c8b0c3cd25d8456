package metrics_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

const guardW = 56 * ms

// policyOf states a policy to every subserver.
func policyOf(s *script, at int64, peers int, p event.Policy) {
	for i := range peers {
		s.event(at, event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: &p})
	}
}

// hop sends a request with the pen from one subserver to another.
func hop(s *script, at int64, from, to event.Peer, id event.ReqID, n uint32) {
	msg := &event.PeerReq{ID: id, From: from, Hop: n, Status: event.Alive}
	s.command(at, from, event.Command{Kind: event.SendPeer, Req: id, To: to, Peer: msg})
	s.event(at, to, event.Event{Kind: event.PeerIn, Peer: msg})
}

// Two requests are ready at the small model, B is 3; the third one is in a batch
// of the large model. Once that lasts longer than W it is told who waits for
// whom, and no longer than it lasts.
func TestWhoWaitsForWhom(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	policyOf(s, 0, 2, event.Policy{Kind: event.Fixed, B: []int{3, 1}, W: guardW})
	for _, id := range []event.ReqID{12, 13, 15} {
		s.arrive(0, id, 4)
	}
	s.load(0, 0, tape.Load{Ready: 3, B: 3, Active: 3})
	s.run(0, 0, event.RuleB, row(12, 4), row(13, 4), row(15, 4))
	s.done(10*ms, 0, 9*ms, keep(12, 0), drop(13, 1), keep(15, 0))
	hop(s, 10*ms, 0, 1, 13, 1)
	s.load(10*ms, 0, tape.Load{Ready: 2, Pending: 1, B: 3, Active: 3})
	s.load(10*ms, 1, tape.Load{Ready: 1, B: 1, Active: 3})
	s.run(12*ms, 1, event.RuleEager, row(13, 5))
	s.load(12*ms, 1, tape.Load{Running: 1, B: 1, Active: 3})

	if w := b.Snapshot(10*ms + guardW).Waits; w != nil {
		t.Errorf("after W and no longer: %+v", w)
	}
	want := []metrics.Wait{{
		Core: 0, For: 61 * time.Millisecond, Ready: 2, Fit: 2, B: 3, Reqs: []event.ReqID{12, 15},
		On: []metrics.WaitOn{{Core: 1, Requests: 1, Batch: 1, For: 59 * time.Millisecond}},
	}}
	if got := b.Snapshot(71 * ms).Waits; !reflect.DeepEqual(got, want) {
		t.Errorf("after 61 ms:\n%+v, want\n%+v", got, want)
	}
	s.done(80*ms, 1, 60*ms, keep(13, 0))
	s.command(80*ms, 1, event.Command{Kind: event.SendPeer, Req: 13, To: 0, Peer: &event.PeerReq{ID: 13, From: 1, Hop: 2, Status: event.Alive}})
	if got := b.Snapshot(80 * ms).Waits; len(got) != 1 || got[0].Comes != 1 || len(got[0].On) != 0 {
		t.Errorf("on its way back: %+v", got)
	}
	s.event(81*ms, 0, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 13, From: 1, Hop: 1, Status: event.Alive}})
	if got := b.Snapshot(81 * ms).Waits; len(got) != 1 || got[0].Ready != 2 {
		t.Errorf("a stale message changes nothing: %+v", got)
	}
	s.event(81*ms, 0, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 13, From: 1, Hop: 2, Status: event.Alive}})
	if got := b.Snapshot(81 * ms).Waits; len(got) != 1 || !slices.Equal(got[0].Reqs, []event.ReqID{12, 15, 13}) {
		t.Errorf("all three are back: %+v", got)
	}
	s.run(81*ms, 0, event.RuleB, row(12, 1), row(15, 1), row(13, 2))
	if got := b.Snapshot(300 * ms).Waits; got != nil {
		t.Errorf("while a batch runs: %+v", got)
	}
	s.done(300*ms, 0, 9*ms, keep(12, 0), keep(15, 0), keep(13, 0))
	for _, id := range []event.ReqID{12, 13, 15} {
		s.finish(300*ms, id, 6)
	}
	if got := b.Snapshot(900 * ms).Waits; got != nil {
		t.Errorf("nothing is ready: %+v", got)
	}
}

// A request that finds no KV waits although nobody counts it as ready; whoever
// holds the KV is elsewhere. A pause is no waiting, and without W nothing is
// long.
func TestWaitsForKV(t *testing.T) {
	b := metrics.NewBoard(3)
	s := newScript(b)
	for _, id := range []event.ReqID{1, 2, 3, 4} {
		s.arrive(0, id, 4)
	}
	s.run(0, 0, event.RuleEager, row(1, 4), row(2, 4), row(3, 4))
	s.done(10*ms, 0, 9*ms, drop(1, 2), drop(2, 2), drop(3, 1))
	hop(s, 10*ms, 0, 2, 1, 1)
	hop(s, 10*ms, 0, 2, 2, 1)
	hop(s, 10*ms, 0, 1, 3, 1)
	s.load(10*ms, 0, tape.Load{Pending: 3, B: 1, Active: 4})
	s.run(20*ms, 2, event.RuleEager, row(1, 5), row(2, 5))
	if got := b.Snapshot(500 * ms).Waits; got != nil {
		t.Errorf("without W: %+v", got)
	}
	policyOf(s, 20*ms, 3, event.Policy{Kind: event.Table, W: guardW})
	got := b.Snapshot(100 * ms).Waits
	if len(got) != 2 || got[0].Core != 0 || got[1].Core != 1 {
		t.Fatalf("%+v", got)
	}
	want := metrics.Wait{
		Core: 0, For: 90 * time.Millisecond, Ready: 1, Fit: 0, B: 1, Reqs: []event.ReqID{4},
		On: []metrics.WaitOn{{Core: 2, Requests: 2, Batch: 2, For: 80 * time.Millisecond}, {Core: 1, Requests: 1}},
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("%+v, want %+v", got[0], want)
	}
	s.host(100*ms, &tape.Setting{Setting: "paused", New: "true"})
	if later := b.Snapshot(9000 * ms).Waits; !reflect.DeepEqual(later, got) {
		t.Errorf("in a pause it goes on: %+v", later)
	}
}

// Where requests stand is what the cores say of themselves, on tapes with stops
// found late, cancelled requests and every policy.
func TestStandingIsTheLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := tapetest.Config{
			Models: rapid.IntRange(1, 3).Draw(t, "models"), Requests: 40, Concurrency: rapid.IntRange(1, 9).Draw(t, "concurrency"),
			Seed: rapid.Uint64().Draw(t, "seed"), Large: rapid.Float64Range(0.01, 0.7).Draw(t, "large"), Cancel: rapid.Float64Range(0, 0.4).Draw(t, "cancel"),
			Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 2, 2}, W: 20 * ms},
		}
		recs, _, err := tapetest.Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b := metrics.NewBoard(cfg.Models)
		checked := 0
		owed := make([]map[event.ReqID]bool, cfg.Models) // ends that a peer has not heard of
		for i := range owed {
			owed[i] = map[event.ReqID]bool{}
		}
		for i := range recs {
			r := &recs[i]
			b.Add(r)
			switch {
			case r.Kind == tape.KindCommand && r.Command.Kind == event.Finish:
				for p := 1; p < cfg.Models; p++ {
					owed[p][r.Command.Req] = true
				}
			case r.Kind == tape.KindEvent && r.Event.Kind == event.PeerIn && r.Event.Peer.From == event.Front:
				if s := r.Event.Peer.Status; s == event.Finished || s == event.Abort {
					delete(owed[r.Core], r.Event.Peer.ID)
				}
			case r.Kind == tape.KindLoad && len(owed[r.Core]) == 0:
				checked++
				if ready, running, _ := b.Standing(r.Core); ready != r.Load.Ready || running != r.Load.Running {
					t.Fatalf("record %d at subserver %d: %d ready, %d running; the core says %+v", i, r.Core, ready, running, *r.Load)
				}
			}
		}
		if checked < 40 {
			t.Fatalf("only %d loads were checked", checked)
		}
	})
}
