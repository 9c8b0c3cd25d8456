package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
)

// peerIn takes a message of another subserver. Whatever it is, the request goes
// on or ends: a message that cannot be followed is noted.
func (c *Core) peerIn(m *event.PeerReq, v *event.Verdict) {
	switch {
	case m == nil:
		c.note(event.NoteUnknown, 0, 0, "an empty message dropped")
	case m.From == c.self || m.From < 0 || int(m.From) >= c.n:
		c.note(event.NoteUnknown, m.ID, 0, fmt.Sprintf("a message from subserver %d dropped", m.From))
	case m.Status == event.Resend:
		c.resend(m)
	case m.From == event.Front && (m.Status == event.Finished || m.Status == event.Abort):
		c.told(m)
	case c.self != event.Front && m.Status == event.Abort:
		c.told(m) // by one who dropped its message
	case m.Status == event.New || m.Status == event.Alive:
		c.pen(m, v)
	case c.self == event.Front && (m.Status == event.Finished || m.Status == event.Error):
		c.pen(m, v)
	default:
		c.note(event.NoteUnknown, m.ID, 0, fmt.Sprintf("%v from subserver %d has no meaning here; dropped", m.Status, m.From))
	}
}

// pen takes the pen over: hop test, overlap test, then on with the request.
func (c *Core) pen(m *event.PeerReq, v *event.Verdict) {
	if c.isDead(m.ID) {
		c.note(event.NoteDead, m.ID, 0, m.Status.String()+" for a finished request dropped")
		c.answerDead(m)
		return
	}
	r := c.reqs[m.ID]
	if r == nil && c.self == event.Front {
		c.note(event.NoteUnknown, m.ID, 0, m.Status.String()+" for a request never seen dropped")
		return
	}
	if why := c.stale(r, m.Hop); why != "" {
		c.note(event.NoteStale, m.ID, int(m.Hop), why)
		return
	}
	held := 0
	if r != nil {
		held = len(r.tokens)
	}
	if m.Loc > held {
		c.askAgain(m, held)
		return
	}
	if bad := c.malformed(r, m); bad != "" {
		c.refuse(r, m, bad)
		return
	}
	if r == nil {
		r = &request{id: m.ID, limits: m.Limits, sampling: m.Sampling, dropped: -1}
		r.tokens = make([]event.Token, 0, room(m.Loc+len(m.Suffix), r.limits.MaxLen))
		c.add(r, Pending)
	} else {
		c.isBack(r)
	}
	c.take(r, m)
	reason, over := r.over()
	switch {
	case m.Status == event.Error:
		c.fail(r, m.Err)
	case over || m.Status == event.Finished:
		c.end(r, reason, 0)
	default:
		c.received(r, m, v)
	}
}

// stale says why a message with the pen at that hop is not the next one, "" if
// it is (INV-2). With two subservers the next hop is the one behind the last; with more,
// others may have passed the pen on meanwhile, so any later one is right.
// Whoever holds the pen expects none, whoever does not know the request any.
func (c *Core) stale(r *request, hop uint32) string {
	switch {
	case hop == 0:
		return "a message without a hop dropped"
	case r == nil:
		return ""
	case r.phase != Pending:
		return fmt.Sprintf("hop %d dropped: the pen is here since hop %d", hop, r.hop)
	case hop <= r.hop || c.n == 2 && hop != r.hop+1:
		return fmt.Sprintf("hop %d dropped: the last one here was %d", hop, r.hop)
	}
	return ""
}

// malformed says why a message cannot be gone on with, "" if it can.
func (c *Core) malformed(r *request, m *event.PeerReq) string {
	limits, held := m.Limits, 0
	if r != nil {
		limits, held = r.limits, len(r.tokens)
	}
	end := m.Loc + len(m.Suffix)
	if !holdsBack(m) {
		end = max(end, held)
	}
	pool := c.pool.Total() * c.pool.Block()
	switch {
	case m.Loc < 0 || end < 1 || limits.PromptLen < 1:
		return fmt.Sprintf("a message of subserver %d carries no tokens", m.From)
	case end > limits.MaxLen || limits.MaxLen > pool:
		return fmt.Sprintf("a message of subserver %d brings %d tokens of at most %d to a pool of %d", m.From, end, limits.MaxLen, pool)
	case len(m.Seen) != c.n:
		return fmt.Sprintf("a message of subserver %d knows %d subservers in place of %d", m.From, len(m.Seen), c.n)
	case slices.Min(m.Seen) < 0 || slices.Max(m.Seen) > end:
		return fmt.Sprintf("a message of subserver %d believes in lengths that nobody can hold", m.From)
	case holdsBack(m):
		return c.wrongHold(r, m, limits.PromptLen)
	}
	return ""
}

// refuse ends the request of a message that cannot be gone on with: nobody else
// has the pen, so dropping the message would leave it unfinished for ever.
func (c *Core) refuse(r *request, m *event.PeerReq, why string) {
	if r != nil {
		c.isBack(r)
		r.hop = m.Hop
		c.shorten(r, r.emitted) // the rest may be in no text any more
		c.fail(r, why)
		return
	}
	c.emit(event.Command{Kind: event.SendPeer, Req: m.ID, To: event.Front, Peer: &event.PeerReq{
		ID: m.ID, From: c.self, Hop: m.Hop + 1, Status: event.Error, Seen: make([]int, c.n), Err: why,
	}})
}

