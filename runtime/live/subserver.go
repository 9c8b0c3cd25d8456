package live

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
)

// item is what a decode loop finds in its mailbox: a fact for the core, the
// result of the running step, a router to swap to, or the wish to hear when it
// has nothing more to do.
type item struct {
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
}

// outbound is what an inter-model loop moves: a message to one peer, or to all of
// them a piece of news or the wish to drain.
type outbound struct {
	to    event.Peer
	peer  *event.PeerReq
	news  event.Event
	drain *sync.WaitGroup
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

const recentRows = 128

// decode is the decode loop: deliver everything due, then let the core start a
// batch if its policy says so.
func (s *subserver) decode(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var box []item
	for {
		box = s.in.take(box)
		for i := range box {
			s.handle(&box[i])
			box[i] = item{}
		}
		if s.core.Running() == nil && !s.rt.paused.Load() {
			s.step(&event.Event{Kind: event.Dispatch})
		}
		s.flush()
		s.drained()

		var wake <-chan time.Time
		if s.wakeAt > 0 {
			timer.Reset(time.Duration(s.wakeAt - s.rt.Now()))
			wake = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-s.in.note:
		case <-wake:
			gen := s.wakeGen
			s.wakeAt = 0
			s.step(&event.Event{Kind: event.Wake, Gen: gen})
		}
	}
}

func (s *subserver) handle(it *item) {
	switch {
	case it.swap != nil:
		s.takeOver(it.swap)
	case it.done != nil:
		s.finishStep(it.done)
	case it.drain != nil:
		s.drain = it.drain
	default:
		if it.ev.Kind == event.PeerIn {
			it.ev.Verdict = s.receive(it.ev.Peer)
		}
		s.step(it.ev)
	}
}

func (s *subserver) receive(msg *event.PeerReq) event.Verdict {
	if msg.Status != event.New && msg.Status != event.Alive {
		return event.Verdict{}
	}
	var held []event.Token
	if v, ok := s.core.View(msg.ID); ok {
		held = v.Tokens
	}
	return s.vm.Receive(msg, held)
}

func (s *subserver) takeOver(sw *swap) {
	if err := s.vm.Swap(sw.program); err != nil {
		s.rt.message(tape.Error, "router "+sw.program.File+" could not start on "+event.Role(s.self, s.rt.n)+": "+err.Error())
		return
	}
	p := sw.program
	s.rt.host(s.self, &tape.Router{Phase: tape.RouterSwapped, File: p.File, Hash: p.Hash})
	if sw.left.Add(-1) == 0 {
		s.rt.host(event.None, &tape.Router{Phase: tape.RouterLive, File: p.File, Hash: p.Hash})
	}
}

// finishStep asks the router about every row and states the step's result.
func (s *subserver) finishStep(d *stepOut) {
	res := &event.StepResult{Batch: d.batch.ID, ExecNs: d.execNs}
	if d.err == nil {
		d.err = answered(d)
	}
	if d.err != nil {
		res.Err = d.err.Error()
		s.step(&event.Event{Kind: event.StepDone, Step: res})
		return
	}
	s.measure(d)
	t0 := time.Now()
	res.Rows = make([]event.RowResult, 0, len(d.outs))
	k := 0
	for i := range d.batch.Rows {
		row := &d.batch.Rows[i]
		if !row.Sample {
			continue
		}
		res.Rows = append(res.Rows, s.route(row, &d.outs[k]))
		k++
	}
	res.RouteNs = int64(time.Since(t0))
	s.step(&event.Event{Kind: event.StepDone, Step: res})
}

// answered says what is wrong with a step whose outputs are not one for each row
// that samples.
func answered(d *stepOut) error {
	want := 0
	for i := range d.batch.Rows {
		if d.batch.Rows[i].Sample {
			want++
		}
	}
	if len(d.outs) != want {
		return fmt.Errorf("the runner answered %d of %d rows", len(d.outs), want)
	}
	return nil
}

func (s *subserver) route(row *event.Row, out *event.Output) event.RowResult {
	pos := row.Start + len(row.Tokens)
	in := scripting.Row{
		Req: row.Req, Output: out, Pos: pos, PromptLen: row.PromptLen,
		Step: pos - row.PromptLen,
	}
	if v, ok := s.core.View(row.Req); ok {
		in.State, in.Fields, in.Prefill = v.State, v.Fields, !v.Sampled
	}
	dec := s.vm.Route(&in)
	res := event.RowResult{
		Req: row.Req, Output: *out, Dest: dec.Dest, Action: dec.Action,
		State: dec.State, Fault: dec.Fault, Router: s.vm.Program().Hash,
	}
	if dec.Dest != s.self {
		budget, fields, fault := s.vm.Send(&in, dec.Dest)
		res.Budget, res.Fields = budget, fields
		if res.Fault == "" {
			res.Fault = fault
		}
	}
	s.remember(&in)
	return res
}

func (s *subserver) remember(row *scripting.Row) {
	s.recentMu.Lock()
	if len(s.recent) < recentRows {
		s.recent = append(s.recent, *row)
	} else {
		s.recent[s.recentN%recentRows] = *row
	}
	s.recentN++
	s.recentMu.Unlock()
}

// measure keeps the mean decode step, from which the guard W is set. Steps with
// prefill rows are left out: W is twice the slowest decode step.
func (s *subserver) measure(d *stepOut) {
	for i := range d.batch.Rows {
		if d.batch.Rows[i].Prefill {
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

// step states one fact to the core, records it with the orders it gave, and
// carries them out. A Dispatch that started nothing changed nothing and is not
// recorded.
func (s *subserver) step(ev *event.Event) {
	ev.At = s.rt.Now()
	s.cmds = s.core.Step(ev, s.cmds[:0])
	if ev.Kind == event.Dispatch && len(s.cmds) == 0 {
		return
	}
	cmds := make([]event.Command, len(s.cmds))
	copy(cmds, s.cmds)
	s.recs = append(s.recs[:0], tape.Record{At: ev.At, Core: s.self, Kind: tape.KindEvent, Event: ev})
	for i := range cmds {
		s.recs = append(s.recs, tape.Record{At: ev.At, Core: s.self, Kind: tape.KindCommand, Command: &cmds[i]})
	}
	if ld := s.core.Load(); ld != s.lastLoad {
		s.lastLoad = ld
		s.recs = append(s.recs, tape.Record{At: ev.At, Core: s.self, Kind: tape.KindLoad, Load: &ld})
		s.publish(&ld, ev.At)
	}
	s.rt.tape.Append(s.recs...)
	for i := range cmds {
		s.obey(&cmds[i])
	}
}

func (s *subserver) publish(ld *tape.Load, at int64) {
	s.load.ready.Store(int32(ld.Ready))
	s.load.batch.Store(int32(ld.Running))
	s.load.at.Store(at)
}

func (s *subserver) obey(c *event.Command) {
	switch c.Kind {
	case event.RunBatch:
		s.jobs.put(work{free: s.frees, batch: c.Batch})
		s.frees = nil
	case event.SendPeer:
		s.out.put(outbound{to: c.To, peer: c.Peer})
	case event.TellActive:
		s.out.put(outbound{to: event.None, news: event.Event{Kind: event.Active, N: c.N}})
	case event.TellBusy:
		s.out.put(outbound{to: event.None, news: event.Event{Kind: event.Busy, From: s.self, N: c.N, Until: c.At}})
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

// flush passes on frees that no batch took along.
func (s *subserver) flush() {
	if len(s.frees) > 0 {
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
				t0 := time.Now()
				outs, err := s.run.Run(ctx, b, make([]event.Output, 0, len(b.Rows)))
				s.in.put(item{done: &stepOut{batch: b, outs: outs, execNs: int64(time.Since(t0)), err: err}})
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
			o := box[i]
			if o.peer != nil {
				s.rt.subs[o.to].in.put(item{ev: &event.Event{Kind: event.PeerIn, Peer: o.peer}})
			} else {
				for p := range s.rt.subs {
					if event.Peer(p) == s.self {
						continue
					}
					it := item{drain: o.drain}
					if o.drain == nil {
						ev := o.news
						it.ev = &ev
					}
					s.rt.subs[p].in.put(it)
				}
			}
			box[i] = outbound{}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.out.note:
		}
	}
}
