package metrics

import (
	"cmp"
	"slices"
	"time"

	"tokenrouter/runtime/event"
)

// stand says what a request does at its place.
type stand uint8

const (
	unknown     stand = iota // not admitted, or not heard of
	standsReady              // could be in the next batch, as far as KV goes
	runs                     // in the running batch
	travels                  // in a message to the place
)

// place is where the pen of a request is.
type place struct {
	stand stand
	at    event.Peer
	hop   uint32 // of the newest message that was taken
	since int64  // running time
}

func (p *place) move(s stand, at event.Peer, t int64) { p.stand, p.at, p.since = s, at, t }

// arrive takes a message to subserver p; false for a stale one, which changes
// nothing, as in the core.
func (p *place) arrive(at event.Peer, hop uint32, t int64) bool {
	if hop > 0 && hop <= p.hop {
		return false
	}
	p.hop = hop
	p.move(standsReady, at, t)
	return true
}

// stepped ends a row at subserver p: until a command says otherwise the request
// stays. The entry may be that of another request by now, which does not run.
func (p *place) stepped(at event.Peer, t int64) {
	if p.stand == runs && p.at == at {
		p.move(standsReady, at, t)
	}
}

// Wait is a subserver that has been idle for longer than the guard W although
// requests are ready there: B is not reached, or they find no KV.
type Wait struct {
	Core  event.Peer
	For   time.Duration // running time since it is idle and the first of them is ready
	Ready int           // requests ready there
	Fit   int           // of them, those that find KV
	B     int           // threshold in force
	Reqs  []event.ReqID // the ready ones, the longest waiting first
	Comes int           // requests in messages to it
	On    []WaitOn      // where the other admitted requests are, most first
}

// WaitOn is a subserver that has the pen of requests that another one waits for.
type WaitOn struct {
	Core     event.Peer
	Requests int           // ready or running there, or on their way
	Batch    int           // rows of its running batch, 0 when idle
	For      time.Duration // how long that batch has run
}

// waits finds the subservers that have waited longer than W at running time t.
func (b *Board) waits(t int64) []Wait {
	var out []Wait
	for i := range b.cores {
		c := &b.cores[i]
		if b.guard <= 0 || c.running || t-c.idle <= b.guard {
			continue
		}
		if w := b.wait(event.Peer(i), t); int64(w.For) > b.guard {
			out = append(out, w)
		}
	}
	return out
}

// wait says what subserver p, which is idle, has waited for; For is 0 if nothing
// is ready there.
func (b *Board) wait(p event.Peer, t int64) Wait {
	c := &b.cores[p]
	w := Wait{Core: p, Fit: c.load.Ready, B: c.load.B}
	type waiting struct {
		id    event.ReqID
		since int64
	}
	var ready []waiting
	on := make([]WaitOn, len(b.cores))
	for id, e := range b.ledger.active { // what comes out does not depend on the order
		switch {
		case e.stand == unknown || int(e.at) >= len(on) || e.at < 0:
		case e.at != p || e.stand == travels:
			on[e.at].Requests++
		case e.stand == standsReady:
			ready = append(ready, waiting{id, e.since})
		}
	}
	if len(ready) == 0 {
		return w
	}
	slices.SortFunc(ready, func(x, y waiting) int {
		return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(x.id, y.id))
	})
	w.For, w.Ready = time.Duration(t-max(ready[0].since, c.idle)), len(ready)
	for _, r := range ready {
		w.Reqs = append(w.Reqs, r.id)
	}
	w.Comes = on[p].Requests
	for i := range on {
		on[i].Core = event.Peer(i)
		if o := &b.cores[i]; o.running {
			on[i].Batch, on[i].For = o.rows, time.Duration(max(t-o.started, 0))
		}
	}
	on = slices.DeleteFunc(on, func(o WaitOn) bool { return o.Requests == 0 || o.Core == p })
	slices.SortStableFunc(on, func(x, y WaitOn) int { return cmp.Compare(y.Requests, x.Requests) })
	w.On = on
	return w
}
