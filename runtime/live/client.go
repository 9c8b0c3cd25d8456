package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/text"
	"tokenrouter/runtime/workload"
)

// clientItem is what the client loop finds in its mailbox: the end of a request
// as the front orders it, or a request of the runtime itself.
type clientItem struct {
	cmd   *event.Command
	want  int // with op: the number of requests to keep outstanding
	op    clientOp
	req   event.ReqID
	reply chan struct{} // closed when an abort has ended every request
}

type clientOp uint8

const (
	opNone clientOp = iota
	opConcurrency
	opCancel
	opAbort
)

// request is what the client knows of an unfinished request.
type request struct {
	task   workload.Task
	prompt int // tokens
	stage  *text.Stage
	text   []byte
}

// client is the closed loop at the front: it keeps a number of requests
// outstanding and checks their answers. What is below mu is shared with the
// decode loops, which bring each token as they emit it; all other fields but the
// mailbox belong to the client loop.
type client struct {
	rt     *Runtime
	in     *mailbox[clientItem]
	want   int
	next   event.ReqID
	left   int // requests still to start; -1 without end
	vain   int // requests in a row that could not begin
	abort  []chan struct{}
	closed bool

	mu   sync.Mutex
	open map[event.ReqID]*request // changed by the client loop only
}

func (c *client) loop(ctx context.Context) {
	var box []clientItem
	c.fill()
	for {
		box = c.in.take(box)
		for i := range box {
			c.handle(&box[i])
			box[i] = clientItem{}
		}
		c.fill()
		select {
		case <-ctx.Done():
			return
		case <-c.in.note:
		}
	}
}

func (c *client) handle(it *clientItem) {
	switch it.op {
	case opConcurrency:
		c.want = it.want
		return
	case opCancel:
		if _, ok := c.open[it.req]; ok {
			c.tell(&event.Event{Kind: event.Cancel, Req: it.req})
		}
		return
	case opAbort:
		c.left = 0
		c.closed = true
		c.abort = append(c.abort, it.reply)
		for _, id := range slices.Sorted(maps.Keys(c.open)) {
			c.tell(&event.Event{Kind: event.Cancel, Req: id})
		}
		c.finishIfIdle()
		return
	}
	switch it.cmd.Kind {
	case event.Finish:
		c.finished(it.cmd, it.cmd.Reason)
		c.vain = 0
	case event.Reject:
		c.finished(it.cmd, event.ReasonError)
		c.inVain(it.cmd.Text)
	}
}

func (c *client) tell(ev *event.Event) {
	c.rt.subs[event.Front].in.put(item{ev: ev})
}

// fill starts requests until as many are outstanding as wanted.
func (c *client) fill() {
	for !c.closed && len(c.open) < c.want && c.left != 0 {
		task, ok := c.rt.cfg.Source.Next()
		if !ok {
			c.left = 0
			break
		}
		if c.left > 0 {
			c.left--
		}
		c.start(task)
	}
	c.finishIfIdle()
}

// maxVain is how many requests in a row may fail to begin before an endless
// workload ends: each makes room for the next at once, so they would fill the
// tape as fast as the machine can.
const maxVain = 32

// inVain counts a request that could not begin, and why.
func (c *client) inVain(why string) {
	if c.vain++; c.vain == maxVain && c.left < 0 {
		c.left = 0
		c.rt.message(tape.Error, fmt.Sprintf("%d requests in a row could not begin, so no more are started; the last: %s", maxVain, why))
	}
}

func (c *client) start(task workload.Task) {
	id := c.next
	c.next++
	req := tape.Request{Req: id, Task: task.ID, Question: task.Question, Answer: task.Answer, HasAnswer: task.HasAnswer}
	c.rt.host(event.Front, &req)
	fail := func(err error) {
		c.rt.host(event.Front, &tape.Result{Req: id, Task: task.ID, Reason: event.ReasonError.String(), Text: err.Error()})
		c.inVain(err.Error())
	}
	prompt, err := c.rt.cfg.Prompt(task.Question)
	if err != nil {
		fail(err)
		return
	}
	room := c.rt.cfg.Context - len(prompt)
	if room < 1 {
		fail(fmt.Errorf("the prompt has %d tokens, the models hold %d positions; shorten the question", len(prompt), c.rt.cfg.Context))
		return
	}
	stage, err := text.New(len(prompt), c.rt.cfg.Stops)
	if err != nil {
		fail(err)
		return
	}
	c.mu.Lock()
	c.open[id] = &request{task: task, prompt: len(prompt), stage: stage}
	c.mu.Unlock()
	c.tell(&event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{
		Prompt: prompt, MaxTokens: min(room, c.rt.cfg.MaxTokens), EOS: c.rt.cfg.EOS, Sampling: c.rt.cfg.Sampling,
	}})
}

// emitted takes a token into its request's text; the decode loop that emits it
// calls. A stop string is thus known before that loop passes anything on: the
// front hears of it ahead of whatever the request does afterwards, so where a
// request stops does not depend on how far its writers have run on.
func (c *client) emitted(cmd *event.Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.open[cmd.Req]
	if r == nil {
		return
	}
	b, special := c.rt.cfg.TokenBytes(cmd.Token)
	out, err := r.stage.Push(cmd.Pos, b, special)
	if err != nil {
		c.rt.message(tape.Error, err.Error())
		return
	}
	r.text = append(r.text, out.Text...)
	if out.Stop != nil {
		c.tell(&event.Event{Kind: event.Stop, Req: cmd.Req, Pos: out.Stop.Pos})
	}
}

var flushReason = [...]text.Reason{
	event.ReasonStop:    text.ReasonStop,
	event.ReasonLength:  text.ReasonLength,
	event.ReasonAborted: text.ReasonAbort,
	event.ReasonError:   text.ReasonAbort,
}

func (c *client) finished(cmd *event.Command, reason event.Reason) {
	c.mu.Lock()
	r := c.open[cmd.Req]
	delete(c.open, cmd.Req)
	c.mu.Unlock()
	if r == nil {
		return
	}
	r.text = append(r.text, r.stage.Flush(flushReason[reason]).Text...)
	res := &tape.Result{Req: cmd.Req, Task: r.task.ID, Reason: reason.String(), Tokens: max(0, cmd.N-r.prompt), Text: cmd.Text}
	if reason == event.ReasonStop || reason == event.ReasonLength {
		got, found := workload.Extract(string(r.text))
		res.Answer = got
		if r.task.HasAnswer {
			res.Checked = true
			res.Correct = found && workload.Correct(got, r.task.Answer)
		}
	}
	c.rt.host(event.Front, res)
	c.finishIfIdle()
}

// finishIfIdle reports that nothing is outstanding and nothing will come.
func (c *client) finishIfIdle() {
	if c.left != 0 || len(c.open) > 0 {
		return
	}
	for _, reply := range c.abort {
		close(reply)
	}
	c.abort = nil
	c.rt.doneOnce.Do(func() { close(c.rt.done) })
}
