package live

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/text"
	"tokenrouter/runtime/workload"
)

// request is what the client knows of an unfinished request.
type request struct {
	task   workload.Task
	prompt int // tokens
	stage  *text.Stage
	text   []byte
	output []event.Token // new tokens by position, for a source with next turns
}

// book is what the clients know: which requests are outstanding, what came back
// and what is to be asked next. It has no clock, goroutine or lock, so the client
// loop and virtual time keep the same one; whoever holds it calls one method at
// a time and says what time it is by what host and tell do.
type book struct {
	cfg    *Config
	host   func(event.Peer, tape.Host) // appends a record, now
	tell   func(*event.Event)          // states a fact to the front, now
	follow workload.Follower           // nil where the source has no next turns

	open    map[event.ReqID]*request
	follows []workload.Task // next turns that wait for their start
	want    int             // requests to keep outstanding in the closed loop
	next    event.ReqID
	left    int  // requests still to start; -1 without end
	dry     bool // no more new tasks; next turns may come
	vain    int  // requests in a row that could not begin
	rate    Offered
	said    bool     // the rate was reported
	faults  []string // of the checker, that were told
}

func newBook(cfg *Config, host func(event.Peer, tape.Host), tell func(*event.Event)) *book {
	b := &book{cfg: cfg, host: host, tell: tell, open: map[event.ReqID]*request{}, want: cfg.Concurrency, next: 1, left: cfg.Limit}
	if b.left == 0 {
		b.left = -1
	}
	b.follow, _ = cfg.Source.(workload.Follower)
	return b
}

// begin records how requests come.
func (b *book) begin() {
	if a := b.cfg.Arrivals; a != nil {
		b.rate.Requested = a.Rate()
		_, b.rate.trace = a.(*workload.Trace)
		b.host(event.None, &tape.Setting{Setting: "arrivals", New: a.String()})
	}
}

// setWant sets how many requests the closed loop keeps outstanding.
func (b *book) setWant(n int) { b.want = n }

// fill starts what may start now: next turns first, which their clients send at
// once, and in the closed loop new tasks, until as many requests are outstanding
// as wanted.
func (b *book) fill() {
	closed := b.cfg.Arrivals == nil
	for b.left != 0 && (!closed || len(b.open) < b.want) {
		switch {
		case len(b.follows) > 0:
			task := b.follows[0]
			b.follows[0] = workload.Task{}
			b.follows = b.follows[1:]
			b.start(task)
		case closed && !b.dry:
			b.fresh()
		default:
			return
		}
	}
}

// maxOutstanding bounds what the open loop may leave waiting at the front. Each
// holds its prompt, and a cluster that is this far behind never catches up.
const maxOutstanding = 1 << 16

// arrive starts a new task in the open loop, offset after the first moment of
// the run and late by so much on the machine's account.
func (b *book) arrive(offset, late time.Duration) {
	if b.full() {
		return
	}
	b.rate.add(offset, late)
	b.fresh()
	if b.full() {
		b.report()
	}
}

// full tells that no new task is started any more.
func (b *book) full() bool { return b.left == 0 || b.dry }

// noMore says that nothing arrives any more.
func (b *book) noMore() {
	b.dry = true
	b.report()
}

// fresh starts the next task of the source.
func (b *book) fresh() {
	task, ok := b.cfg.Source.Next()
	if !ok {
		b.dry = true
		return
	}
	b.start(task)
}

// maxVain is how many requests in a row may fail to begin before an endless
// workload ends: each makes room for the next at once, so they would fill the
// tape as fast as the machine can.
const maxVain = 32

// inVain counts a request that could not begin, and why.
func (b *book) inVain(why string) {
	if b.vain++; b.vain == maxVain && b.left < 0 {
		b.left = 0
		b.message(tape.Error, fmt.Sprintf("%d requests in a row could not begin, so no more are started; the last: %s", maxVain, why))
		b.report()
	}
}

func (b *book) message(l tape.Level, text string) {
	b.host(event.None, &tape.Message{Level: l, Text: text})
}

func (b *book) start(task workload.Task) {
	if b.left > 0 {
		b.left--
	}
	id := b.next
	b.next++
	b.host(event.Front, requested(id, &task))
	arrival, stage, err := b.prepare(&task)
	if err != nil {
		b.host(event.Front, &tape.Result{Req: id, Task: task.ID, Reason: event.ReasonError.String(), Text: err.Error()})
		b.inVain(err.Error())
		return
	}
	b.open[id] = &request{task: task, prompt: len(arrival.Prompt), stage: stage}
	b.tell(&event.Event{Kind: event.Arrive, Req: id, Arrival: arrival})
}

// prepare turns a task into what the front is told.
func (b *book) prepare(task *workload.Task) (*event.Arrival, *text.Stage, error) {
	if len(b.open) >= maxOutstanding {
		return nil, nil, fmt.Errorf("%d requests are outstanding already; ask for a lower rate", len(b.open))
	}
	prompt := task.Prompt
	if prompt == nil {
		var err error
		if prompt, err = b.cfg.Prompt(task.Question); err != nil {
			return nil, nil, err
		}
	}
	room := b.cfg.Context - len(prompt)
	if room < 1 {
		return nil, nil, fmt.Errorf("the prompt has %d tokens, and models and KV pool hold %d positions; shorten the question, or enlarge the pool if it is the smaller of the two", len(prompt), b.cfg.Context)
	}
	stage, err := text.New(len(prompt), b.cfg.Stops)
	if err != nil {
		return nil, nil, err
	}
	limit := b.cfg.MaxTokens
	if task.MaxTokens > 0 {
		limit = task.MaxTokens
	}
	return &event.Arrival{Prompt: prompt, MaxTokens: min(room, limit), EOS: b.cfg.EOS, Sampling: b.cfg.Sampling}, stage, nil
}

