package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// front is what only subserver 0 keeps: the queue before admission, the ledger
// of reservations and the books.
type front struct {
	last     event.ReqID // highest id that arrived
	waiting  []*request  // in order of arrival
	reserved int         // blocks promised to admitted requests in every pool
	told     int         // active count last told to the peers
	books    Counts
}

// Counts are the books of the front. At every moment Arrived is the number of
// requests in a live phase plus Finished, Cancelled and Rejected (INV-3).
type Counts struct {
	Arrived   int
	Finished  int // stop, length and error
	Cancelled int
	Rejected  int
}

// Counts returns the books; only those of the front are ever filled.
func (c *Core) Counts() Counts { return c.front.books }

// In counts the requests that stand in phase p at this core.
func (c *Core) In(p Phase) int {
	if p >= numPhases {
		return 0
	}
	return c.count[p]
}

func (c *Core) arrive(id event.ReqID, a *event.Arrival) {
	switch {
	case c.self != event.Front:
		c.note(event.NoteUnknown, id, 0, "a request arrives at subserver 0 only; dropped")
		return
	case a == nil:
		c.note(event.NoteUnknown, id, 0, "an arrival without a request dropped")
		return
	case id <= c.front.last:
		c.note(event.NoteDead, id, 0, fmt.Sprintf("request ids rise: %d came after %d and was dropped", id, c.front.last))
		return
	}
	c.front.last = id
	c.front.books.Arrived++
	if why := c.neverFits(a); why != "" {
		c.front.books.Rejected++
		c.emit(event.Command{Kind: event.Reject, Req: id, Text: why})
		c.tellEnd(id, event.Abort, 0, 0)
		return
	}
	r := &request{
		id:     id,
		tokens: append(make([]event.Token, 0, room(len(a.Prompt), len(a.Prompt)+a.MaxTokens)), a.Prompt...),
		limits: event.Limits{
			PromptLen: len(a.Prompt),
			MaxLen:    len(a.Prompt) + a.MaxTokens,
			EOS:       a.EOS,
		},
		sampling: a.Sampling,
		emitted:  len(a.Prompt),
		seen:     make([]int, c.n),
		dropped:  -1,
	}
	r.seen[event.Front] = len(r.tokens)
	r.reserved = kv.Blocks(r.limits.MaxLen, c.pool.Block())
	c.add(r, Waiting)
	c.front.waiting = append(c.front.waiting, r)
}

// neverFits says why a request can never run here, "" if it can.
func (c *Core) neverFits(a *event.Arrival) string {
	pool := c.largest * c.pool.Block()
	switch {
	case len(a.Prompt) == 0:
		return "the prompt has 0 tokens; give at least one"
	case a.MaxTokens < 1:
		return fmt.Sprintf("max_tokens is %d; give at least 1", a.MaxTokens)
	case len(a.Prompt) > pool || a.MaxTokens > pool-len(a.Prompt):
		return fmt.Sprintf("%d prompt and up to %d new tokens do not fit %s of subserver %d (%s); ask for fewer or enlarge the pool",
			len(a.Prompt), a.MaxTokens, c.what(pool), c.minPool, event.Role(c.minPool, c.n))
	}
	return ""
}

// what names the memory that a request must fit alone (case E1).
func (c *Core) what(tokens int) string {
	if c.overcommit >= 100 {
		return fmt.Sprintf("the KV pool of %d tokens", tokens)
	}
	return fmt.Sprintf("the %d tokens, %d %%, that are promised of the KV pool", tokens, c.overcommit)
}

// lets says whether r may come in now.
func (c *Core) lets(r *request) bool {
	return c.front.reserved+r.reserved <= c.limit && (c.maxActive == 0 || c.active < c.maxActive)
}

// admit lets requests in, in order of arrival, as long as there are fewer than
// may be active and the worst cases of all admitted stay within what may be
// promised of every pool (INV-13), and tells the peers the active count if it
// changed.
func (c *Core) admit() {
	f := &c.front
	in := 0
	for in < len(f.waiting) {
		r := f.waiting[in]
		if !c.lets(r) {
			break
		}
		f.reserved += r.reserved
		c.active++
		c.makeReady(r)
		c.emit(event.Command{Kind: event.Admit, Req: r.id, N: c.active})
		in++
	}
	if in > 0 {
		f.waiting = slices.Delete(f.waiting, 0, in)
	}
	if c.active != f.told {
		f.told = c.active
		c.emit(event.Command{Kind: event.TellActive, N: c.active})
	}
}
