package sched

import (
	"fmt"

	"tokenrouter/runtime/event"
)

// situation is what a threshold may depend on.
type situation struct {
	self   event.Peer
	now    int64
	ready  int // could be in the next batch
	active int // admitted and unfinished
	seats  []int
	peers  []batchNews // what the others run, as they told
	vec    []int       // scratch, one entry per subserver
}

// decision is a policy's answer: an idle core starts once ready reaches b. want
// is what the policy asked for before the clamp. Where time alone may change the
// answer, wake is when to ask again, else 0.
type decision struct {
	b, want int
	wake    int64
}

// policy is a threshold policy: a small value without state, shared by clones. A
// policy that decides anew at every moment answers 1 to start and ready+1 to
// hold.
type policy interface {
	threshold(s *situation) decision
	rule() event.Rule // what a batch says that it started
}

// eager starts whenever something is ready.
type eager struct{}

func (eager) threshold(*situation) decision { return decision{b: 1, want: 1} }

func (eager) rule() event.Rule { return event.RuleEager }

// fixed waits for b[m] ready requests at subserver m. Entries that are missing
// or below 1 mean 1.
type fixed struct{ b []int }

func (f fixed) threshold(s *situation) decision {
	for m := range s.vec {
		s.vec[m] = 1
		if m < len(f.b) {
			s.vec[m] = max(1, f.b[m])
		}
	}
	want := s.vec[s.self]
	Clamp(s.vec, s.seats, s.active)
	return decision{b: s.vec[s.self], want: want}
}

func (fixed) rule() event.Rule { return event.RuleB }

// table waits as the vector for the active count says: row n-1 for n active, the
// last row beyond. Without requests the first row holds (case E3).
type table struct{ rows [][]int }

func (t table) threshold(s *situation) decision {
	return fixed{t.rows[max(1, min(s.active, len(t.rows)))-1]}.threshold(s)
}

func (table) rule() event.Rule { return event.RuleB }

// lockStep waits at the front until all that are active are ready there, as many
// as have a seat, and nowhere else. That is the vector (active, 1, ..., 1), which
// can always be reached.
type lockStep struct{}

func (lockStep) threshold(s *situation) decision {
	b := 1
	if s.self == event.Front {
		b = max(1, min(s.active, s.seats[event.Front]))
	}
	return decision{b: b, want: b}
}

func (lockStep) rule() event.Rule { return event.RuleB }

// Clamp lowers b to what n active requests can always reach (INV-7). All of them
// can be stuck in queues only if every queue m may hold b[m]-1, so progress is
// sure iff the sum of b-1 is below n. It takes from the largest, at a tie from
// the highest index. Without requests every entry is 1.
func Clamp(b, seats []int, n int) {
	spare := max(n, 1) - 1
	sum := 0
	for m := range b {
		b[m] = max(1, min(b[m], seats[m]))
		sum += b[m] - 1
	}
	for ; sum > spare; sum-- {
		top := 0
		for m := range b {
			if b[m] >= b[top] {
				top = m
			}
		}
		b[top]--
	}
}

func (c *Core) setPolicy(p *event.Policy) {
	if p == nil {
		c.note(event.NoteUnknown, 0, 0, "a policy without content dropped")
		return
	}
	c.rule = eager{}
	switch {
	case p.Kind == event.Fixed:
		c.rule = fixed{b: p.B}
	case p.Kind == event.Table && len(p.Table) > 0:
		c.rule = table{rows: p.Table}
	case p.Kind == event.LookAhead && p.Forecast != nil:
		c.rule = newAhead(p.Forecast, c.n)
	case p.Kind == event.LockStep:
		c.rule = lockStep{}
	}
	c.w = min(max(0, p.W), longest)
	if p.Kind == event.LockStep && c.overcommit <= 100 {
		c.w = longest // nobody can be stuck, so the loop is kept to (INV-7)
	}
	c.clamped = 0
}

// longest is a guard that never fires in practice; more could overflow the clock.
const longest = int64(1) << 60

// heard is the active count as the front tells it.
func (c *Core) heard(n int) {
	if c.self == event.Front || n < 0 {
		c.note(event.NoteUnknown, 0, n, "an active count from elsewhere than the front dropped")
		return
	}
	c.active = n
}

// inForce is the policy, or eager while the guard is not known.
func (c *Core) inForce() policy {
	if c.w == 0 {
		return eager{}
	}
	return c.rule
}

// threshold is what the policy in force says with that many ready.
func (c *Core) threshold(ready int) decision {
	if c.vec == nil {
		c.vec = make([]int, c.n)
	}
	c.sit = situation{
		self: c.self, now: c.now, ready: ready, active: c.active, seats: c.seats, peers: c.peers, vec: c.vec,
	}
	return c.inForce().threshold(&c.sit)
}

// noteClamp records a lowered B, once until it changes.
func (c *Core) noteClamp(b, want int) {
	if b == want || b == c.clamped {
		return
	}
	c.clamped = b
	c.note(event.NoteClamp, 0, b, fmt.Sprintf("B = %d is lowered to %d with %d active and %d seats", want, b, c.active, c.seats[c.self]))
}