// emitted takes a token into its request's text and tells the front of a stop
// string that it completes. Tokens may come in any order of positions.
func (b *book) emitted(cmd *event.Command) {
	r := b.open[cmd.Req]
	if r == nil {
		return
	}
	raw, special := b.cfg.TokenBytes(cmd.Token)
	out, err := r.stage.Push(cmd.Pos, raw, special)
	if err != nil {
		b.message(tape.Error, err.Error())
		return
	}
	if k := cmd.Pos - r.prompt; b.follow != nil && k >= 0 {
		for len(r.output) <= k {
			r.output = append(r.output, 0)
		}
		r.output[k] = cmd.Token
	}
	r.text = append(r.text, out.Text...)
	if out.Stop != nil {
		b.tell(&event.Event{Kind: event.Stop, Req: cmd.Req, Pos: out.Stop.Pos})
	}
}

// stopOf says where the text of a request ends if tokens, the first of which has
// position first, come next and are the last: behind the token in which a stop
// string begins, 0 if they complete none.
func (b *book) stopOf(id event.ReqID, first int, tokens []event.Token) int {
	r := b.open[id]
	if r == nil {
		return 0
	}
	ahead := r.stage.Clone()
	for i, t := range tokens {
		raw, special := b.cfg.TokenBytes(t)
		if out, err := ahead.Push(first+i, raw, special); err == nil && out.Stop != nil {
			return out.Stop.Pos + 1
		}
	}
	return 0
}

var flushReason = [...]text.Reason{
	event.ReasonStop:    text.ReasonStop,
	event.ReasonLength:  text.ReasonLength,
	event.ReasonAborted: text.ReasonAbort,
	event.ReasonError:   text.ReasonAbort,
}

// ended takes the end of a request as the front orders it: Finish or Reject.
func (b *book) ended(cmd *event.Command) {
	reason := cmd.Reason
	if cmd.Kind == event.Reject {
		reason = event.ReasonError
	}
	if r := b.open[cmd.Req]; r != nil {
		delete(b.open, cmd.Req)
		b.close(r, cmd, reason)
	}
	if cmd.Kind == event.Reject {
		b.inVain(cmd.Text)
	} else {
		b.vain = 0
	}
}

func (b *book) close(r *request, cmd *event.Command, reason event.Reason) {
	r.text = append(r.text, r.stage.Flush(flushReason[reason]).Text...)
	n := max(0, cmd.N-r.prompt)
	res := &tape.Result{Req: cmd.Req, Task: r.task.ID, Reason: reason.String(), Tokens: n, Text: cmd.Text}
	well := reason == event.ReasonStop || reason == event.ReasonLength
	if well {
		b.judge(r, res)
	}
	b.host(event.Front, res)
	if well && b.follow != nil && b.left != 0 {
		if task, ok := b.follow.Follow(r.task, r.output[:min(n, len(r.output))]); ok {
			b.follows = append(b.follows, task)
		}
	}
}

func requested(id event.ReqID, t *workload.Task) *tape.Request {
	req := &tape.Request{Req: id, Task: t.ID, Question: t.Question, Answer: t.Answer, HasAnswer: t.HasAnswer, Family: t.Family}
	if t.Check != nil {
		req.Check = t.Check.String()
	}
	return req
}

// maxSaid is how many different faults of the checker are told.
const maxSaid = 8

// judge says whether the answer of a request is right. A fault of the checker
// counts as wrong, and each is told once.
func (b *book) judge(r *request, res *tape.Result) {
	res.Answer, res.Correct, res.Checked = r.task.Judge(string(r.text))
	if b.cfg.Check == nil {
		return
	}
	right, fault := b.cfg.Check(r.task, string(r.text))
	res.Correct, res.Checked = right && fault == "", true
	if fault != "" && len(b.faults) < maxSaid && !slices.Contains(b.faults, fault) {
		b.faults = append(b.faults, fault)
		b.message(tape.Error, "the answer of task "+r.task.ID+" counts as wrong: "+fault)
	}
}

// cancel lets the front end a request as aborted.
func (b *book) cancel(id event.ReqID) {
	if r, ok := b.open[id]; ok {
		b.tell(&event.Event{Kind: event.Cancel, Req: id, Pos: r.stage.Next()})
	}
}

// abort starts no more and lets the front end all that are outstanding.
func (b *book) abort() {
	b.left, b.dry = 0, true
	b.follows = nil
	b.report()
	for _, id := range slices.Sorted(maps.Keys(b.open)) {
		b.cancel(id)
	}
}

// idle tells that nothing is outstanding and nothing will come.
func (b *book) idle() bool {
	return len(b.open) == 0 && (b.left == 0 || b.dry && len(b.follows) == 0)
}