// take brings what this core knows up to the message: own tokens stay as far as
// the suffix agrees and are cut only where it differs (INV-14).
func (c *Core) take(r *request, m *event.PeerReq) {
	if holdsBack(m) && m.Loc < r.dropped {
		r.dropped = -1 // another truncated below it, so that position is behind another text
	}
	tail := r.tokens[m.Loc:]
	same := 0
	for same < min(len(tail), len(m.Suffix)) && tail[same] == m.Suffix[same] {
		same++
	}
	if rest := m.Suffix[same:]; len(rest) > 0 {
		at := m.Loc + same
		if at < len(r.tokens) {
			c.cut(r, at)
		}
		r.tokens = append(r.tokens, rest...)
	} else if end := m.Loc + same; holdsBack(m) && end < len(r.tokens) {
		c.cut(r, end)
	}
	c.takeHeld(r, m)
	r.hop = m.Hop
	r.seen = append(r.seen[:0], m.Seen...)
	r.seen[c.self] = len(r.tokens)
	r.state, r.fields, r.router = m.State, m.Fields, m.Router
	r.budget, r.wrote = max(0, m.Budget), 0
	r.sent = nil
}

// cut forgets own tokens from position at on, and their KV. Where at falls into
// a block of the prefix tree others may read it, so it must not be written: all
// KV is given back, and what lies before that block will be found there again.
func (c *Core) cut(r *request, at int) {
	if at < r.seq.Shared()*c.pool.Block() && at%c.pool.Block() != 0 {
		c.preempt(r)
	}
	r.tokens = append(make([]event.Token, 0, room(at, r.limits.MaxLen)), r.tokens[:at]...)
	if r.dropped > at {
		r.dropped = -1 // behind another text
	}
	r.fed, r.had = min(r.fed, at), min(r.had, at)
	c.pool.Cut(&r.seq, at)
	if r.seq.Blocks() == 0 {
		c.unhold(r)
	}
}

// received goes on with a request that came with the pen, as receive decided.
func (c *Core) received(r *request, m *event.PeerReq, v *event.Verdict) {
	if v.Fault != "" {
		c.note(event.NoteFault, r.id, 0, v.Fault)
	}
	if v.Kind == event.Append && v.Fault == "" {
		if c.appended(r, m, v) {
			return
		}
	}
	if c.spent(r) {
		c.note(event.NoteBudget, r.id, r.budget, "")
		c.handOff(r, event.Front, event.PeerReq{Status: event.Alive})
		return
	}
	c.makeReady(r)
}

// appended commits the ids that stand in place of the suffix. What the suffix
// brings was committed by another core, so the ids may go on behind it and not
// against it; else the whole suffix stands and the router is at
// fault. What goes beyond the budget is cut (INV-12). It returns true if the
// request ended.
func (c *Core) appended(r *request, m *event.PeerReq, v *event.Verdict) bool {
	known, ids := r.tokens[m.Loc:], v.Ids
	if len(ids) < len(known) || !slices.Equal(ids[:len(known)], known) {
		c.note(event.NoteFault, r.id, 0, fmt.Sprintf("APPEND of %d ids contradicts the %d tokens already emitted from position %d; they are taken over", len(ids), len(known), m.Loc))
		return false
	}
	ids = ids[len(known):]
	for i, t := range ids {
		c.commit(r, t)
		reason, over := r.over()
		if !over && !c.spent(r) {
			continue
		}
		if cut := len(ids) - i - 1; cut > 0 {
			c.note(event.NoteCut, r.id, cut, "")
		}
		if over {
			c.end(r, reason, v.Stop)
		}
		return over
	}
	return false
}

// askAgain answers a gap: the sender, pending, keeps what it sent and sends it
// again from the length held here. Nothing else of the message is used.
func (c *Core) askAgain(m *event.PeerReq, held int) {
	c.note(event.NoteResend, m.ID, held, fmt.Sprintf("subserver %d believes %d tokens are held here", m.From, m.Loc))
	c.emit(event.Command{Kind: event.SendPeer, Req: m.ID, To: m.From, Peer: &event.PeerReq{
		ID: m.ID, From: c.self, Hop: m.Hop, Loc: held, Status: event.Resend,
	}})
}

// resend sends the last message again, with the suffix from where the receiver
// really is. A resend of hop 0, which no message has, only asks whether the
// request still lives.
func (c *Core) resend(m *event.PeerReq) {
	if c.isDead(m.ID) {
		c.answerDead(m)
	}
	r := c.find(m.ID, "resend")
	if r == nil || m.Hop == 0 {
		return
	}
	if r.phase != Pending || r.sent == nil || r.sentTo != m.From || r.hop != m.Hop || m.Loc < 0 || m.Loc > len(r.tokens) {
		c.note(event.NoteStale, m.ID, int(m.Hop), fmt.Sprintf("resend for hop %d dropped", m.Hop))
		return
	}
	again := *r.sent
	again.Loc, again.Suffix = m.Loc, r.suffix(m.Loc)
	c.send(r, m.From, &again)
}
