package live

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner/paced"
)

// Facts that are dated back (date.go) must be heard in the order of their dates:
// what is here lets a decode loop wait, for a moment of the wall clock, for a peer
// that is later than itself. A loop waits only for what was due before, so no two
// ever wait for one another.

// pending is what peers may have to wait for under a profile. A core that has been
// late and catches up is asked for batches in the past; what a peer was due to
// send it by then, and has not, because that is late as well, would miss them.
type pending struct {
	ends   atomic.Int64 // when the running batch is due to end, 0: none runs
	acts   atomic.Int64 // stated end of a step after which no batch was asked for yet, 0: none
	unsent atomic.Int64 // stated end of the last step whose messages are still under way, 0: none
	awaits atomic.Bool  // this subserver waits for a peer

	mu      sync.Mutex
	unheard []int64 // due times of the messages it has not heard and acted upon

	heard []int64 // of those, when it heard them; of the decode loop
}

// comes notes a message on its way to this subserver.
func (p *pending) comes(due int64) {
	p.mu.Lock()
	p.unheard = append(p.unheard, due)
	p.mu.Unlock()
}

// hears notes that a message was heard, as of a time: what it leads to is of that
// time, which is later than it was due where a step has been late.
func (p *pending) hears(due, at int64) {
	p.mu.Lock()
	if i := slices.Index(p.unheard, due); i >= 0 {
		p.unheard[i] = at
	}
	p.mu.Unlock()
	p.heard = append(p.heard, at)
}

// acted strikes out what was heard: the batch that it leads to, if any, has begun.
func (p *pending) acted() {
	p.mu.Lock()
	for _, due := range p.heard {
		if i := slices.Index(p.unheard, due); i >= 0 {
			p.unheard = slices.Delete(p.unheard, i, i+1)
		}
	}
	p.mu.Unlock()
	p.heard = p.heard[:0]
}

// first is the earliest of the messages that it has yet to act upon, 0 for none.
func (p *pending) first() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unheard) == 0 {
		return 0
	}
	return slices.Min(p.unheard)
}

// mostAwaited is how long a core waits for who is late.
const mostAwaited = 250 * time.Millisecond

// begins notes when a batch is due to end that was ordered at a time.
func (s *subserver) begins(b *event.Batch, at int64) {
	if s.rt.cfg.profile() == nil {
		return
	}
	exec, over := s.rt.cfg.Pacer.Takes(int(s.self), b)
	s.pending.ends.Store(at + int64(exec+over))
}

// ended notes that the running batch is over and its messages are with the
// inter-model loop. What it leads to is of the time at which its end was stated: a
// step that computed for longer than the profile allows is followed by nothing
// earlier, and must not be waited for as if it were.
func (s *subserver) ended() {
	p := &s.pending
	if p.ends.Load() == 0 {
		return
	}
	end := s.last
	p.unsent.Store(end)
	p.acts.Store(end)
	p.ends.Store(0)
	s.out.put(outbound{mark: end})
}

// delivered notes that every message is with its receiver that was sent up to the
// end of a step, and wakes who waits for that.
func (s *subserver) delivered(mark int64) {
	s.pending.unsent.CompareAndSwap(mark, 0)
	s.wakeWaiting()
}

// acted notes that the core has had its chance to act upon what it has heard.
func (s *subserver) acted() {
	p := &s.pending
	if p.acts.Load() == 0 && len(p.heard) == 0 {
		return
	}
	p.acts.Store(0)
	p.acted()
	s.wakeWaiting()
}

// post puts a fact that is due at a time into the mailbox.
func (s *subserver) post(due int64, ev *event.Event) {
	noted := s.rt.cfg.profile() != nil
	if noted {
		s.pending.comes(due)
	}
	s.in.put(item{due: due, ev: ev, noted: noted})
}

// wakeWaiting wakes the peers that wait for one that is late.
func (s *subserver) wakeWaiting() {
	for _, peer := range s.rt.subs {
		if peer.pending.awaits.Swap(false) {
			select {
			case peer.in.note <- struct{}{}:
			default:
			}
		}
	}
}

// runsUntil says whether the running batch was due to end before a time, and what
// came of it is not known yet.
func (s *subserver) runsUntil(at int64) bool {
	if s.rt.cfg.profile() == nil || s.core.Running() == nil {
		return false
	}
	now := s.rt.Now()
	return s.late(s.ends(s, now), at, now)
}

