package sim

import "tokenrouter/runtime/event"

// kept is room for what a Tap may keep.
type kept struct {
	events slab[event.Event]
	cmds   slab[event.Command]
	steps  slab[event.StepResult]
	rows   slab[event.RowResult]
}

// slab gives out pieces that nobody else uses, cut from larger ones so that not
// each is an allocation. Who keeps a piece keeps what it was cut from.
type slab[T any] struct{ rest []T }

// cut is how many a slab makes at once.
const cut = 64

// take returns n that are zero. To append to them moves them elsewhere.
func (s *slab[T]) take(n int) []T {
	if n > len(s.rest) {
		if n >= cut {
			return make([]T, n)
		}
		s.rest = make([]T, cut)
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}
