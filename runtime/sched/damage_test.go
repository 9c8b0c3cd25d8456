package sched

import (
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// busy is a front with a request in every phase: 1 running, 2 ready, 3 pending,
// 4 ended, 5 waiting.
func busy(t *testing.T) *Core {
	c, err := New(Config{Seats: []int{3, 3}, KVTokens: []int{64, 64}, Block: 4})
	if err != nil {
		t.Fatal(err)
	}
	arrive := func(id event.ReqID, n int) {
		c.Step(&event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: []event.Token{1, 2}, MaxTokens: n}}, nil)
	}
	dispatch := event.Event{Kind: event.Dispatch}
	arrive(3, 10)
	c.Step(&dispatch, nil)
	c.Step(&event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: 1, Rows: []event.RowResult{{Req: 3, Dest: 1}}}}, nil)
	arrive(4, 10)
	arrive(5, 10)
	c.Step(&dispatch, nil)
	c.Step(&event.Event{Kind: event.Cancel, Req: 4}, nil)
	arrive(6, 10)
	arrive(7, 40)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for p, id := range map[Phase]event.ReqID{Running: 5, Ready: 6, Pending: 3, Ended: 4, Waiting: 7} {
		if v, ok := c.View(id); !ok || v.Phase != p {
			t.Fatalf("request %d is %v, want %v", id, v.Phase, p)
		}
	}
	return c
}

// Check finds each kind of damage and names the invariant.
func TestCheckFindsDamage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(c *Core)
		want   string
	}{
		{"a request is forgotten", func(c *Core) { delete(c.reqs, 3) }, "INV-3"},
		{"a phase is miscounted", func(c *Core) { c.count[Ready]++ }, "INV-3"},
		{"an arrival is lost", func(c *Core) { c.front.books.Arrived++ }, "INV-3"},
		{"an end is counted twice", func(c *Core) { c.front.books.Cancelled++ }, "INV-3"},
		{"the active count is off", func(c *Core) { c.active = 9 }, "INV-3"},
		{"a ready request is not listed", func(c *Core) { c.ready = c.ready[:0] }, "INV-3"},
		{"the ready list is out of order", func(c *Core) {
			r := *c.reqs[6]
			r.id, r.readyAt = 2, -1
			c.add(&r, Ready)
			c.ready = append(c.ready, &r)
		}, "INV-1"},
		{"blocks leak", func(c *Core) { c.pool.Grow(&c.reqs[6].seq, 4); c.reqs[6].seq = c.reqs[7].seq }, "INV-4"},
		{"fed without blocks", func(c *Core) { c.reqs[6].fed = 2 }, "INV-4"},
		{"running without blocks", func(c *Core) { c.pool.Release(&c.reqs[5].seq, nil) }, "INV-4"},
		{"more fed than held", func(c *Core) { c.reqs[3].fed = 4 }, "INV-5"},
		{"a row without a request", func(c *Core) { c.rows = c.rows[:1] }, "INV-6"},
		{"rows out of order", func(c *Core) { slices.Reverse(c.rows) }, "INV-6"},
		{"more rows than seats", func(c *Core) { c.seats = []int{1, 1} }, "INV-6"},
		{"thresholds nobody can reach", func(c *Core) { c.rule, c.w = stuck{}, 1 }, "INV-7"},
		{"more tokens than allowed", func(c *Core) { c.reqs[6].limits.MaxLen = 1 }, "INV-9"},
		{"it goes on behind EOS", func(c *Core) { c.reqs[6].limits.PromptLen = 1; c.reqs[6].limits.EOS = []event.Token{2} }, "INV-9"},
		{"more emitted than held", func(c *Core) { c.reqs[6].emitted = 3 }, "INV-18"},
		{"held back without a writer", func(c *Core) { c.reqs[6].emitted = 1 }, "INV-18"},
		{"more held back than may be", func(c *Core) { c.reqs[6].emitted, c.reqs[6].writers = 1, []event.Peer{0} }, "INV-18"},
		{"a request from the future", func(c *Core) { c.reqs[6].dropped = 3 }, "INV-11"},
		{"more is known to be held than is", func(c *Core) { c.reqs[6].seen[1] = 3 }, "INV-14"},
		{"the seen vector is lost", func(c *Core) { c.reqs[6].seen = nil }, "INV-14"},
		{"KV is lost", func(c *Core) { c.reqs[3].fed-- }, "INV-14"},
		{"a shared block is written", func(c *Core) {
			r := c.reqs[5]
			c.pool.Release(&r.seq, nil)
			other := kv.Seq{}
			text := []event.Token{1, 2, 3, 4, 5}
			c.pool.Take(&other, kv.Hit{}, 5)
			c.pool.Grow(&other, 5)
			c.pool.Index(&other, text)
			c.pool.Release(&other, text)
			c.pool.Take(&r.seq, c.pool.Match(text), 5)
			r.fed, r.had, r.tokens = 4, 4, text[:4]
			c.running.Rows[1] = event.Row{Req: 5, Start: 3, Tokens: text[3:4], Sample: true}
			r.seen[0], r.emitted = 4, 4
		}, "INV-4"},
		{"a block is held and free", func(c *Core) { seq := c.reqs[3].seq; c.pool.Release(&seq, nil) }, "INV-4"},
		{"KV is kept of a request that is new elsewhere", func(c *Core) { c.resubmit = true }, "INV-14"},
		{"more are active than may be", func(c *Core) { c.maxActive = 1 }, "INV-13"},
		{"who holds KV is forgotten", func(c *Core) { c.keep = c.keep[1:] }, "INV-4"},
		{"who is away is forgotten", func(c *Core) { c.away = nil }, "INV-3"},
		{"a row beyond the chunk", func(c *Core) { c.chunk = 1 }, "INV-6"},
		{"a batch beyond the budget", func(c *Core) { c.budget = 1 }, "INV-6"},
		{"a part that says it is whole", func(c *Core) { c.running.Rows[1].Sample = false }, "INV-6"},
		{"the ledger is off", func(c *Core) { c.front.reserved-- }, "INV-13"},
		{"a request waits for nothing", func(c *Core) { c.reqs[7].reserved = 1 }, "INV-13"},
		{"more blocks than reserved", func(c *Core) { c.reqs[3].limits.MaxLen = 3; c.pool.Grow(&c.reqs[3].seq, 8) }, "INV-13"},
		{"the queue is out of order", func(c *Core) {
			r := *c.reqs[7]
			r.id = 2
			c.add(&r, Waiting)
			c.front.books.Arrived++
			c.front.waiting = append(c.front.waiting, &r)
		}, "INV-13"},
		{"the spans of the dead overlap", func(c *Core) { c.dead.spans = []span{{1, 4}, {3, 5}} }, "INV-10"},
	} {
		c := busy(t)
		tc.damage(c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), tc.want+":") {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
	c := busy(t)
	c.self = 1
	c.reqs[6].budget, c.reqs[6].wrote = 1, 1
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "INV-12:") {
		t.Errorf("a spent budget goes on: %v", err)
	}
	c = busy(t)
	c.self = 1
	c.dead.add(3)
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "INV-10:") {
		t.Errorf("alive and dead: %v", err)
	}
}
