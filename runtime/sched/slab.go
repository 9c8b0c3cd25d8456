package sched

import "tokenrouter/runtime/event"

// slab hands out values that were allocated many at a time. None is handed out
// twice, so what was given away never changes (INV-15) and a step of the core
// costs no allocation of its own.
type slab[T any] struct{ rest []T }

// take returns n fresh values; a new slab holds at least size of them.
func (s *slab[T]) take(n, size int) []T {
	if n > len(s.rest) {
		s.rest = make([]T, max(n, size))
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

// slabs are those of one core; a clone begins its own.
type slabs struct {
	batches  slab[event.Batch]
	rows     slab[event.Row]
	messages slab[event.PeerReq]
	lengths  slab[int]
}

func (s *slabs) batch() *event.Batch { return &s.batches.take(1, 64)[0] }

func (s *slabs) message() *event.PeerReq { return &s.messages.take(1, 64)[0] }
