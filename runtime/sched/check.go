package sched

import (
	"fmt"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// Check tests every invariant that one core can see. It is meant for tests and
// for the build tag "invariants", where Step calls it.
func (c *Core) Check() error {
	var count [numPhases]int
	reserved := 0
	var seqs []*kv.Seq
	for _, id := range c.Requests() {
		r := c.reqs[id]
		count[r.phase]++
		seqs = append(seqs, &r.seq)
		if r.phase != Waiting && r.phase != Ended {
			reserved += r.reserved
		}
		if err := c.checkRequest(r); err != nil {
			return fmt.Errorf("request %d (%v): %w", id, r.phase, err)
		}
	}
	if count != c.count {
		return fmt.Errorf("INV-3: phases hold %v requests and are counted as %v", count, c.count)
	}
	if err := c.pool.Check(seqs); err != nil {
		return fmt.Errorf("INV-4: %w", err)
	}
	for _, check := range []func() error{c.checkLists, c.checkBatch, c.checkThresholds} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := c.dead.check(); err != nil {
		return err
	}
	if c.self == event.Front {
		return c.checkFront(reserved)
	}
	return nil
}

func (c *Core) checkRequest(r *request) error {
	held := len(r.tokens)
	switch {
	case r.phase >= numPhases:
		return fmt.Errorf("INV-3: no such phase")
	case held < 1 || r.fed < 0 || r.fed > held:
		return fmt.Errorf("INV-5: %d positions fed of %d held", r.fed, held)
	case held > r.limits.MaxLen:
		return fmt.Errorf("INV-9: %d tokens held of at most %d", held, r.limits.MaxLen)
	case r.emitted < 1 || r.emitted > held || len(r.writers) != held-r.emitted:
		return fmt.Errorf("INV-18: %d tokens emitted of %d held, with the writers of %d", r.emitted, held, len(r.writers))
	case held-r.emitted > r.hold && (r.phase == Ready || r.phase == Running):
		return fmt.Errorf("INV-18: %d tokens are held back and %d may be", held-r.emitted, r.hold)
	case r.seq.Shared()*c.pool.Block() >= r.emitted && r.seq.Shared() > 0:
		return fmt.Errorf("INV-4: %d shared blocks with %d tokens emitted: the last may be fed again, those behind it may be cut", r.seq.Shared(), r.emitted)
	case r.phase != Ended && c.isDead(r.id):
		return fmt.Errorf("INV-10: alive and dead at once")
	case !c.pool.Holds(&r.seq, r.fed):
		return fmt.Errorf("INV-4: %d positions fed in %d blocks", r.fed, r.seq.Blocks())
	case r.seq.Shared()*c.pool.Block() > r.fed:
		return fmt.Errorf("INV-4: %d shared blocks with %d positions fed", r.seq.Shared(), r.fed)
	case r.phase == Waiting && r.seq.Blocks() > 0:
		return fmt.Errorf("INV-4: %d blocks held before admission", r.seq.Blocks())
	case r.seq.Blocks() > kv.Blocks(r.limits.MaxLen, c.pool.Block()):
		return fmt.Errorf("INV-13: %d blocks held beyond the worst case of %d tokens", r.seq.Blocks(), r.limits.MaxLen)
	case len(r.seen) != c.n:
		return fmt.Errorf("INV-14: knows the length of %d subservers of %d", len(r.seen), c.n)
	case r.dropped > held:
		return fmt.Errorf("INV-11: dropped position %d of %d held", r.dropped, held)
	case c.spent(r) && (r.phase == Ready || r.phase == Running):
		return fmt.Errorf("INV-12: wrote %d of a budget of %d and goes on here", r.wrote, r.budget)
	case r.wrote > r.budget && r.budget > 0 && c.self != event.Front:
		return fmt.Errorf("INV-12: wrote %d of a budget of %d", r.wrote, r.budget)
	case r.had > held || r.had < r.fed || !r.robbed && r.fed != r.had:
		return fmt.Errorf("INV-14: %d positions were fed and %d are in KV, but nothing was taken", r.had, r.fed)
	case c.resubmit && r.phase == Pending && r.seq.Blocks() > 0 && passesPen(r.sent):
		return fmt.Errorf("INV-14: %d blocks are kept of a request that is a new one elsewhere", r.seq.Blocks())
	}
	if _, over := r.over(); over && (r.phase == Ready || r.phase == Running) {
		return fmt.Errorf("INV-9: goes on behind its last token")
	}
	for m, s := range r.seen {
		if s < 0 || s > held {
			return fmt.Errorf("INV-14: subserver %d is known to hold %d of %d", m, s, held)
		}
	}
	return nil
}

func (c *Core) checkLists() error {
	for i, r := range c.ready {
		if r.phase != Ready || c.reqs[r.id] != r {
			return fmt.Errorf("INV-3: request %d is in the ready list and %v", r.id, r.phase)
		}
		if i > 0 && !before(c.ready[i-1], r) {
			return fmt.Errorf("INV-1: ready requests %d and %d are out of order", c.ready[i-1].id, r.id)
		}
	}
	if len(c.ready) != c.count[Ready] {
		return fmt.Errorf("INV-3: %d requests in the ready list, %d are ready", len(c.ready), c.count[Ready])
	}
	for i, r := range c.away {
		if r.phase != Pending || c.reqs[r.id] != r || i > 0 && c.away[i-1].leftAt > r.leftAt {
			return fmt.Errorf("INV-3: request %d is out of order among those away, %v", r.id, r.phase)
		}
	}
	if len(c.away) != c.count[Pending] {
		return fmt.Errorf("INV-3: %d requests are listed as away, %d are pending", len(c.away), c.count[Pending])
	}
	holding := 0
	for _, r := range c.reqs {
		if r.seq.Blocks() > 0 {
			holding++
		}
	}
	for i, r := range c.keep {
		if r.seq.Blocks() == 0 || c.reqs[r.id] != r || i > 0 && c.keep[i-1].id >= r.id {
			return fmt.Errorf("INV-4: request %d is out of order among those that hold KV", r.id)
		}
	}
	if len(c.keep) != holding {
		return fmt.Errorf("INV-4: %d requests are listed as holding KV, %d do", len(c.keep), holding)
	}
	return nil
}

// checkBatch tests that the running batch is what its requests are in, and that
// no row writes a block that others may read.
func (c *Core) checkBatch() error {
	if (c.running == nil) != (len(c.rows) == 0) || len(c.rows) != c.count[Running]+c.count[Ended] {
		return fmt.Errorf("INV-6: %d rows run, %d requests are running and %d ended", len(c.rows), c.count[Running], c.count[Ended])
	}
	if len(c.rows) > c.seats[c.self] {
		return fmt.Errorf("INV-6: %d rows on %d seats", len(c.rows), c.seats[c.self])
	}
	fed := 0
	for i, r := range c.rows {
		if c.running.Rows[i].Req != r.id || r.phase != Running && r.phase != Ended {
			return fmt.Errorf("INV-6: row %d of the batch is request %d, %v", i, r.id, r.phase)
		}
		row := &c.running.Rows[i]
		end := row.Start + len(row.Tokens)
		switch {
		case len(row.Tokens) < 1 || c.chunk > 0 && len(row.Tokens) > c.chunk || row.Sample != (end == len(r.tokens)):
			return fmt.Errorf("INV-6: the row of request %d feeds %d tokens of %d held, sampling: %v", r.id, len(row.Tokens), len(r.tokens), row.Sample)
		case !c.pool.Holds(&r.seq, end):
			return fmt.Errorf("INV-4: %d positions being fed in %d blocks", end, r.seq.Blocks())
		case row.Start < r.seq.Shared()*c.pool.Block():
			return fmt.Errorf("INV-4: the row of request %d writes position %d of %d shared blocks", r.id, row.Start, r.seq.Shared())
		}
		fed += len(row.Tokens)
	}
	if c.budget > 0 && fed > c.budget {
		return fmt.Errorf("INV-6: a batch of %d tokens with a budget of %d", fed, c.budget)
	}
	return nil
}

func (c *Core) checkThresholds() error {
	if _, ok := c.inForce().(ahead); ok {
		return nil // holds only for batches under way and not overdue
	}
	sum := 0
	vec := make([]int, c.n)
	for m := range c.n {
		s := situation{self: event.Peer(m), now: c.now, ready: len(c.ready), active: c.active, seats: c.seats, peers: c.peers, vec: vec}
		b := c.inForce().threshold(&s).b
		if b < 1 || b > c.seats[m] {
			return fmt.Errorf("INV-7: B = %d on %d seats of subserver %d", b, c.seats[m], m)
		}
		sum += b - 1
	}
	if sum >= max(c.active, 1) {
		return fmt.Errorf("INV-7: %d active requests can all be stuck below the thresholds", c.active)
	}
	return nil
}

func (c *Core) checkFront(reserved int) error {
	f := &c.front
	live := c.count[Ready] + c.count[Running] + c.count[Pending]
	k := f.books
	switch {
	case k.Arrived != c.count[Waiting]+live+k.Finished+k.Cancelled+k.Rejected:
		return fmt.Errorf("INV-3: %d arrived, %d waiting, %d live, %d finished, %d cancelled, %d rejected",
			k.Arrived, c.count[Waiting], live, k.Finished, k.Cancelled, k.Rejected)
	case c.active != live:
		return fmt.Errorf("INV-3: %d active requests, counted as %d", live, c.active)
	case reserved != f.reserved || reserved > c.limit:
		return fmt.Errorf("INV-13: %d blocks promised, counted as %d, of at most %d", reserved, f.reserved, c.limit)
	case len(f.waiting) != c.count[Waiting]:
		return fmt.Errorf("INV-3: %d requests in the queue, %d waiting", len(f.waiting), c.count[Waiting])
	case len(f.waiting) > 0 && c.lets(f.waiting[0]):
		return fmt.Errorf("INV-13: request %d waits although it may come in", f.waiting[0].id)
	case c.maxActive > 0 && c.active > c.maxActive:
		return fmt.Errorf("INV-13: %d requests are active of at most %d", c.active, c.maxActive)
	}
	for i, r := range f.waiting {
		if r.phase != Waiting || i > 0 && f.waiting[i-1].id >= r.id {
			return fmt.Errorf("INV-13: request %d is out of order in the queue", r.id)
		}
	}
	return nil
}

func (g *graves) check() error {
	for i, s := range g.spans {
		if s.lo > s.hi || i > 0 && g.spans[i-1].hi+1 >= s.lo {
			return fmt.Errorf("INV-10: the spans of finished requests are out of order at %d", s.lo)
		}
	}
	return nil
}
