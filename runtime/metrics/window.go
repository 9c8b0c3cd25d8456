package metrics

import (
	"math"
	"time"

	"tokenrouter/runtime/event"
)

// The window of the board: what happened in the last 10 s, kept in slots of
// 250 ms so that it moves smoothly, or since the last change.
const (
	slotWidth = int64(250 * time.Millisecond)
	slots     = 41 // 40 whole ones and the running one
	windowNs  = (slots - 1) * slotWidth
)

// peerCount is what one subserver did in a while.
type peerCount struct {
	tokens    int64 // committed by it and emitted
	rows      int64 // candidates drawn
	dropped   int64 // discarded candidates, and tokens that were taken back
	taken     int64 // those tokens
	batches   int64
	byB       int64 // batches that ready >= B started, that the guard did, and that look-ahead did
	byGuard   int64
	byAhead   int64
	batchRows int64 // rows of those batches, prefill chunks included
	stepNs    int64
	execNs    int64
	visits    int64 // hand-offs that came in
	resumes   int64
	extended  int64 // tokens fed on those resumes
	busyNs    int64
	waitNs    int64 // idle with 0 < ready < B

	prompt     int64 // prompt positions of the requests that came here without KV
	cached     int64 // of them, those that the prefix cache had
	recomputed int64 // positions fed again after their KV was taken
	preempted  int64 // requests whose KV was taken
}

func (c *peerCount) add(o *peerCount, sign int64) {
	c.tokens += sign * o.tokens
	c.rows += sign * o.rows
	c.dropped += sign * o.dropped
	c.taken += sign * o.taken
	c.batches += sign * o.batches
	c.byB += sign * o.byB
	c.byGuard += sign * o.byGuard
	c.byAhead += sign * o.byAhead
	c.batchRows += sign * o.batchRows
	c.stepNs += sign * o.stepNs
	c.execNs += sign * o.execNs
	c.visits += sign * o.visits
	c.resumes += sign * o.resumes
	c.extended += sign * o.extended
	c.busyNs += sign * o.busyNs
	c.waitNs += sign * o.waitNs
	c.prompt += sign * o.prompt
	c.cached += sign * o.cached
	c.recomputed += sign * o.recomputed
	c.preempted += sign * o.preempted
}

// slot is what happened in one slot, or in all of them.
type slot struct {
	peers     []peerCount
	switches  int64
	ttft, itl hist
}

func (s *slot) clear() {
	clear(s.peers)
	s.switches = 0
	if s.ttft.n > 0 {
		s.ttft = hist{}
	}
	if s.itl.n > 0 {
		s.itl = hist{}
	}
}

func (s *slot) sub(o *slot) {
	for i := range o.peers {
		s.peers[i].add(&o.peers[i], -1)
	}
	s.switches -= o.switches
	s.ttft.sub(&o.ttft)
	s.itl.sub(&o.itl)
}

// window is a ring of slots and their sum.
type window struct {
	from  int64 // running time at which the window starts at the earliest
	start int64 // of the running slot
	cur   int
	ring  [slots]slot
	sum   slot
}

func newWindow(peers int) *window {
	w := &window{from: math.MinInt64}
	for i := range w.ring {
		w.ring[i].peers = make([]peerCount, peers)
	}
	w.sum.peers = make([]peerCount, peers)
	return w
}

// restart forgets everything before t.
func (w *window) restart(t int64) {
	for i := range w.ring {
		w.ring[i].clear()
	}
	w.sum.clear()
	w.from, w.start = t, floorTo(t, slotWidth)
}

// peer gives the counts of a subserver in the running slot and in the sum; what
// is added to one is added to the other.
func (w *window) peer(p event.Peer) (cur, sum *peerCount) {
	return &w.ring[w.cur].peers[p], &w.sum.peers[p]
}

// gap counts a time to the first token or between two tokens.
func (w *window) gap(first bool, ns int64) {
	cur := &w.ring[w.cur]
	if first {
		cur.ttft.add(ns)
		w.sum.ttft.add(ns)
	} else {
		cur.itl.add(ns)
		w.sum.itl.add(ns)
	}
}

// rotate ends the running slot.
func (w *window) rotate() {
	w.cur = (w.cur + 1) % slots
	w.start += slotWidth
	w.sum.sub(&w.ring[w.cur])
	w.ring[w.cur].clear()
}

// begin is where the window that ends at now starts.
func (w *window) begin(now int64) int64 {
	return max(w.from, floorTo(max(now, w.start), slotWidth)-windowNs)
}

// view copies into dst the sum over the window that ends at now, which is not
// before the running slot. The window itself stays as it is.
func (w *window) view(dst *slot, now int64) {
	peers := dst.peers
	*dst = w.sum
	dst.peers = append(peers[:0], w.sum.peers...)
	over := min((now-w.start)/slotWidth, slots)
	for i := int64(1); i <= over; i++ {
		dst.sub(&w.ring[(w.cur+int(i))%slots])
	}
}

// floorTo rounds t down to a multiple of width.
func floorTo(t, width int64) int64 {
	r := t % width
	if r < 0 {
		r += width
	}
	return t - r
}
