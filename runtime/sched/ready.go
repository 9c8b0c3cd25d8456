package sched

import (
	"slices"
	"sort"
)

// before orders the ready: a request that holds KV here is never behind one that
// holds none, as it would only keep blocks from others; among equals the longer
// ready, then the lower id.
func before(a, b *request) bool {
	if x, y := a.seq.Blocks() > 0, b.seq.Blocks() > 0; x != y {
		return x
	}
	if a.readyAt != b.readyAt {
		return a.readyAt < b.readyAt
	}
	return a.id < b.id
}

func byPlace(a, b *request) int {
	if before(a, b) {
		return -1
	}
	return 1
}

// place is where r belongs among the ready.
func (c *Core) place(r *request) int {
	return sort.Search(len(c.ready), func(i int) bool { return !before(c.ready[i], r) })
}

// makeReady puts a request among the ready.
func (c *Core) makeReady(r *request) {
	r.readyAt = c.now
	c.goOn(r)
}

// goOn makes a request ready again in its old place: its prefill has more parts.
func (c *Core) goOn(r *request) {
	c.enter(r, Ready)
	r.since, r.full = c.now, false
	c.ready = slices.Insert(c.ready, c.place(r), r)
}

func (c *Core) unready(r *request) {
	if i := c.place(r); i < len(c.ready) && c.ready[i] == r {
		c.ready = slices.Delete(c.ready, i, i+1)
	}
}

// holders is how many of the ready hold KV; they come first.
func (c *Core) holders() int {
	return sort.Search(len(c.ready), func(i int) bool { return c.ready[i].seq.Blocks() == 0 })
}

// oldest is since when the oldest ready request waits. There must be one.
func (c *Core) oldest() int64 {
	at := c.ready[0].readyAt
	if n := c.holders(); n < len(c.ready) {
		at = min(at, c.ready[n].readyAt)
	}
	return at
}
