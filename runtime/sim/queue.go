package sim

import "tokenrouter/runtime/event"

// class orders what is due at the same time: first what the experiment does to
// the cluster, then facts, and last the dispatches, when all facts are known.
type class uint8

const (
	control  class = iota // what the caller does: functions given to At, policies
	executed              // a core has executed its batch; only where others are slowed by it
	stepDone              // the end of a core's batch is stated
	deliver               // the next message of a link arrives
	arrive                // a client sends its next request
	told                  // a fact that the caller states, likewise
	wake                  // a timer of a core
	dispatch              // a core may start a batch; the small model's first
)

// due is something that happens at a time.
type due struct {
	at    int64
	order uint64 // class, then the order among equals
	class class
	core  event.Peer
	from  event.Peer // deliver: the link's other end
	id    uint64     // end, timer or act
}

func (d *due) before(e *due) bool {
	return d.at < e.at || d.at == e.at && d.order < e.order
}

// queue is a binary heap of what is due. What is equal in time and class comes
// out in the order in which it was put in, dispatches by core, so the order is
// total.
type queue struct {
	heap []due
	seq  uint64
}

func (q *queue) put(d due) {
	q.seq++
	d.order = uint64(d.class)<<56 | q.seq
	if d.class == dispatch {
		d.order = uint64(d.class)<<56 | uint64(d.core)
	}
	h := append(q.heap, d)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !d.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = d
	q.heap = h
}

// take removes the first; the queue must not be empty.
func (q *queue) take() due {
	h := q.heap
	first := h[0]
	n := len(h) - 1
	last := h[n]
	h = h[:n]
	q.heap = h
	if n == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && h[down+1].before(&h[down]) {
			down++
		}
		if !h[down].before(&last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return first
}
