package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
)

// item is what a decode loop finds in its mailbox: a fact for the core, the
// result of the running step, a router to swap to, or the wish to hear when it
// has nothing more to do. A fact is due at a time of the session, 0 when it is
// found.
type item struct {
	due   int64
	noted bool // with pending.comes
	ev    *event.Event
	done  *stepOut
	swap  *swap
	drain *sync.WaitGroup
}

type stepOut struct {
	batch  *event.Batch
	outs   []event.Output
	execNs int64
	err    error
}

// swap asks a decode loop to take over a router before its next route.
type swap struct {
	program *scripting.Program
	left    *atomic.Int32 // subservers that have not swapped yet
}

// work is what a runner goroutine is asked to do: drop KV, then run a batch.
type work struct {
	free  []event.ReqID
	batch *event.Batch
	at    int64 // when the core ordered it
}

// outbound is what an inter-model loop moves: a message to one peer, or to all of
// them a piece of news or the wish to drain. A mark goes to nobody.
type outbound struct {
	at    int64 // when the core sent it
	to    event.Peer
	peer  *event.PeerReq
	news  event.Event
	drain *sync.WaitGroup
	mark  int64 // end of the step whose messages are all delivered when this is
}

// load is what a subserver publishes about itself for the routers of others.
type load struct {
	ready, batch atomic.Int32
	at           atomic.Int64
}

// subserver is one model with its core, router and runner.
type subserver struct {
	rt   *Runtime
	self event.Peer
	core *sched.Core
	vm   *scripting.VM
	run  runner.Runner

	in   *mailbox[item]
	jobs *mailbox[work]
	out  *mailbox[outbound]

	load   load
	stepNs atomic.Int64 // EWMA of the decode step, 0 = none yet

	scorer scripting.Scorer
	scored []scripting.StepRow // rows of the step that is routed

	outs   []event.Output // in virtual time: of the running batch
	runErr error

	queue   []item // found in the mailbox and not handled yet
	last    int64  // when the last fact was stated
	stated  bool   // one was since the core was last asked for a batch
	until   int64  // it waits for who is late, at most so long; 0: for nobody
	pending pending

	drain    *sync.WaitGroup // to be told once, when no batch runs
	lastLoad tape.Load
	frees    []event.ReqID
	cmds     []event.Command
	recs     []tape.Record
	wakeAt   int64
	wakeGen  uint64

	recentMu sync.Mutex
	recent   []scripting.Row // ring of the last routed rows, for dry runs
	recentN  int
}

// decode is the decode loop: deliver everything due, then let the core start a
// batch if its policy says so.
func (s *subserver) decode(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var box []item
	for {
		box = s.in.take(box)
		s.queue = append(s.queue, box...)
		clear(box)
		s.hear()
		s.dispatch()
		s.flush()
		s.drained()

		var wake <-chan time.Time
		if at := s.alarm(); at > 0 {
			timer.Reset(time.Duration(at - s.rt.Now()))
			wake = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-s.in.note:
		case <-wake:
		}
	}
}

// alarm is when the decode loop has to look again, 0 for never: the core asked for
// it, or a peer is waited for.
func (s *subserver) alarm() int64 {
	if s.until > 0 && (s.wakeAt == 0 || s.wakeAt <= s.rt.Now() || s.until < s.wakeAt) {
		return s.until
	}
	return s.wakeAt
}

// dispatch lets the core start a batch, at the time of the last fact if there was
// one since it was last asked.
func (s *subserver) dispatch() {
	due := int64(0)
	if s.stated {
		due = s.last
	}
	if s.core.Running() == nil && !s.rt.paused.Load() {
		if s.awaits(due) {
			return
		}
		s.step(&event.Event{Kind: event.Dispatch}, due)
	}
	s.stated = false
	s.acted()
}

func (s *subserver) handle(it *item) {
	switch {
	case it.swap != nil:
		s.takeOver(it.swap)
	case it.done != nil:
		s.finishStep(it.done, it.due)
	case it.drain != nil:
		s.drain = it.drain
	default:
		if it.ev.Kind == event.PeerIn {
			it.ev.Verdict = s.receive(it.ev.Peer)
		}
		s.step(it.ev, it.due)
	}
}

// finishStep asks the router about every row and states the step's result.
func (s *subserver) finishStep(d *stepOut, due int64) {
	res := &event.StepResult{Batch: d.batch.ID, ExecNs: d.execNs}
	defer s.ended()
	t0 := time.Now()
	s.answer(res, d.batch, d.outs, d.err)
	if res.Err == "" {
		s.measure(d)
		res.RouteNs = int64(time.Since(t0))
	}
	s.step(&event.Event{Kind: event.StepDone, Step: res}, due)
}

