package sched

import (
	"fmt"

	"tokenrouter/runtime/event"
)

// fit counts the ready requests that could all be in the next batch, as far as
// KV goes, and says since when the oldest of them waits. A request that finds
// the pool full is passed over, so that one that already holds its KV is never
// behind one that holds none.
func (c *Core) fit() (n int, oldest int64) {
	free := c.pool.Free()
	for _, r := range c.ready {
		need := c.pool.Need(r.seq, len(r.tokens))
		if need > free {
			continue
		}
		free -= need
		if n == 0 {
			oldest = r.readyAt
		}
		n++
	}
	return n, oldest
}

// dispatch starts a batch on an idle core if the policy says so (INV-6, INV-8).
// Where it orders nothing it has changed nothing, so a driver need not record
// that Dispatch.
func (c *Core) dispatch() {
	if c.running != nil || len(c.ready) == 0 {
		return
	}
	n, oldest := c.fit()
	if n < len(c.ready) {
		c.noteFull()
	}
	if n == 0 {
		return
	}
	d := c.threshold(n)
	c.noteClamp(d.b, d.want)
	switch {
	case n < d.b && c.now-oldest < c.w:
		at := oldest + c.w
		if d.wake > 0 {
			at = min(at, d.wake)
		}
		c.wakeBy(at)
	case n < d.b:
		c.start(event.RuleGuard, n, d.b)
	default:
		c.start(c.inForce().rule(), n, d.b)
	}
	if c.running != nil && d.b == d.want {
		c.clamped = 0
	}
}

// wakeBy asks for a Wake at time t unless one is already out for it.
func (c *Core) wakeBy(t int64) {
	if c.armed && c.wakeAt == t {
		return
	}
	c.armed, c.wakeAt = true, t
	c.gen++
	c.emit(event.Command{Kind: event.WakeAt, At: t, Gen: c.gen})
}

// start runs the oldest ready requests, as many as there are seats.
func (c *Core) start(rule event.Rule, fit, b int) {
	c.batches++
	rows := min(fit, c.seats[c.self])
	batch := &event.Batch{ID: c.batches, Rule: rule, Ready: fit, B: b, Rows: make([]event.Row, 0, rows)}
	c.rows = c.rows[:0]
	rest := c.ready[:0]
	for _, r := range c.ready {
		if len(c.rows) == rows || !c.pool.Grow(&r.seq, len(r.tokens)) {
			rest = append(rest, r)
			continue
		}
		c.enter(r, Running)
		c.rows = append(c.rows, r)
		batch.Rows = append(batch.Rows, c.row(r))
	}
	clear(c.ready[len(rest):])
	c.ready = rest
	c.running = batch
	c.emit(event.Command{Kind: event.RunBatch, Batch: batch})
	c.tellStart(batch)
}

// row feeds all that the request's KV lacks. Where nothing is lacking (this
// subserver dropped a position and so did the one it went to) the last token is
// fed once more for its logits; that position was never lost, so it does not
// count as recomputed. What does is the positions that were fed here and are not
// in the KV any more.
func (c *Core) row(r *request) event.Row {
	from := min(r.fed, len(r.tokens)-1)
	return event.Row{
		Req:        r.id,
		Start:      from,
		Tokens:     r.suffix(from),
		Sample:     true,
		Prefill:    r.fed == 0,
		Recomputed: r.had - r.fed,
		WaitedNs:   c.now - r.readyAt,
		PromptLen:  r.limits.PromptLen,
		Sampling:   r.sampling,
	}
}

// noteFull records, once per wait, each ready request that finds no KV. It goes
// on waiting: what a finished request holds is on its way back.
func (c *Core) noteFull() {
	free := c.pool.Free()
	for _, r := range c.ready {
		need := c.pool.Need(r.seq, len(r.tokens))
		if need <= free {
			free -= need
			continue
		}
		if !r.full {
			r.full = true
			c.note(event.NoteFull, r.id, need, fmt.Sprintf("waits for %d KV blocks; %d are free", need, free))
		}
	}
}
