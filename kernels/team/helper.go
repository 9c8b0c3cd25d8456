package team

import (
	"runtime"
	"sync/atomic"
	"time"
)

// spinFor is how long a helper waits for the next call before it parks, and how
// long an owner waits for its last helper before it sleeps.
const spinFor = int64(50 * time.Microsecond)

// A goroutine that has become ready, or a thread of another program, would wait
// 10 ms or more for a core that is busy. So helpers, at no item, let goroutines and
// threads have theirs if they wait for it: after itemsPerYield items, which are
// some hundred microseconds, and after turnsPerYield turns of waiting, some
// fifteen.
const (
	itemsPerYield = 16
	turnsPerYield = 256
)

// Another program that computes without end takes a core that is offered for
// milliseconds, and the helper would hardly come to anything. When one offer
// took longer than longYield the next comes after shyFor, twice as long each
// time up to shyMost; till then the two share the core as threads do.
const (
	longYield = int64(500 * time.Microsecond)
	shyFor    = int64(20 * time.Millisecond)
	shyMost   = int64(320 * time.Millisecond)
)

// offers is when a helper may offer its core.
type offers struct {
	next, shy int64
}

// offer lets another thread have the core if one waits for it.
func (o *offers) offer(clock func() int64, yield func()) {
	before := clock()
	if before < o.next {
		return
	}
	yield()
	after := clock()
	if after-before < longYield {
		o.shy = 0
		return
	}
	o.shy = min(max(2*o.shy, shyFor), shyMost)
	o.next = after + o.shy
}

// helper is a goroutine that works for the seat it is dealt to.
type helper struct {
	cores  *Cores
	worker int

	_      line
	seat   atomic.Pointer[Seat] // whom to help, nil for nobody
	closed atomic.Bool
	// parked says that the helper sleeps or is about to; whoever sets it to
	// false while it sleeps owes it a message.
	parked atomic.Bool
	on     *Seat // the seat it parked at; written before parked is set
	wake   chan struct{}
}

func (h *helper) start() {
	h.cores.running.Add(1)
	go h.run()
}

func (h *helper) run() {
	defer h.cores.running.Done()
	ended := false
	defer func() {
		if !ended { // f ended the goroutine; the helper lives on in another
			h.start()
		}
	}()
	var last *Seat
	var spin spinner
	var offers offers
	items := 0
	for !h.closed.Load() {
		s := h.seat.Load()
		if s != last {
			last, spin = s, spinner{}
		}
		done := 0
		if s != nil {
			done = s.help(h)
		}
		switch {
		case done > 0:
			spin = spinner{}
			if items += done; items >= itemsPerYield {
				items = 0
				runtime.Gosched()
				offers.offer(monotonic, yield)
			}
		case s == nil && h.cores.busy.Load() || spin.over():
			// Nobody may use this core but its owner, or nothing has come.
			h.park(s)
			spin = spinner{}
		default:
			if spin.turn(); spin.turns%turnsPerYield == 0 {
				runtime.Gosched()
				offers.offer(monotonic, yield)
			}
		}
	}
	ended = true
}

// park sleeps until rouse, unless there is already something to do.
func (h *helper) park(s *Seat) {
	h.on = s
	if s != nil {
		s.parked.Add(1)
	}
	h.parked.Store(true)
	if h.closed.Load() || h.seat.Load() != s || s != nil && s.word.Load()&remaining != 0 {
		if h.unpark() {
			return
		}
	}
	<-h.wake
}

// unpark takes the helper from parked to running and says whether it was this
// call that did.
func (h *helper) unpark() bool {
	if !h.parked.CompareAndSwap(true, false) {
		return false
	}
	if h.on != nil {
		h.on.parked.Add(-1)
	}
	return true
}

// rouse wakes the helper if it is parked and says whether it was.
func (h *helper) rouse() bool {
	if !h.parked.Load() || !h.unpark() {
		return false
	}
	h.wake <- struct{}{}
	return true
}
