package sim

import "tokenrouter/runtime/event"

// act is what the caller does to the cluster at a time: a fact that it states, a
// policy for everybody, or a function that is called.
type act struct {
	fn     func()
	policy *event.Policy
	core   event.Peer
	ev     event.Event
}

// acts are those in the queue, by their place here.
type acts struct {
	list []act
	free []uint64
	fns  int // of them functions
}

// plan puts a into the queue.
func (s *Sim) plan(at int64, c class, a act) {
	if a.fn != nil {
		s.acts.fns++
	}
	id := uint64(len(s.acts.list))
	if n := len(s.acts.free); n > 0 {
		id = s.acts.free[n-1]
		s.acts.free = s.acts.free[:n-1]
		s.acts.list[id] = a
	} else {
		s.acts.list = append(s.acts.list, a)
	}
	s.queue.put(due{at: max(at, s.now), class: c, id: id})
}

// act does what stands at place id.
func (s *Sim) act(id uint64) {
	a := s.acts.list[id]
	s.acts.list[id] = act{}
	s.acts.free = append(s.acts.free, id)
	switch {
	case a.fn != nil:
		s.acts.fns--
		a.fn()
	case a.policy != nil:
		s.policy = a.policy
		for p := range s.cores {
			s.setPolicy(event.Peer(p))
		}
	default:
		s.tell(a.core, a.ev)
	}
}

// At calls fn at time at, before anything else that is due then; a time that has
// passed means now.
func (s *Sim) At(at int64, fn func()) { s.plan(at, control, act{fn: fn}) }

// Tell states fact ev to core p now; its At is set. It takes effect after what
// is being handled, what was told before, and steps and messages that end now,
// and before any dispatch. It may be called in Tap, in Source, in functions given
// to At and between two calls of Advance. What ev points to must not change any
// more. With Clients 0 requests come by it: Arrive at the front, with ids from 1 on
// that rise.
func (s *Sim) Tell(p event.Peer, ev event.Event) { s.plan(s.now, told, act{core: p, ev: ev}) }

// SetPolicy puts p in force everywhere, after what is being handled and before
// anything else that is due now. It may be called where Tell may, and before Run.
func (s *Sim) SetPolicy(p event.Policy) { s.plan(s.now, control, act{policy: &p}) }

func (s *Sim) setPolicy(p event.Peer) {
	s.tell(p, event.Event{Kind: event.SetPolicy, Policy: s.policy})
}

// Restart kills subserver p and puts one in its place that knows nothing but the
// policy: the batch that ran there, its timers and every pen it held are lost.
// Messages under way arrive. It may be called in functions given to At and
// between two calls of Advance.
func (s *Sim) Restart(p event.Peer) error {
	if err := s.fab.Restart(p); err != nil {
		return err
	}
	s.begin()
	s.lose(p, &s.cores[p])
	s.cores[p].timer++
	s.setPolicy(p)
	return nil
}
