package team

import "time"

// base is the zero of monotonic.
var base = time.Now()

// monotonic is the time since the program began in ns, never 0.
func monotonic() int64 { return int64(time.Since(base)) + 1 }

// spinner waits in place.
type spinner struct {
	turns uint
	began int64
}

// turnsPerLook is how many turns pass between two looks at the clock.
const turnsPerLook = 16

// turn lets some tens of nanoseconds pass. It is a call of its own, with the
// check of the stack that every such call has: there the scheduler stops the
// goroutine, at once, when the garbage collector wants the world to stop. In the
// pause itself, which is assembly, it could not.
//
//go:noinline
func (s *spinner) turn() {
	pause(pauses)
	s.turns++
}

// over says that spinFor has passed since the first look.
func (s *spinner) over() bool {
	if s.turns == 0 || s.turns%turnsPerLook != 0 {
		return false
	}
	now := monotonic()
	if s.began == 0 {
		s.began = now
	}
	return now-s.began > spinFor
}
