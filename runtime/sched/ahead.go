package sched

import (
	"fmt"

	"tokenrouter/runtime/event"
)

// batchNews is what another subserver told of its running batch, and what it was
// sent that no batch it has told of can hold.
type batchNews struct {
	rows  int // rows that may be handed over, 0 when idle
	until int64

	sent   int // requests handed to it at sentAt
	sentAt int64
}

// expect is what subserver p runs or is about to run: what it told, else what it
// was sent, as soon as that is there.
func (a ahead) expect(s *situation, p event.Peer) (rows int, until int64) {
	n := &s.peers[p]
	if n.rows > 0 || n.sent == 0 {
		return n.rows, n.until
	}
	return n.sent, n.sentAt + a.f.Latency + a.f.Step[p].Of(n.sent)
}

// ahead is the look-ahead policy: an idle subserver with q ready requests holds
// for the requests that its peers' running batches will bring iff that costs
// less waiting than it saves. For each horizon d_k, the predicted arrival from
// the k-th busy peer to finish,
//
//	wait_k = sum over i <= k of (q + arrivals before d_i) x (d_i - d_(i-1))
//	save_k = sum over i <= k of P[i][m] x rows_i x (T_m - d_i)
//
// and it holds iff wait_k < save_k for some k: an arrival at d_i that finds m
// busy would wait for the rest of T_m. Nobody is waited for who is overdue, so
// where nobody runs or sends it never holds.
//
// A peer counts as busy until its news of the end arrives. That comes behind the
// requests on the same link, so what is in flight from it is waited for too. One
// that is idle as far as it told, and was sent requests at the last hand-off, is
// expected to run those.
type ahead struct {
	f     *event.Forecast
	slack int64 // ns a peer may be overdue
}

// overdue is the part of a small step, in percent, by which a peer may be late.
const overdue = 15

// newAhead is eager where the forecast does not describe n subservers.
func newAhead(f *event.Forecast, n int) policy {
	if len(f.Step) != n || len(f.Share) != n {
		return eager{}
	}
	for _, row := range f.Share {
		if len(row) != n {
			return eager{}
		}
	}
	return ahead{f: f, slack: max(0, f.Step[event.Front].Of(1)) * overdue / 100}
}

func (ahead) rule() event.Rule { return event.RuleAhead }

func (a ahead) threshold(s *situation) decision {
	start, hold := decision{b: 1, want: 1}, decision{b: s.ready + 1, want: s.ready + 1}
	if s.ready < 1 || s.ready >= s.seats[s.self] {
		return start
	}
	own := micros(a.f.Step[s.self].Of(s.ready))
	here := int64(s.ready) * million // requests here, in millionths
	var wait, save, before int64
	last := event.None // the peer of the horizon before, None: none yet
	for {
		p, d, ok := a.next(s, last)
		if !ok {
			return start
		}
		last = p
		rows, _ := a.expect(s, p)
		arrive := int64(rows) * int64(a.f.Share[p][s.self])
		if arrive <= 0 {
			continue
		}
		wait += here * (d - before)
		save += arrive * (own - d)
		here += arrive
		before = d
		if until := a.given(s, p); hold.wake == 0 || until < hold.wake {
			hold.wake = until
		}
		if wait < save {
			return hold
		}
	}
}

const million = 1_000_000

// next is the busy peer behind last in the order of predicted arrivals, at a tie
// by index, and how many microseconds away that is. Peers are few: looking
// through all of them costs less than keeping them sorted.
func (a ahead) next(s *situation, last event.Peer) (p event.Peer, d int64, ok bool) {
	for i := range s.peers {
		q := event.Peer(i)
		if rows, _ := a.expect(s, q); q == s.self || rows == 0 || s.now >= a.given(s, q) {
			continue
		}
		if last != event.None && !a.earlier(s, last, q) {
			continue
		}
		if !ok || a.earlier(s, q, p) {
			p, ok = q, true
		}
	}
	if ok {
		_, until := a.expect(s, p)
		d = micros(max(0, until+a.f.Latency-s.now))
	}
	return p, d, ok
}

func (a ahead) earlier(s *situation, p, q event.Peer) bool {
	_, x := a.expect(s, p)
	_, y := a.expect(s, q)
	return x < y || x == y && p < q
}

// given is until when peer p is waited for.
func (a ahead) given(s *situation, p event.Peer) int64 {
	_, until := a.expect(s, p)
	return until + a.f.Latency + a.slack
}

// micros is a time in microseconds, of at most a thousand seconds: so that
// requests in millionths times it stay far from overflow.
func micros(ns int64) int64 { return min(ns/1000, 1_000_000_000) }

// looks says whether the peers want to know what runs here.
func (c *Core) looks() (ahead, bool) {
	a, ok := c.inForce().(ahead)
	return a, ok && c.n > 1
}

// tellStart tells the peers of a batch that starts and when it should end.
func (c *Core) tellStart(b *event.Batch) {
	a, ok := c.looks()
	if !ok {
		return
	}
	rows := 0
	for i := range b.Rows {
		if b.Rows[i].Sample {
			rows++
		}
	}
	if rows > 0 {
		c.toldRows = rows
		c.emit(event.Command{Kind: event.TellBusy, N: rows, At: c.now + a.f.Step[c.self].Of(len(b.Rows))})
	}
}

// tellIdle takes back what tellStart told, behind the requests that the batch
// sends on.
func (c *Core) tellIdle() {
	if c.toldRows > 0 {
		c.toldRows = 0
		c.emit(event.Command{Kind: event.TellBusy, At: c.now})
	}
}

// busy is what another subserver tells of its batch.
func (c *Core) busy(from event.Peer, rows int, until int64) {
	if from == c.self || from < 0 || int(from) >= c.n || rows < 0 {
		c.note(event.NoteUnknown, 0, 0, fmt.Sprintf("news of %d rows from subserver %d dropped", rows, from))
		return
	}
	n := &c.peers[from]
	n.rows, n.until = rows, until
	a, ok := c.looks()
	if ok && rows > 0 && until-a.f.Step[from].Of(rows) >= n.sentAt+a.f.Latency {
		n.sent = 0 // that batch can hold them
	}
}

// handedTo counts what goes to a peer at one moment.
func (c *Core) handedTo(p event.Peer) {
	n := &c.peers[p]
	if n.sentAt != c.now {
		n.sent, n.sentAt = 0, c.now
	}
	n.sent++
}