// measure keeps the mean decode step, from which the guard W is set. Steps with
// prefill rows are left out: W is twice the slowest decode step. Under Resubmit
// they count, as a model whose every visit begins anew has no other ones.
func (s *subserver) measure(d *stepOut) {
	for i := range d.batch.Rows {
		if !s.rt.cfg.Core.Resubmit && !cost.Decodes(&d.batch.Rows[i]) {
			return
		}
	}
	old := s.stepNs.Load()
	if old == 0 {
		s.stepNs.Store(d.execNs)
		select {
		case s.rt.ctl.measured <- struct{}{}:
		default:
		}
		return
	}
	s.stepNs.Store(old + (d.execNs-old)/16)
}

// step states a fact that is due at a time to the core, records it with the orders
// it gave, and carries them out. A Dispatch that started nothing changed nothing
// and is not recorded.
func (s *subserver) step(ev *event.Event, due int64) {
	ev.At = s.date(due)
	s.stated = true
	s.cmds = s.core.Step(ev, s.cmds[:0])
	if ev.Kind == event.Dispatch && len(s.cmds) == 0 {
		return
	}
	cmds := make([]event.Command, len(s.cmds))
	copy(cmds, s.cmds)
	s.record(ev, cmds)
	for i := range cmds {
		s.obey(&cmds[i], ev.At)
	}
}

func (s *subserver) obey(c *event.Command, at int64) {
	switch c.Kind {
	case event.RunBatch:
		s.begins(c.Batch, at)
		s.jobs.put(work{free: s.frees, batch: c.Batch, at: at})
		s.frees = nil
	case event.SendPeer:
		s.out.put(outbound{at: at, to: c.To, peer: c.Peer})
	case event.TellActive:
		s.out.put(outbound{at: at, to: event.None, news: event.Event{Kind: event.Active, N: c.N}})
	case event.TellBusy:
		s.out.put(outbound{at: at, to: event.None, news: event.Event{Kind: event.Busy, From: s.self, N: c.N, Until: c.At}})
	case event.Emit:
		s.rt.client.emitted(c)
	case event.Reject, event.Finish:
		s.rt.client.in.put(clientItem{cmd: c})
	case event.Free, event.Preempt:
		s.frees = append(s.frees, c.Req)
	case event.WakeAt:
		s.wakeAt, s.wakeGen = c.At, c.Gen
	}
}

// flush passes on frees that no batch took along. While one runs they wait: until
// its rows are routed, heads read what the runner holds of its requests.
func (s *subserver) flush() {
	if len(s.frees) > 0 && s.core.Running() == nil {
		s.jobs.put(work{free: s.frees})
		s.frees = nil
	}
}

// drained tells whoever waits for it that no batch runs. The front passes the
// wish on behind the messages that end its requests, so that its peers have
// heard those first.
func (s *subserver) drained() {
	if s.drain == nil || s.core.Running() != nil {
		return
	}
	if s.self == event.Front {
		s.out.put(outbound{to: event.None, drain: s.drain})
	}
	s.drain.Done()
	s.drain = nil
}

// execute is the runner's goroutine: it has the model and nothing else.
func (s *subserver) execute(ctx context.Context) {
	var box []work
	for {
		box = s.jobs.take(box)
		for i := range box {
			for _, id := range box[i].free {
				s.run.Free(id)
			}
			if b := box[i].batch; b != nil {
				s.in.put(s.runStep(ctx, b, box[i].at))
			}
			box[i] = work{}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.jobs.note:
		}
	}
}

// carry is the inter-model loop: it delivers messages in the order in which the
// core gave them.
func (s *subserver) carry(ctx context.Context) {
	var box []outbound
	for {
		box = s.out.take(box)
		for i := range box {
			s.deliver(ctx, &box[i])
			box[i] = outbound{}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.out.note:
		}
	}
}

func (s *subserver) deliver(ctx context.Context, o *outbound) {
	if o.mark > 0 {
		s.delivered(o.mark)
		return
	}
	due := o.at
	if l := s.rt.cfg.Pacer.Latency(); l > 0 && o.drain == nil {
		due += int64(l)
		if s.rt.cfg.Pacer.Wait(ctx, s.rt.start.Add(time.Duration(due))) != nil {
			return
		}
	}
	if o.peer != nil {
		s.rt.subs[o.to].post(due, &event.Event{Kind: event.PeerIn, Peer: o.peer})
		return
	}
	for p := range s.rt.subs {
		if event.Peer(p) == s.self {
			continue
		}
		if o.drain != nil {
			s.rt.subs[p].in.put(item{drain: o.drain})
			continue
		}
		ev := o.news
		s.rt.subs[p].post(due, &ev)
	}
}
