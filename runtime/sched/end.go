package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
)

// end is called where the last token was committed. The front finishes; a peer
// sends the request home as finished.
//
// What a peer lets out comes to the front with a Stop ahead of the pen if it
// completes a stop string. What the front lets out it finishes in the same step,
// so it has to be told before: stop is where the text ends then, 0 if it does not.
func (c *Core) end(r *request, reason event.Reason, stop int) {
	c.flush(r)
	switch {
	case c.self != event.Front:
		c.handOff(r, event.Front, event.PeerReq{Status: event.Finished})
	case stop == 0:
		c.finish(r, reason, len(r.tokens), "")
	case stop <= r.limits.PromptLen || stop > len(r.tokens):
		c.note(event.NoteUnknown, r.id, 0, fmt.Sprintf("stop at position %d dropped: no token is written there", stop-1))
		c.finish(r, reason, len(r.tokens), "")
	default:
		c.stopAt(r, stop)
	}
}

// fail ends a request that this core, which has its pen, cannot go on with. What
// was written stands.
func (c *Core) fail(r *request, text string) {
	c.flush(r)
	if c.self == event.Front {
		c.finish(r, event.ReasonError, len(r.tokens), text)
		return
	}
	c.handOff(r, event.Front, event.PeerReq{Status: event.Error, Err: text})
}

// finish ends a request at the front, wherever it stands, and tells everyone to
// free it. n is its final length.
func (c *Core) finish(r *request, reason event.Reason, n int, text string) {
	c.emit(event.Command{Kind: event.Finish, Req: r.id, Reason: reason, N: n, Text: text})
	status := event.Finished
	if reason == event.ReasonAborted || reason == event.ReasonError {
		status = event.Abort
	}
	if reason == event.ReasonAborted {
		c.front.books.Cancelled++
	} else {
		c.front.books.Finished++
	}
	c.tellEnd(r.id, status, r.hop, n)
	if r.phase == Waiting {
		c.front.waiting = slices.DeleteFunc(c.front.waiting, func(q *request) bool { return q == r })
	} else {
		c.front.reserved -= r.reserved
		c.active--
	}
	c.leave(r)
}

// leave drops a request whose end is known; one whose row still runs is freed
// when the step ends.
func (c *Core) leave(r *request) {
	switch r.phase {
	case Running:
		if c.running != nil {
			c.enter(r, Ended)
			return
		}
	case Ready:
		c.unready(r)
	case Pending:
		c.isBack(r)
	}
	c.drop(r)
}

// tellEnd tells every peer that id is over, also those that never saw it: a
// message for it may still be under way to them.
func (c *Core) tellEnd(id event.ReqID, status event.Status, hop uint32, n int) {
	if c.n == 1 {
		return
	}
	m := &event.PeerReq{ID: id, From: event.Front, Hop: hop, Loc: n, Status: status}
	for p := 1; p < c.n; p++ {
		c.emit(event.Command{Kind: event.SendPeer, Req: id, To: event.Peer(p), Peer: m})
	}
}

// told is the end of a request as a peer hears it: from the front, or from
// another peer that was told and dropped its message.
func (c *Core) told(m *event.PeerReq) {
	r := c.reqs[m.ID]
	if c.isDead(m.ID) {
		if m.Status != event.Abort { // answers to dropped messages often come late
			c.note(event.NoteDead, m.ID, 0, m.Status.String()+" for a finished request dropped")
		}
		return
	}
	c.dead.add(m.ID)
	if r == nil {
		return
	}
	if m.Status == event.Finished && (r.phase == Ready || r.phase == Running) {
		// The front has noted what it held itself beyond the end.
		if cut := r.emitted - max(m.Loc, r.seen[event.Front]); cut > 0 {
			c.note(event.NoteCut, r.id, cut, "")
		}
	}
	c.leave(r)
}

// stop ends a request at the token in which a stop string began.
func (c *Core) stop(id event.ReqID, pos int) {
	r := c.ending(id, "stop")
	if r == nil {
		return
	}
	if pos < r.limits.PromptLen || pos >= r.limits.MaxLen {
		c.note(event.NoteUnknown, id, 0, fmt.Sprintf("stop at position %d dropped: no token is written there", pos))
		return
	}
	n := pos + 1
	if r.phase == Waiting {
		n = len(r.tokens)
	}
	c.stopAt(r, n)
}

// stopAt finishes a request whose text ends at a stop string, with n tokens.
func (c *Core) stopAt(r *request, n int) {
	if cut := r.emitted - n; cut > 0 {
		c.note(event.NoteCut, r.id, cut, "")
	}
	c.finish(r, event.ReasonStop, n, "")
}

// cancel ends a request whose client is gone. What the client had by then, up to
// pos, counts, also where a peer wrote it and has not handed it over.
func (c *Core) cancel(id event.ReqID, pos int) {
	if r := c.ending(id, "cancel"); r != nil {
		c.finish(r, event.ReasonAborted, max(r.emitted, min(pos, r.limits.MaxLen)), "")
	}
}

// ending finds the request that a stop or cancel means.
func (c *Core) ending(id event.ReqID, what string) *request {
	if c.self != event.Front {
		c.note(event.NoteUnknown, id, 0, what+" belongs to subserver 0; dropped")
		return nil
	}
	return c.find(id, what)
}
