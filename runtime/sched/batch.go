package sched

import "tokenrouter/runtime/event"

// dispatch starts a batch on an idle core if the policy says so (INV-6, INV-8).
// All that are ready count towards B; those run that find seats and KV. Where it
// orders nothing it has changed nothing, so a driver need not record that
// Dispatch.
func (c *Core) dispatch() {
	if c.running != nil || len(c.ready) == 0 {
		return
	}
	n, oldest := len(c.ready), c.oldest()
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

// wakeBy asks for a Wake at time t or before. There is one timer for all that
// waits for time (the guard, time-outs): the earliest wish stands, and whoever
// still waits when it fires wishes anew. So a wish that is gone costs one Wake
// and one that comes later nothing.
func (c *Core) wakeBy(t int64) {
	if c.armed && c.wakeAt <= t {
		return
	}
	c.armed, c.wakeAt = true, t
	c.gen++
	c.emit(event.Command{Kind: event.WakeAt, At: t, Gen: c.gen})
}

// start runs the requests that compose finds seats and KV for, if any.
func (c *Core) start(rule event.Rule, ready, b int) {
	c.compose()
	if len(c.rows) == 0 {
		return
	}
	c.batches++
	batch := c.slabs.batch()
	*batch = event.Batch{ID: c.batches, Rule: rule, Ready: ready, B: b, Rows: c.slabs.rows.take(len(c.rows), 256)}
	for i, r := range c.rows {
		batch.Rows[i] = c.row(r)
	}
	c.running = batch
	c.emit(event.Command{Kind: event.RunBatch, Batch: batch})
	c.tellStart(batch)
}

// row feeds what compose granted. Where nothing is lacking (this subserver
// dropped a position and so did the one it went to) the last token is fed once
// more for its logits; that position was never lost, so it does not count as
// recomputed. What does is the positions that were in KV here and are neither
// there any more nor in the prefix cache.
func (c *Core) row(r *request) event.Row {
	from := r.from()
	end := from + r.feed
	row := event.Row{
		Req:        r.id,
		Start:      from,
		Tokens:     r.tokens[from:end:end],
		Sample:     end == len(r.tokens),
		Blocks:     r.seq.IDs(from / c.pool.Block()),
		Recomputed: max(0, min(r.had, end)-r.fed),
		WaitedNs:   c.now - r.since,
		PromptLen:  r.limits.PromptLen,
		Sampling:   r.sampling,
	}
	if r.fresh {
		row.Prefill, row.Cached, row.Blocks = true, from, r.seq.IDs(0)
	}
	return row
}

// from is the first position that the request's next row feeds.
func (r *request) from() int { return min(r.fed, len(r.tokens)-1) }
