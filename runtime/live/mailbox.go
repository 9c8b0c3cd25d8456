package live

import "sync"

// mailbox carries items to one reader. Put never blocks; the number of items is
// bounded by the number of active requests, since each request has at most a few
// messages under way and admission bounds the requests.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	note  chan struct{}
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{note: newNote()} }

// newNote makes what a reader waits at: one note stands for all that has come.
func newNote() chan struct{} { return make(chan struct{}, 1) }

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.items = append(m.items, v)
	m.mu.Unlock()
	select {
	case m.note <- struct{}{}:
	default:
	}
}

// take swaps what has come with an empty slice of the reader's.
func (m *mailbox[T]) take(empty []T) []T {
	m.mu.Lock()
	got := m.items
	m.items = empty[:0]
	m.mu.Unlock()
	return got
}
