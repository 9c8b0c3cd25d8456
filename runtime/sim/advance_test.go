package sim_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
)

var nan = math.NaN()

// A run in pieces of any length is the run in one piece, and what was measured
// at any moment is of the time so far.
func TestAdvanceInPieces(t *testing.T) {
	inPieces(t, open(t, 23))
	inPieces(t, full(t, 23))
}

func inPieces(t *testing.T, cfg sim.Config) {
	whole, want := logged(t, cfg)
	var log []entry
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		log = append(log, entry{core, ev, cmds})
	}
	s := begin(t, cfg)
	last := sim.Result{}
	for k, at := 0, int64(0); at < cfg.Until; k++ {
		due, ok := s.Next()
		if !ok || due < s.Now() {
			t.Fatalf("at %d the next is due at %d, %v", s.Now(), due, ok)
		}
		switch u := (rng.Key{Seed: 1, Pos: k}).Uint64(0); u % 4 {
		case 0:
			at = due
		case 1:
			at = max(at, due-1)
		default:
			at += int64(u>>2) % (20 * ms)
		}
		at = min(at, cfg.Until)
		before := len(log)
		if !s.Advance(at) || s.Now() != at {
			t.Fatalf("a run without end ends at %d of %d", s.Now(), at)
		}
		if due > at && len(log) > before {
			t.Fatalf("the next was due at %d and %v happened up to %d", due, log[before].ev, at)
		}
		if k%100 == 0 {
			r := s.Result()
			if r.To != max(at, cfg.WarmUp) || r.Tokens < last.Tokens || r.Events < last.Events || r.Stuck != 0 || r.RateErr != 0 {
				t.Fatalf("at %d, behind %+v: %+v", at, last, r)
			}
			for m, c := range r.Cores {
				if c.Busy > 1 {
					t.Fatalf("at %d model %d was busy for %v of the time", at, m, c.Busy)
				}
			}
			last = r
		}
	}
	if r := s.Result(); !reflect.DeepEqual(r, whole) {
		t.Errorf("in pieces %+v\nin one %+v", r, whole)
	}
	if !bytes.Equal(encode(log), encode(want)) {
		t.Error("the pieces change what happens")
	}
	if s.Advance(0); s.Now() != cfg.Until {
		t.Errorf("time went back to %d", s.Now())
	}
}

// closed tells what the simulation's own clients would send, from its Tap.
func closed(s **sim.Sim, cfg *sim.Config) {
	n, id := cfg.Clients, event.ReqID(0)
	length, tap := cfg.Length, cfg.Tap
	cfg.Clients, cfg.Length = 0, nil
	send := func() {
		id++
		prompt := make([]event.Token, 9)
		for i := range prompt {
			prompt[i] = event.Token(rng.Key{Seed: cfg.Seed, Req: uint64(id), Purpose: rng.Prompt}.Uint64(i) % (1 << 15))
		}
		(*s).Tell(event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: prompt, MaxTokens: length(id)}})
	}
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		if tap != nil {
			tap(core, ev, cmds)
		}
		for _, c := range cmds {
			if c.Kind == event.Finish {
				send()
			}
		}
		if ev.Kind == event.SetPolicy && core == 2 && ev.At == 0 {
			for range n {
				send()
			}
		}
	}
}

// Requests that are told arrive as those of the simulation's own clients: the
// same run, byte for byte.
func TestToldRequests(t *testing.T) {
	own, want := logged(t, open(t, 29))
	cfg := open(t, 29)
	var log []entry
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		log = append(log, entry{core, ev, cmds})
	}
	var s *sim.Sim
	closed(&s, &cfg)
	s = begin(t, cfg)
	if r := s.Run(); !reflect.DeepEqual(r, own) {
		t.Errorf("told %+v\nown %+v", r, own)
	}
	if !bytes.Equal(encode(log), encode(want)) {
		t.Error("what is told differs from what the clients send")
	}
}

// Without clients nothing happens by itself. What is told between two calls of
// Advance happens at the present time, in that order, and everything ends.
func TestTellBetween(t *testing.T) {
	cfg := open(t, 31)
	cfg.Clients, cfg.Length, cfg.Until, cfg.WarmUp = 0, nil, 0, 0
	var log []string
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		if ev.Kind == event.Arrive || ev.Kind == event.Cancel {
			log = append(log, fmt.Sprintf("%v %d at %d", ev.Kind, ev.Req, ev.At/ms))
		}
		for _, c := range cmds {
			if c.Kind == event.Finish {
				log = append(log, fmt.Sprintf("end of %d: %v", c.Req, c.Reason))
			}
		}
	}
	s := begin(t, cfg)
	if s.Advance(5 * ms) {
		t.Error("something is due with nobody there")
	}
	if _, ok := s.Next(); ok || s.Now() != 5*ms {
		t.Errorf("something is due; it is %d", s.Now())
	}
	arrive := func(id event.ReqID, n int) {
		s.Tell(event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: []event.Token{1, 2, 3}, MaxTokens: n}})
	}
	arrive(1, 1<<20)
	arrive(2, 1<<20)
	s.Tell(event.Front, event.Event{Kind: event.Cancel, Req: 2})
	if at, ok := s.Next(); !ok || at != 5*ms {
		t.Errorf("what was told is due at %d, %v", at, ok)
	}
	if !s.Advance(400 * ms) {
		t.Error("a request is open and nothing goes on")
	}
	arrive(7, 5)
	s.Advance(2 * second)
	s.Tell(event.Front, event.Event{Kind: event.Cancel, Req: 1})
	if s.Advance(3 * second) {
		t.Error("every request is over and something goes on")
	}
	want := []string{"arrive 1 at 5", "arrive 2 at 5", "cancel 2 at 5", "end of 2: aborted", "arrive 7 at 400", "end of 7: length", "cancel 1 at 2000", "end of 1: aborted"}
	if !reflect.DeepEqual(log, want) {
		t.Errorf("got %q\nwant %q", log, want)
	}
	r := s.Result()
	if r.Sent != 3 || r.Finished != 3 || r.Stuck != 0 || r.To != 2*second || r.Tokens < 50 || !s.Fabric().Idle() {
		t.Errorf("%+v", r)
	}
}

// Receive is asked about what comes in, and its word holds: here that every
// seventh request that goes to the large model brings one token more.
func TestReceive(t *testing.T) {
	cfg := open(t, 37)
	const extra = 999_999
	asked, added := 0, 0
	cfg.Receive = func(core event.Peer, m *event.PeerReq, v sched.View) event.Verdict {
		if asked++; core != 2 || asked%7 > 0 || m.Status != event.Alive {
			return event.Verdict{}
		}
		added++
		return event.Verdict{Kind: event.Append, Ids: append(slices.Clone(m.Suffix), extra)}
	}
	r, log := logged(t, cfg)
	seen := 0
	for _, e := range log {
		for _, c := range e.cmds {
			if c.Kind == event.Emit && c.Token == extra {
				seen++
			}
		}
	}
	if asked < 1000 || added < 50 || seen < added*9/10 || r.Failed > 0 {
		t.Errorf("asked %d times, %d tokens added, %d of them committed, %d requests failed", asked, added, seen, r.Failed)
	}
}
