package sched

import (
	"fmt"
	"slices"
	"time"

	"tokenrouter/runtime/event"
)

// leaves notes that a request goes to a peer from now on.
func (c *Core) leaves(r *request) {
	c.enter(r, Pending)
	r.leftAt = c.now
	c.away = append(c.away, r)
}

// isBack notes that a request is here again, or over.
func (c *Core) isBack(r *request) {
	if i := slices.Index(c.away, r); i >= 0 {
		c.away = slices.Delete(c.away, i, i+1)
	}
}

// askEvery is how often a peer asks the front about one request at most. With a
// shorter time-out questions could come faster than the front answers them, and
// nothing else would ever get done.
const askEvery = int64(50 * time.Millisecond)

// overdue sees to the requests that have been away for longer than the time-out,
// oldest first. The front gives them up: their pen may be lost with a peer that
// died. A peer cannot know whether one is over or goes on elsewhere, so it asks
// the front, again and again; a peer that was restarted may have taken up a
// request that is long over, and this is how it comes to free it.
func (c *Core) overdue() {
	if c.timeout == 0 {
		return
	}
	patience := c.timeout
	if c.self != event.Front {
		patience = max(patience, askEvery)
	}
	for len(c.away) > 0 {
		r := c.away[0]
		due := r.leftAt + patience
		if due > c.now {
			c.wakeBy(due)
			return
		}
		if c.self == event.Front {
			text := fmt.Sprintf("subserver %d (%s) has had the request for %v; the time-out is %v",
				r.sentTo, event.Role(r.sentTo, c.n), time.Duration(c.now-r.leftAt), time.Duration(c.timeout))
			c.note(event.NoteTimeout, r.id, int(r.sentTo), text)
			c.finish(r, event.ReasonError, r.emitted, text)
			continue
		}
		c.isBack(r)
		r.leftAt = c.now
		c.away = append(c.away, r)
		c.emit(event.Command{Kind: event.SendPeer, Req: r.id, To: event.Front, Peer: &event.PeerReq{
			ID: r.id, From: c.self, Status: event.Resend,
		}})
	}
}

// answerDead tells the sender of a message that was dropped, as its request is
// over, to free it. The front needs no telling.
func (c *Core) answerDead(m *event.PeerReq) {
	if m.From == event.Front {
		return
	}
	c.emit(event.Command{Kind: event.SendPeer, Req: m.ID, To: m.From, Peer: &event.PeerReq{
		ID: m.ID, From: c.self, Hop: m.Hop, Status: event.Abort,
	}})
}
