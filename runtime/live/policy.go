package live

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
)

// fits refuses thresholds that no batch can reach.
func (c *Config) fits(p *event.Policy) error {
	for m, b := range p.B {
		if b > c.Seats {
			n := len(c.Runners)
			return fmt.Errorf("threshold B %d of the %s is above %d, the seats of a batch", b, event.Role(event.Peer(m), n), c.Seats)
		}
	}
	return nil
}

// setPolicy changes the threshold policy, records that and tells the cores. A
// table and a forecast come from the newest plan; until there is one, both act
// eagerly.
func (c *control) setPolicy(to event.Policy) {
	old := c.policy.Form()
	c.policy = to
	c.fill()
	if form := to.Form(); form != old {
		c.setting("batch", old, form)
	}
	c.sendPolicy()
	c.rt.planner.again()
}

// fill gives the policy what it needs of the newest plan.
func (c *control) fill() {
	switch p := &c.planned; {
	case c.policy.Kind == event.Table && p.table != nil:
		c.policy.Table = p.table
	case c.policy.Kind == event.LookAhead && p.forecast != nil:
		c.policy.Forecast = p.forecast
	}
}

// follow takes a new plan over.
func (c *control) follow(p planned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	tell := c.policy.Kind == event.LookAhead ||
		c.policy.Kind == event.Table && !slices.EqualFunc(p.table, c.planned.table, slices.Equal)
	c.planned = p
	if tell {
		c.fill()
		c.sendPolicy()
	}
}

// vector is the thresholds in force for the requests that are outstanding, a
// copy.
func (c *control) vector() []int {
	out := slices.Repeat([]int{1}, c.rt.n)
	switch c.policy.Kind {
	case event.Fixed:
		copy(out, c.policy.B)
	case event.Table:
		if t := c.policy.Table; len(t) > 0 {
			copy(out, t[min(c.concurrency, len(t))-1])
		}
	case event.LockStep:
		out[event.Front] = min(c.concurrency, c.rt.cfg.Seats)
	}
	return out
}

// refreshW tells the cores a guard that has moved by more than a quarter.
func (c *control) refreshW() {
	if w := c.guardW(); c.policy.Kind != event.Eager && outside(w, c.policy.W, 1.25) {
		c.sendPolicy()
	}
}

// guardW is twice the slowest model's decode step: by the cost profile in force;
// measured on the live clock, where a model that has not decoded yet does not
// count, and 0 while none has.
func (c *control) guardW() int64 {
	one, slowest := cost.Decoding(1, 0), int64(0)
	for i := range c.rt.n {
		var step int64
		switch {
		case c.rt.cfg.Virtual:
			step = int64(c.rt.cfg.Profile.Step(i, &one))
		case c.rt.cfg.Pacer.Profile() != nil:
			step = int64(c.rt.cfg.Pacer.Step(i, &one))
		case i < len(c.rt.subs):
			step = c.rt.subs[i].stepNs.Load()
		}
		slowest = max(slowest, step)
	}
	return 2 * slowest
}

// outside tells whether a and b differ by more than a factor.
func outside(a, b int64, factor float64) bool {
	x, y := float64(a), float64(b)
	return x > y*factor || y > x*factor
}

// sendPolicy tells every core the policy in force with a fresh W. Whoever
// changes the policy replaces its lists, so the cores may share them.
func (c *control) sendPolicy() {
	c.policy.W = c.guardW()
	p := c.policy
	for _, s := range c.rt.subs {
		s.in.put(item{ev: &event.Event{Kind: event.SetPolicy, Policy: &p}})
	}
}
