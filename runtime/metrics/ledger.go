package metrics

import "tokenrouter/runtime/event"

// doneKept is how many ended requests are remembered, so that what arrives late
// for one of them is known as late.
const doneKept = 4096

// entry is what is known of a request while it is active.
type entry struct {
	arrived int64 // running time
	known   bool  // arrived was seen
	admit   int64 // running time of the admission
	waited  bool  // it was seen, and arrived too
	epoch   int   // of the answers, when it arrived
	base    int   // position of the first emitted token
	writers []event.Peer
	last    int64   // running time of the last Emit
	times   []int64 // running time of every Emit, where a ledger keeps them

	resumed  event.Peer // subserver that has the request back and has not drawn yet
	extended int        // tokens fed there since
	been     uint64     // a bit for each subserver, up to 64, that a row of it ran on
	dropped  event.Peer // subserver whose DROP has not been seen to leave yet
	tail     tail       // tokens that are held back
	place               // where the request stands
}

// done is what is left of a request that ended.
type done struct {
	known bool
	epoch int
}

// ledger keeps the requests: who wrote which position, and when.
type ledger struct {
	keepTimes bool
	active    map[event.ReqID]*entry
	done      map[event.ReqID]done
	ring      []event.ReqID
	next      int
	free      []*entry
}

func newLedger(keepTimes bool) ledger {
	return ledger{
		keepTimes: keepTimes,
		active:    map[event.ReqID]*entry{},
		done:      map[event.ReqID]done{},
	}
}

// open gives the entry of a request, a new one if it is not known; nil if the
// request has ended.
func (l *ledger) open(id event.ReqID) *entry {
	if e := l.active[id]; e != nil {
		return e
	}
	if _, over := l.done[id]; over {
		return nil
	}
	var e *entry
	if n := len(l.free); n > 0 {
		e = l.free[n-1]
		l.free = l.free[:n-1]
		*e = entry{writers: e.writers[:0], times: e.times[:0], tail: tail{writers: e.tail.writers[:0]}}
	} else {
		e = new(entry)
	}
	e.resumed, e.dropped = event.None, event.None
	l.active[id] = e
	return e
}

// arrive notes when a request reached the front.
func (l *ledger) arrive(id event.ReqID, t int64, epoch int) {
	if e := l.open(id); e != nil {
		e.arrived, e.known, e.epoch = t, true, epoch
	}
}

// emission is one token that counts.
type emission struct {
	first    bool
	wait     int64 // ns since the arrival (first) or since the token before
	timed    bool  // wait is known
	switched bool  // another subserver wrote the token before
	undrop   bool  // the core overruled a DROP that was counted
}

// emit notes a token; ok is false for one that does not count: a position that
// stands already, or a request that has ended.
func (l *ledger) emit(id event.ReqID, pos int, by event.Peer, t int64) (em emission, ok bool) {
	e := l.open(id)
	if e == nil {
		return em, false
	}
	n := len(e.writers)
	switch {
	case n == 0:
		em.first, em.timed, em.wait = true, e.known, t-e.arrived
		e.base = pos
	case pos < e.base+n:
		return em, false
	default:
		em.timed, em.wait = true, t-e.last
		em.switched = e.writers[n-1] != by
		e.base = pos - n
	}
	em.wait = max(em.wait, 0)
	if e.tail.emit(); !e.tail.holds {
		em.undrop = e.dropped == by
		e.dropped = event.None
	}
	e.writers = append(e.writers, by)
	e.last = t
	if l.keepTimes {
		e.times = append(e.times, t)
	}
	return em, true
}

// row takes what the router decided about a candidate of p; true if it was
// discarded. That stands until the request leaves: should the core overrule it, p
// emits the position after all, or, where tokens are held back, says so.
func (l *ledger) row(row *event.RowResult, p event.Peer) (dropped bool) {
	e := l.active[row.Req]
	if e == nil {
		_, over := l.done[row.Req]
		return row.Action != event.Keep && !over
	}
	e.tail.row(row, p)
	if row.Action == event.Keep {
		return false
	}
	e.dropped = p
	return true
}

// fault takes a note of p that a router is at fault; true if it overrules a
// candidate that was counted as discarded.
func (l *ledger) fault(cmd *event.Command, p event.Peer) bool {
	e := l.active[cmd.Req]
	if e == nil || !e.tail.holds || e.dropped != p || cmd.Text == e.tail.fault {
		return false
	}
	e.dropped = event.None
	e.tail.write(p)
	return true
}

// left notes that a request is on its way to another subserver. It returns who
// wrote the tokens that were taken back.
func (l *ledger) left(m *event.PeerReq) (taken []event.Peer) {
	e := l.active[m.ID]
	if e == nil {
		return nil
	}
	e.dropped = event.None
	return e.tail.leave(m)
}

// seen says whether anything was heard of a request.
func (l *ledger) seen(id event.ReqID) bool {
	_, over := l.done[id]
	return over || l.active[id] != nil
}

// kept is how many emitted tokens a request keeps that ends with n tokens,
// prompt included.
func (e *entry) kept(n int) int {
	return min(max(n-e.base, 0), len(e.writers))
}

// prefill counts the prompt positions of a request that comes without KV, and
// those of them that the prefix cache had.
func (c *peerCount) prefill(row *event.Row) {
	if row.Prefill && row.Start <= row.Cached { // not a later part of it
		c.prompt += int64(max(row.PromptLen, 0))
		c.cached += int64(max(min(row.Cached, row.PromptLen), 0))
	}
}

// feed counts a row at p. Where the request is back at a subserver that it was at,
// what is fed until it draws again is what others wrote meanwhile; positions that
// were lost there are counted as recomputed and nowhere else.
func (e *entry) feed(p event.Peer, row *event.Row, n *peerCount) {
	was := e.been>>uint(p)&1 == 1
	e.been |= 1 << uint(p)
	if e.resumed != p {
		return
	}
	if !was {
		e.resumed = event.None
		return
	}
	e.extended += max(len(row.Tokens)-max(row.Recomputed, 0), 0)
	if row.Sample {
		n.resumes++
		n.extended += int64(max(e.extended, 1))
		e.resumed = event.None
	}
}

// close ends a request. Its entry may be read until the next call.
func (l *ledger) close(id event.ReqID) *entry {
	e := l.active[id]
	d := done{}
	if e != nil {
		d = done{e.known, e.epoch}
		delete(l.active, id)
		l.free = append(l.free, e)
	}
	if _, again := l.done[id]; again {
		return e
	}
	if len(l.ring) < doneKept {
		l.ring = append(l.ring, id)
	} else {
		delete(l.done, l.ring[l.next])
		l.ring[l.next] = id
		l.next = (l.next + 1) % doneKept
	}
	l.done[id] = d
	return e
}

// epoch says in which epoch of the answers a request arrived.
func (l *ledger) epoch(id event.ReqID) (epoch int, known bool) {
	if e := l.active[id]; e != nil {
		return e.epoch, e.known
	}
	d := l.done[id]
	return d.epoch, d.known
}
