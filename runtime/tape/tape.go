package tape

import (
	"sync"
	"sync/atomic"

	"tokenrouter/runtime/event"
)

// chunkSize is how many records share one allocation. Chunks that every
// subscription has read are left to the garbage collector.
const chunkSize = 256

type chunk struct {
	recs [chunkSize]Record
	n    atomic.Int32 // published records; written under Tape.mu
	next atomic.Pointer[chunk]
}

// Tape is the one appender. The zero value is not usable; call New.
type Tape struct {
	mu   sync.Mutex
	tail *chunk
	seq  uint64
	subs map[*Sub]struct{}
	room chan struct{}
}

// New returns an empty tape.
func New() *Tape {
	return &Tape{tail: new(chunk), subs: map[*Sub]struct{}{}, room: make(chan struct{}, 1)}
}

// Append adds records in the order given, numbering them. It never waits for a
// subscription.
func (t *Tape) Append(recs ...Record) {
	if len(recs) == 0 {
		return
	}
	t.mu.Lock()
	for i := range recs {
		c := t.tail
		n := c.n.Load()
		if n == chunkSize {
			next := new(chunk)
			t.tail = next
			c.next.Store(next)
			c, n = next, 0
		}
		t.seq++
		c.recs[n] = recs[i]
		c.recs[n].Seq = t.seq
		c.n.Store(n + 1)
	}
	for s := range t.subs {
		s.notify()
	}
	t.mu.Unlock()
}

// AppendHost adds one record that comes from around the cores.
func (t *Tape) AppendHost(at int64, core event.Peer, h Host) {
	t.Append(Record{At: at, Core: core, Kind: KindHost, Host: h})
}

// Seq is the number of records so far.
func (t *Tape) Seq() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seq
}

// Behind is how many records the slowest subscription has not read yet. Appending
// does not wait for it; whoever can write faster than anybody reads asks, and
// waits for Room.
func (t *Tape) Behind() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var most uint64
	for s := range t.subs {
		most = max(most, t.seq-s.read.Load())
	}
	return most
}

// Room receives after a subscription has read records or was closed.
func (t *Tape) Room() <-chan struct{} { return t.room }

func (t *Tape) roomy() {
	select {
	case t.room <- struct{}{}:
	default:
	}
}

// Subscribe starts a subscription at the present end of the tape.
func (t *Tape) Subscribe() *Sub {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Sub{tape: t, cur: t.tail, pos: t.tail.n.Load(), ready: make(chan struct{}, 1)}
	s.read.Store(t.seq)
	t.subs[s] = struct{}{}
	return s
}

// ended is what a closed subscription stands at. Nothing is ever put there.
var ended chunk

// Sub reads a tape at its own pace. It belongs to one goroutine.
type Sub struct {
	tape  *Tape
	cur   *chunk
	pos   int32
	read  atomic.Uint64 // Seq of the last record that Next gave
	ready chan struct{}
}

func (s *Sub) notify() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Ready receives after records were appended. A receive says that Next may have
// something, not how much.
func (s *Sub) Ready() <-chan struct{} { return s.ready }

// Next appends to dst what has come since the last call, up to max records (no
// bound if max <= 0), and returns it.
func (s *Sub) Next(dst []Record, max int) []Record {
	before := len(dst)
	dst = s.next(dst, max)
	if n := len(dst); n > before {
		s.read.Store(dst[n-1].Seq)
		s.tape.roomy()
	}
	return dst
}

func (s *Sub) next(dst []Record, max int) []Record {
	for left := max; max <= 0 || left > 0; {
		n := s.cur.n.Load()
		if s.pos < n {
			take := n - s.pos
			if max > 0 {
				take = min(take, int32(left))
				left -= int(take)
			}
			dst = append(dst, s.cur.recs[s.pos:s.pos+take]...)
			s.pos += take
			continue
		}
		next := s.cur.next.Load()
		if n < chunkSize || next == nil {
			return dst
		}
		s.cur, s.pos = next, 0
	}
	return dst
}

// Close ends the subscription: Next gives nothing any more, and whoever still
// holds it does not hold the records that follow.
func (s *Sub) Close() {
	s.cur, s.pos = &ended, 0
	s.tape.mu.Lock()
	delete(s.tape.subs, s)
	s.tape.mu.Unlock()
	s.tape.roomy()
}
