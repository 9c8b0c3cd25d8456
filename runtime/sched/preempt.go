package sched

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// room says whether need blocks can be had for r beside those of hit, and makes
// them so: by what is free or cached, and where more is promised than fits by
// taking the KV of younger requests (higher ids) that have no seat in the batch
// being composed: youngest first, those that wait for a batch before those that
// a peer has. Nothing is taken where all of it would not be enough.
//
// Progress: the oldest request can always get its blocks. Let o be the oldest
// that is admitted and has not ended, and c the core that has its pen. At c all
// others that hold KV are younger, or they have ended and give it back when the
// news arrives. Nobody takes from o, and o fits alone, as it would have been
// rejected otherwise (case E1).
//
//	o holds KV: it may take from everybody who has no seat. Those that got one
//	before it were ready for longer. They run, and then stand behind it, or are
//	nearer to the end of a prefill in parts; so soon o is the first.
//	o holds none: it gets what it needs once those that hold KV have no seats.
//	Nobody younger that holds none overtakes it, but for those that were ready
//	before it came, so the holders only get fewer: each of their steps feeds,
//	writes, drops or truncates, of which a request can do only so much
//	(hold.go), and so each ends, leaves for a peer or is robbed by an older one
//	that goes on.
//	Under Resubmit o holds none wherever it comes, and who comes back does not
//	either.
//
// So o ends after finitely many steps, and then the next one is the oldest. That
// o holds KV at another core costs the others there time, not progress; where
// they wait for a threshold at o's core together, the guard W starts o's batch.
func (c *Core) room(r *request, hit kv.Hit, need int) bool {
	if need <= c.pool.Spare()-c.pool.Idle(hit) {
		return true
	}
	if c.overcommit <= 100 {
		return false
	}
	c.pool.Unmark()
	stays := c.pool.MarkHit(hit)
	for _, q := range c.keep {
		if q.id <= r.id || q.phase != Ready && q.phase != Pending {
			stays += c.pool.Mark(&q.seq)
		}
	}
	if need > c.pool.Total()-stays {
		return false
	}
	for _, phase := range [...]Phase{Ready, Pending} {
		for i := len(c.keep) - 1; i >= 0 && c.keep[i].id > r.id; i-- {
			if need <= c.pool.Spare()-c.pool.Idle(hit) {
				return true
			}
			if q := c.keep[i]; q.phase == phase {
				c.preempt(q)
			}
		}
	}
	return true
}

// preempt takes all KV from a request: for want of blocks, or because it goes to
// a peer as a new request (Resubmit). Its full blocks stay in the prefix tree
// until they are needed, so it may find most of them again.
func (c *Core) preempt(r *request) {
	n := r.fed
	c.release(r)
	r.robbed, r.full = true, false
	c.emit(event.Command{Kind: event.Preempt, Req: r.id, N: n})
}
