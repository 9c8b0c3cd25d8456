package live

import (
	"context"
	"sync"
	"time"

	"tokenrouter/runtime/event"
)

// clientItem is what the client loop finds in its mailbox: the end of a request
// as the front orders it, or a wish of the runtime itself.
type clientItem struct {
	cmd    *event.Command
	op     clientOp
	want   int           // with opConcurrency
	req    event.ReqID   // with opCancel
	reply  chan struct{} // with opAbort: closed when every request has ended
	offset time.Duration // with opArrive: of the arrival
	due    int64         // with opArrive: when it was due
}

type clientOp uint8

const (
	opNone clientOp = iota
	opConcurrency
	opCancel
	opAbort
	opArrive
	opNoMore
)

// client is the book of requests with the loop that keeps it at the front: in
// the closed loop it keeps a number of requests outstanding, in the open loop a
// goroutine beside it says when the next one arrives. The book is shared with
// the decode loops, which bring each token as they emit it; all other fields but
// the mailbox belong to the client loop.
type client struct {
	rt       *Runtime
	in       *mailbox[clientItem]
	turned   chan struct{} // a pause has begun or ended
	over     chan struct{} // closed when the book takes no more arrivals
	overOnce sync.Once
	aborts   []chan struct{}

	mu   sync.Mutex
	book *book
}

func newClient(rt *Runtime) *client {
	c := &client{
		rt: rt, in: newMailbox[clientItem](),
		turned: make(chan struct{}, 1), over: make(chan struct{}),
	}
	c.book = newBook(&rt.cfg, rt.host, rt.tell)
	return c
}

func (c *client) loop(ctx context.Context) {
	c.keep((*book).begin)
	if c.rt.cfg.Arrivals != nil {
		c.rt.spawn("arrivals loop", func() { c.arrivals(ctx) })
	}
	var box []clientItem
	for {
		box = c.in.take(box)
		for i := range box {
			c.handle(&box[i])
			box[i] = clientItem{}
		}
		c.keep((*book).fill)
		c.finish()
		select {
		case <-ctx.Done():
			return
		case <-c.in.note:
		}
	}
}

// keep lets do have the book.
func (c *client) keep(do func(*book)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.book)
}

func (c *client) handle(it *clientItem) {
	c.keep(func(b *book) {
		switch it.op {
		case opConcurrency:
			b.setWant(it.want)
		case opCancel:
			b.cancel(it.req)
		case opAbort:
			c.aborts = append(c.aborts, it.reply)
			b.abort()
		case opArrive:
			late := float64(max(0, c.rt.Now()-it.due))
			b.arrive(it.offset, time.Duration(late*c.speed()))
		case opNoMore:
			b.noMore()
		default:
			b.ended(it.cmd)
		}
	})
}

// finish stops the arrivals when the book takes no more of them, and reports
// that nothing is outstanding and nothing will come.
func (c *client) finish() {
	var full, idle bool
	c.keep(func(b *book) { full, idle = b.full(), b.idle() })
	if full {
		c.overOnce.Do(func() { close(c.over) })
	}
	if !idle {
		return
	}
	for _, reply := range c.aborts {
		close(reply)
	}
	c.aborts = nil
	c.rt.end()
}

// stopOf says where tokens that end a request at the front bring its text to an
// end. The front asks before it states what ends it: then it emits and finishes in
// one step, and a Stop would come too late.
func (c *client) stopOf(id event.ReqID, first int, tokens []event.Token) (stop int) {
	c.keep(func(b *book) { stop = b.stopOf(id, first, tokens) })
	return stop
}

// emitted takes a token into its request's text; the decode loop that emits it
// calls. A stop string is thus known before that loop passes anything on: the
// front hears of it ahead of whatever the request does afterwards, so where a
// request stops does not depend on how far its writers have run on.
func (c *client) emitted(cmd *event.Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.book.emitted(cmd)
}
