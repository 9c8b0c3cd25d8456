package main

import (
	"sync"
	"time"
)

// measureFor is what a reached speed is of: long enough not to tremble.
const measureFor = time.Second

// speedometer tells by how much a clock goes faster than the wall's.
type speedometer struct {
	mu      sync.Mutex
	begin   time.Time // of the session
	from    time.Time // of the measurement under way
	at      int64     // session time then
	paused  bool
	asked   float64
	reached float64 // 0: not known
}

// read takes session time at wall time now, and the speed asked for, after a
// change of which the measurement begins anew. A pause does not count.
func (s *speedometer) read(now time.Time, at int64, asked float64, paused bool) (reached float64, wall time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begin.IsZero() {
		s.begin = now
	}
	switch passed := now.Sub(s.from); {
	case s.from.IsZero() || paused || s.paused || asked != s.asked:
		if asked != s.asked {
			s.reached = 0
		}
		s.from, s.at = now, at
	case passed >= measureFor:
		s.reached = float64(at-s.at) / float64(passed)
		s.from, s.at = now, at
	}
	s.paused, s.asked = paused, asked
	return s.reached, now.Sub(s.begin)
}
