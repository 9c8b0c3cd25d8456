package team

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// The word of a seat says all about the call of Do in progress.
const (
	// remaining, the low half, is the items not yet claimed. Zero means that
	// there is nothing to help with.
	remaining = 1<<32 - 1
	// helperInside is one helper that is at an item.
	helperInside = 1 << 32
	inside       = (1<<31 - 1) << 32
	// ownerSleeps says that the owner waits for the last helper to wake it.
	ownerSleeps = 1 << 63
)

// callsPerYield is how many calls of Do pass before an owner lets goroutines that
// wait have its processor: some hundred microseconds of a small model, two
// milliseconds of one of a billion weights.
const callsPerYield = 16

// line keeps what one core writes off the cache lines that others read.
type line [64]byte

// Seat is a model's place among the cores. Its methods are for one goroutine at
// a time, the one that steps the model; different seats are independent. A nil
// *Seat is one core without helpers.
type Seat struct {
	cores *Cores
	limit atomic.Int32 // workers at most
	// These are the books of Cores.deal, under cores.mu.
	busy    bool
	listed  bool
	ended   int64 // when the last step ended
	helpers int   // that it should have
	given   int   // that it has so far

	_    line
	word atomic.Uint64
	_    line
	// f and n are the call in progress: written before the word shows items,
	// read by whoever has claimed one.
	f     func(worker, i int)
	n     int
	calls uint // of Do so far
	_     line
	// parked counts the helpers of this seat that a call of Do must wake.
	parked atomic.Int32
	crash  atomic.Pointer[crash] // the first of the call in progress
	wake   chan struct{}         // the last helper to the sleeping owner
}

// crash is a panic of f in a helper.
type crash struct {
	value any
	stack []byte
}

// Workers is the number of workers that Do may use: worker numbers are below
// it, so scratch memory of one slot per worker is enough.
func (s *Seat) Workers() int {
	if s == nil || s.limit.Load() == 1 {
		return 1
	}
	return len(s.cores.helpers) + 1
}

// Limit lets at most n workers, the owner among them, work for the seat: a
// model that is too small to be split is faster alone. It is called between
// steps. The limit is at first the number of cores.
func (s *Seat) Limit(n int) {
	if s != nil {
		s.limit.Store(int32(min(max(n, 1), len(s.cores.helpers)+1)))
	}
}

// Begin starts a step: the calling goroutine takes a core, and helpers come
// from cores that nobody else needs.
func (s *Seat) Begin() {
	if s == nil || s.cores.alone {
		return
	}
	s.cores.step(s, true)
}

// End ends the step; the helpers leave.
func (s *Seat) End() {
	if s == nil || s.cores.alone {
		return
	}
	s.cores.step(s, false)
}

// Do calls f(worker, i) once for every i from 0 to n-1, in any order, at the
// same time in several workers, and returns when all are done. Items are
// claimed one by one. Calls with the same worker do not overlap; worker 0 is
// the caller, and is the only one outside of Begin and End. A panic of f comes
// out of Do when no worker is at an item any more; items not yet claimed are
// left out. f must not call Do of the same seat.
func (s *Seat) Do(n int, f func(worker, i int)) {
	if s == nil || n <= 1 || s.cores.alone {
		for i := range n {
			f(0, i)
		}
		return
	}
	if uint64(n) > remaining {
		panic(fmt.Sprintf("team: %d items are too many", n))
	}
	s.cores.overdue()
	if s.calls++; s.calls%callsPerYield == 0 {
		runtime.Gosched()
	}
	s.f, s.n = f, n
	s.word.Store(uint64(n))
	if s.parked.Load() > 0 {
		s.cores.call(s, n-1)
	}
	defer s.join()
	for {
		i, ok := s.claim(n)
		if !ok {
			return
		}
		f(0, i)
	}
}

// join waits for the helpers that are still at an item.
func (s *Seat) join() {
	if s.word.Load()&remaining != 0 { // f panicked here
		s.drop()
	}
	for spin := (spinner{}); ; spin.turn() {
		w := s.word.Load()
		if w&inside == 0 {
			break
		}
		// The helper has lost its core or is at a long item.
		if spin.over() && s.word.CompareAndSwap(w, w|ownerSleeps) {
			<-s.wake
			break
		}
	}
	s.f = nil
	if c := s.crash.Load(); c != nil {
		s.crash.Store(nil)
		panic(fmt.Sprintf("%v, in a helper:\n%s", c.value, c.stack))
	}
}

// drop takes the items that nobody has claimed.
func (s *Seat) drop() {
	for {
		w := s.word.Load()
		if s.word.CompareAndSwap(w, w&^remaining) {
			return
		}
	}
}

// leave says that a helper is at no item any more.
func (s *Seat) leave() {
	for {
		w := s.word.Load()
		next := w - helperInside
		if next&inside == 0 {
			next &^= ownerSleeps
		}
		if s.word.CompareAndSwap(w, next) {
			if w&ownerSleeps != 0 && next&inside == 0 {
				s.wake <- struct{}{}
			}
			return
		}
	}
}

// help works for the seat until nothing is left to claim, the helper is wanted
// elsewhere or has worked for itemsPerYield, and says how many items it did.
func (s *Seat) help(h *helper) (items int) {
	for {
		w := s.word.Load()
		if w&remaining == 0 {
			return 0
		}
		if s.word.CompareAndSwap(w, w+helperInside) {
			break
		}
	}
	done := false
	defer func() {
		if !done {
			// f panicked, or ended its goroutine.
			v := recover()
			if v == nil {
				v = "team: f called runtime.Goexit"
			}
			stack := make([]byte, 16<<10)
			s.crash.CompareAndSwap(nil, &crash{v, stack[:runtime.Stack(stack, false)]})
			s.drop()
		}
		s.leave()
	}()
	// Only who is inside may look whether it is still dealt to the seat: the call
	// that a helper saw from outside may be over, and this one not meant for it.
	f, n := s.f, s.n
	for ; items < itemsPerYield && h.seat.Load() == s; items++ {
		i, ok := s.claim(n)
		if !ok {
			break
		}
		f(h.worker, i)
	}
	done = true
	return items
}

// claim takes an item of the call of n items in progress, false if none is left.
func (s *Seat) claim(n int) (i int, ok bool) {
	for {
		w := s.word.Load()
		left := int(w & remaining)
		if left == 0 {
			return 0, false
		}
		if s.word.CompareAndSwap(w, w-1) {
			return n - left, true
		}
	}
}
