package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// compose fills c.rows with the requests of the next batch and says in each how
// many tokens its row feeds. First every request in turn gets a seat and one
// token, as long as there are seats, tokens of the budget and KV blocks. Then
// what is left of the budget goes to the rows in their order, up to the chunk
// and as far as blocks can be had without taking them from others.
//
// A request that finds no blocks is passed over; nobody younger that holds no KV
// overtakes it, or a large one might wait for ever. Where no row comes about
// nothing has changed.
func (c *Core) compose() {
	seats := c.seats[c.self]
	if c.budget > 0 {
		seats = min(seats, c.budget)
	}
	holders := c.holders()
	behind := event.ReqID(0) // the oldest of those without KV that found none
	for i, r := range c.ready {
		if len(c.rows) == seats {
			break
		}
		switch {
		case i < holders && r.seq.Blocks() == 0:
			continue // its KV was taken just now
		case i < holders:
			if !c.next(r) {
				continue
			}
			r.fresh = false
		case behind != 0 && r.id > behind:
			c.noteFull(r, 0, 0, behind)
			continue
		default:
			if !c.first(r) {
				if behind == 0 || r.id < behind {
					behind = r.id
				}
				continue
			}
			r.fresh = true
		}
		r.feed = 1
		c.enter(r, Running)
		c.rows = append(c.rows, r)
	}
	if len(c.rows) == 0 {
		return
	}
	c.lengthen()
	rest := c.ready[:0]
	robbed := false
	for i, r := range c.ready {
		if r.phase == Ready {
			rest = append(rest, r)
			robbed = robbed || i < holders && r.seq.Blocks() == 0
		}
	}
	clear(c.ready[len(rest):])
	c.ready = rest
	if robbed {
		slices.SortFunc(c.ready, byPlace)
	}
}

// next finds room for one more token of a request that holds KV.
func (c *Core) next(r *request) bool {
	end := r.from() + 1
	need := c.pool.Need(&r.seq, end)
	if !c.room(r, kv.Hit{}, need) {
		c.noteFull(r, need, c.pool.Spare(), 0)
		return false
	}
	return c.pool.Grow(&r.seq, end)
}

// first finds room for a request that holds no KV: beside what it finds in the
// prefix cache for all it holds, whatever part of it is fed first. Otherwise its
// later parts would have to be taken from others, or the first ones from it.
func (c *Core) first(r *request) bool {
	hit := c.pool.Match(r.tokens[:r.emitted]) // what is held back may be cut, so it must not be shared
	need := kv.Blocks(len(r.tokens), c.pool.Block()) - hit.Blocks + c.owed(r)
	if !c.room(r, hit, need) {
		c.noteFull(r, need, c.pool.Spare()-c.pool.Idle(hit), 0)
		return false
	}
	c.pool.Take(&r.seq, hit, room(len(r.tokens), r.limits.MaxLen))
	c.hold(r)
	r.fed = hit.Blocks * c.pool.Block()
	r.had = max(r.had, r.fed)
	return c.pool.Grow(&r.seq, r.from()+1)
}

// owed is how many blocks older requests lack that are ready here and hold KV,
// above all those in the middle of a prefill: they would only take them back.
func (c *Core) owed(r *request) (n int) {
	if c.overcommit <= 100 {
		return 0
	}
	for _, q := range c.ready { // also those that have a seat by now
		if q.id < r.id && q.seq.Blocks() > 0 {
			n += c.pool.Need(&q.seq, len(q.tokens))
		}
	}
	return n
}

// lengthen gives the rows the rest of the budget.
func (c *Core) lengthen() {
	left := c.budget - len(c.rows)
	for _, r := range c.rows {
		from := r.from()
		more := len(r.tokens) - from - r.feed
		if c.chunk > 0 {
			more = min(more, c.chunk-r.feed)
		}
		if c.budget > 0 {
			more = min(more, left)
		}
		if room := (r.seq.Blocks()+c.pool.Spare())*c.pool.Block() - from - r.feed; more > room {
			more = room
		}
		if more <= 0 || !c.pool.Grow(&r.seq, from+r.feed+more) {
			continue
		}
		r.feed += more
		left -= more
	}
}

// noteFull records, once per wait, that a ready request finds no KV. It goes on
// waiting: what finished requests hold is on its way back.
func (c *Core) noteFull(r *request, need, spare int, behind event.ReqID) {
	switch {
	case r.full:
		return
	case behind != 0:
		c.note(event.NoteFull, r.id, 0, fmt.Sprintf("waits for KV behind request %d", behind))
	default:
		c.note(event.NoteFull, r.id, need, fmt.Sprintf("waits for %d KV blocks; %d are free", need, spare))
	}
	r.full = true
}