// ends is when the batch of a peer was due to end, 0 where none runs: nor where it
// has computed for longer than that takes, for it is over no sooner than now, and
// whatever was due before goes first. When that shows, s looks again.
func (s *subserver) ends(peer *subserver, now int64) int64 {
	end := peer.pending.ends.Load()
	if end == 0 {
		return 0
	}
	run, ok := peer.run.(*paced.Runner)
	if !ok {
		return end
	}
	overdue := run.Overdue()
	if overdue.IsZero() {
		return end
	}
	at := int64(overdue.Sub(s.rt.start))
	if at <= now {
		return 0
	}
	s.lookBy(at)
	return end
}

// lookBy has the decode loop look again at a time, or before.
func (s *subserver) lookBy(at int64) {
	if s.until == 0 || at < s.until {
		s.until = at
	}
}

// late says whether something that was due at end, 0 for nothing, has to be waited
// for before what is due at a time.
func (s *subserver) late(end, at, now int64) bool {
	if end == 0 || end >= at || now >= end+int64(mostAwaited) {
		return false
	}
	s.lookBy(end + int64(mostAwaited))
	return true
}

// awaits says whether the core must not hear of anything nor be asked for a batch
// at a time, 0 for now, because a peer is late with what it was due to send before.
func (s *subserver) awaits(at int64) bool {
	if s.rt.cfg.profile() == nil || !s.preceded(at) {
		return false
	}
	s.pending.awaits.Store(true)
	return s.preceded(at) // who was late may have looked before that was set
}

// unseen says whether a message has come since the decode loop looked into its
// mailbox, for whose sake it was perhaps about to wait.
func (s *subserver) unseen() bool {
	n := len(s.pending.heard)
	for i := range s.queue {
		if s.queue[i].noted {
			n++
		}
	}
	s.pending.mu.Lock()
	defer s.pending.mu.Unlock()
	return len(s.pending.unheard) > n
}

func (s *subserver) preceded(at int64) bool {
	now := s.rt.Now()
	if at == 0 {
		at = now
	}
	at -= int64(s.rt.cfg.Pacer.Latency())
	if s.unseen() {
		return true
	}
	for _, peer := range s.rt.subs {
		// What a step sends at its end comes before anything else that happens then;
		// what follows from a message, or from asking for a batch, does not. They are
		// read in the order in which one takes the place of another.
		p := &peer.pending
		first, ends, acts, unsent := p.first(), s.ends(peer, now), p.acts.Load(), p.unsent.Load()
		if s.late(unsent, at+1, now) { // its own as well: a reply may be due
			return true
		}
		if peer != s && (s.late(first, at, now) || s.late(ends, at+1, now) || s.late(acts, at, now) || s.late(s.ends(peer, now), at+1, now)) {
			return true
		}
	}
	return false
}

// hear handles what the decode loop has found. Under a profile that is in the
// order of when things were due as far as they are late: a message does not
// overtake the end of the step that ran when it was sent, and a batch that could
// have started between two facts does.
func (s *subserver) hear() {
	s.until = 0
	for {
		i := s.ripe()
		due, wake := int64(0), false
		if i >= 0 {
			due = s.queue[i].due
		}
		if at := s.wakeAt; at > 0 && at <= s.rt.Now() && (i < 0 || due == 0 || at <= due) && !s.runsUntil(at) && !s.awaits(at) {
			due, wake = at, true
		}
		switch {
		case i < 0 && !wake:
			return
		case s.stated && due > s.last && s.rt.cfg.profile() != nil:
			if s.dispatch(); s.stated {
				return // a peer is waited for
			}
			// What was next may have to wait now.
		case wake:
			s.wakeAt = 0
			s.step(&event.Event{Kind: event.Wake, Gen: s.wakeGen}, due)
		default:
			it := s.queue[i]
			s.queue = slices.Delete(s.queue, i, i+1)
			s.handle(&it)
			if it.noted {
				s.pending.hears(it.due, s.last)
			}
		}
	}
}

// ripe is the place in the queue of what is to be handled next, -1 if all of it has
// to wait. The end of a step never has, nor what is due when it is found, such as
// the stop of a request; messages and the wish to drain stay in order.
func (s *subserver) ripe() int {
	waits := false
	for i := range s.queue {
		it := &s.queue[i]
		inOrder := it.done == nil && (it.due > 0 || it.drain != nil)
		if inOrder && (waits || it.due > 0 && (s.runsUntil(it.due) || s.awaits(it.due))) {
			waits = true
			continue
		}
		return i
	}
	return -1
}
