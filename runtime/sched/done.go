package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
)

// stepDone ends the running batch: each row that sampled commits or drops its
// candidate and the request stays, goes to a peer or ends; one whose prefill has
// more parts goes on.
func (c *Core) stepDone(s *event.StepResult) {
	if s == nil || c.running == nil || s.Batch != c.running.ID {
		c.note(event.NoteUnknown, 0, 0, "the end of a batch that does not run dropped")
		return
	}
	fail := s.Err
	if fail == "" {
		fail = c.mismatch(s.Rows)
	}
	batch, answers := c.running, s.Rows
	c.running = nil
	for i, r := range c.rows {
		row := &batch.Rows[i]
		var answer *event.RowResult
		if row.Sample && fail == "" {
			answer, answers = &answers[0], answers[1:]
		}
		switch {
		case r.phase == Ended:
			c.note(event.NoteDead, r.id, 0, "a row of a finished request dropped")
			c.drop(r)
		case fail != "":
			c.fail(r, fail)
		default:
			c.fedTo(r, row.Start+len(row.Tokens))
			if answer == nil {
				c.goOn(r)
			} else {
				c.decide(r, answer)
			}
		}
	}
	clear(c.rows)
	c.rows = c.rows[:0]
	c.tellIdle()
}

// mismatch says what is wrong with rows that do not answer the batch, "" if
// they do.
func (c *Core) mismatch(rows []event.RowResult) string {
	n := 0
	for i := range c.running.Rows {
		row := &c.running.Rows[i]
		if !row.Sample {
			continue
		}
		if n < len(rows) && rows[n].Req != row.Req {
			return fmt.Sprintf("row %d of the step answers request %d in place of %d", n, rows[n].Req, row.Req)
		}
		n++
	}
	if len(rows) != n {
		return fmt.Sprintf("the step answered %d rows of a batch that samples %d", len(rows), n)
	}
	return ""
}

// fedTo counts what a row has fed. Full blocks enter the prefix tree, but for
// the one of the last token emitted and what lies behind it: what is held back
// may be cut, the last token then held may be fed again for its logits, and a
// block in the tree is never written.
func (c *Core) fedTo(r *request, end int) {
	r.fed, r.had = end, max(r.had, end)
	c.pool.Index(&r.seq, r.tokens[:min(end, r.emitted-1)])
}

// decide applies the router's decision to one finished row.
func (c *Core) decide(r *request, d *event.RowResult) {
	pos := len(r.tokens)
	dest, action, budget, fields := d.Dest, d.Action, d.Budget, d.Fields
	r.state, r.router, r.sampled, r.hold = d.State, d.Router, true, max(0, d.Hold)
	if d.Fault != "" {
		c.note(event.NoteFault, r.id, 0, d.Fault)
	}
	if wrong := c.wrong(r, d); wrong != "" {
		c.note(event.NoteFault, r.id, 0, wrong)
		// KEEP, and STAY at home or HOME elsewhere: either way the front.
		dest, action, budget, fields = event.Front, event.Keep, 0, nil
	}
	switch {
	case action == event.Truncate && d.At < pos:
		c.truncate(r, d.At)
		c.letOut(r)
	case action != event.Keep:
		r.dropped = pos
		c.letOut(r)
	default:
		c.commit(r, d.Output.Token)
		if reason, over := r.over(); over {
			c.end(r, reason, d.Stop)
			return
		}
	}
	if dest != event.Front && c.spent(r) {
		c.note(event.NoteBudget, r.id, r.budget, "")
		dest, budget, fields = event.Front, 0, nil
	}
	if dest == c.self {
		c.makeReady(r)
		return
	}
	c.handOff(r, dest, event.PeerReq{Status: event.Alive, Budget: budget, Fields: fields})
}

// wrong says why a decision cannot be followed, "" if it can (INV-11).
func (c *Core) wrong(r *request, d *event.RowResult) string {
	pos := len(r.tokens)
	switch {
	case d.Dest < 0 || int(d.Dest) >= c.n:
		return fmt.Sprintf("there is no subserver %d among %d", d.Dest, c.n)
	case d.Action > event.Truncate:
		return fmt.Sprintf("there is no action %d", d.Action)
	case d.Action == event.Truncate && d.At != pos:
		return c.wrongCut(r, d)
	case d.Action != event.Keep && d.Dest == c.self:
		return fmt.Sprintf("position %d is dropped for the subserver that dropped it", pos)
	case d.Action != event.Keep && r.dropped == pos:
		return fmt.Sprintf("position %d is dropped here a second time", pos)
	}
	return ""
}

// spent says whether the hand-off's budget is used up (INV-12). At home a budget
// has no meaning: there is nowhere to be forced to.
func (c *Core) spent(r *request) bool {
	return c.self != event.Front && r.budget > 0 && r.wrote >= r.budget
}

// commit writes one token. Only the holder of the pen calls it.
func (c *Core) commit(r *request, t event.Token) {
	r.tokens = append(r.tokens, t)
	r.wrote++
	if r.hold == 0 && len(r.writers) == 0 {
		c.emit(event.Command{Kind: event.Emit, Req: r.id, Pos: r.emitted, Token: t})
		r.emitted++
		return
	}
	r.writers = append(r.writers, c.self)
	c.letOut(r)
}

// handOff passes the pen to another subserver; the request is pending here. The
// caller sets what the message is for (Status, Budget, Fields, Err), the core
// all else. What the receiver holds is known, so the suffix is what it lacks.
func (c *Core) handOff(r *request, dest event.Peer, what event.PeerReq) {
	held, loc := len(r.tokens), r.seen[dest]
	if what.Status == event.Alive && loc == 0 {
		what.Status = event.New
	}
	r.hop++
	r.seen[c.self], r.seen[dest] = held, held
	m := c.slabs.message()
	*m = what
	m.ID, m.From, m.Hop = r.id, c.self, r.hop
	m.Loc, m.Suffix, m.Seen = loc, r.suffix(loc), c.slabs.lengths.take(c.n, 64*c.n)
	copy(m.Seen, r.seen)
	m.Limits, m.Sampling = r.limits, r.sampling
	m.State, m.Router = r.state, r.router
	if r.hold > 0 || len(r.writers) > 0 || r.shortened {
		m.Hold, m.Emitted, m.Writers, m.Cut = r.hold, r.emitted, slices.Clip(r.writers), r.shortened
	}
	c.leaves(r)
	if passesPen(m) {
		c.handedTo(dest)
		if c.resubmit && r.seq.Blocks() > 0 {
			c.preempt(r) // all of it is new where it goes and when it comes back
		}
	}
	c.send(r, dest, m)
}

// passesPen says whether a request goes on where m is sent; nil is no message.
func passesPen(m *event.PeerReq) bool {
	return m != nil && (m.Status == event.New || m.Status == event.Alive)
}

func (c *Core) send(r *request, dest event.Peer, m *event.PeerReq) {
	r.sent, r.sentTo = m, dest
	c.emit(event.Command{Kind: event.SendPeer, Req: r.id, To: dest, Peer: m})
}
