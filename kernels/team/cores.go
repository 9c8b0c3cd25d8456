package team

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// grace is how long a seat keeps its core after a step: between two steps its
// goroutine samples, routes and schedules, and a helper of another seat would
// only be in its way.
const grace = int64(100 * time.Microsecond)

// Cores is the cores that seats share. Its methods are safe for concurrent use.
type Cores struct {
	helpers []*helper
	alone   bool // one core, no helpers
	clock   func() int64

	mu     sync.Mutex
	active []*Seat // in a step, or in their grace
	closed bool
	// busy says that a seat is in a step. late is when a helper may come to a
	// seat in a step because the grace of another is over, the largest int64 if
	// none waits for that. Both are written under mu.
	busy    atomic.Bool
	late    atomic.Int64
	running sync.WaitGroup
}

// New takes n cores, all of the machine if n is not positive. n-1 helpers wait
// for work; Close ends them.
func New(n int) *Cores { return newCores(n, monotonic) }

func newCores(n int, clock func() int64) *Cores {
	if n < 1 {
		n = Machine()
	}
	c := &Cores{alone: n == 1, clock: clock}
	c.late.Store(math.MaxInt64)
	if !c.alone {
		reserve(n)
	}
	for i := 1; i < n; i++ {
		c.helpers = append(c.helpers, &helper{cores: c, worker: i, wake: make(chan struct{}, 1)})
	}
	for _, h := range c.helpers {
		h.start()
	}
	return c
}

// Seat gives a new seat. One that does not step takes no core.
func (c *Cores) Seat() *Seat {
	s := &Seat{cores: c, wake: make(chan struct{}, 1)}
	s.Limit(len(c.helpers) + 1)
	return s
}

// Close ends the helpers and returns when they are gone. Seats go on without
// them.
func (c *Cores) Close() {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.deal()
	c.mu.Unlock()
	if closed || c.alone {
		return
	}
	for _, h := range c.helpers {
		h.closed.Store(true)
		h.rouse()
	}
	c.running.Wait()
	release()
}

// step starts or ends a step of s.
func (c *Cores) step(s *Seat, begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.busy == begin {
		panic(fmt.Sprintf("team: a step begins or ends twice (begin: %v)", begin))
	}
	s.busy = begin
	if begin && !s.listed {
		s.listed = true
		c.active = append(c.active, s)
	}
	if !begin {
		s.ended = c.clock()
	}
	c.deal()
}

// overdue deals again when a grace is over that a seat in a step waits for.
func (c *Cores) overdue() {
	if at := c.late.Load(); at != math.MaxInt64 && c.clock() >= at {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deal()
	}
}

// call wakes up to n parked helpers of s.
func (c *Cores) call(s *Seat, n int) {
	for _, h := range c.helpers {
		if n > 0 && h.seat.Load() == s && h.rouse() {
			n--
		}
	}
}

// deal sends the helpers where they are needed. Every active seat has a core of
// its own; the cores left over go to seats in a step, one after the other, up to
// their limits. Called under mu.
func (c *Cores) deal() {
	now := int64(0)
	graceOver := int64(math.MaxInt64)
	c.active = slices.DeleteFunc(c.active, func(s *Seat) bool {
		s.helpers, s.given = 0, 0
		if s.busy {
			return false
		}
		if now == 0 {
			now = c.clock()
		}
		s.listed = now < s.ended+grace
		if s.listed {
			graceOver = min(graceOver, s.ended+grace)
		}
		return !s.listed
	})
	left := max(len(c.helpers)+1-len(c.active), 0)
	if c.closed {
		left = 0
	}
	busy, wanting := false, false
	for more := true; more; {
		more, wanting = false, false
		for _, s := range c.active {
			busy = busy || s.busy
			switch {
			case !s.busy || s.helpers+1 >= int(s.limit.Load()):
			case left == 0:
				wanting = true
			default:
				s.helpers++
				left--
				more = true
			}
		}
	}
	if !wanting || c.closed {
		graceOver = math.MaxInt64
	}
	c.busy.Store(busy)
	c.late.Store(graceOver)
	// Whoever may stay stays.
	for _, h := range c.helpers {
		if s := h.seat.Load(); s != nil && s.busy && s.given < s.helpers {
			s.given++
		} else if s != nil {
			h.seat.Store(nil)
		}
	}
	next := 0
	for _, s := range c.active {
		for ; s.given < s.helpers; next++ {
			if h := c.helpers[next]; h.seat.Load() == nil {
				h.seat.Store(s)
				h.rouse()
				s.given++
			}
		}
	}
}
