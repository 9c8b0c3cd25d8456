package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
)

// virtual is the driver of the clock sim: one goroutine advances a simulation of
// the cores, whose source are the runners and routers of the session, and does
// at moments of virtual time what the loops of the other clocks do beside one
// another. Wishes from outside come through the same mailboxes, which here share
// one note; they take effect at the present virtual time.
//
// Everything but the moments of those wishes is a function of the Config, so
// without wishes the tape is the same, byte for byte, whatever the machine does.
type virtual struct {
	rt  *Runtime
	sim *sim.Sim
	ctx context.Context // the driver's, for the runners

	now  atomic.Int64
	note chan struct{} // something is in a mailbox, or a setting has changed
	pace pace

	planAt  int64    // when the planner looks next
	arrival schedule // open loop: that is due next
	coming  bool     // there is one
	ended   bool     // the horizon is reached
	over    bool     // no request is outstanding and none will come
	closing bool     // Close has asked for the end
	drain   *sync.WaitGroup

	items []item
	wants []clientItem
	turns int // of the loop since it last looked at the tape's readers
}

// newVirtual builds the simulation and gives the subservers its cores.
func newVirtual(r *Runtime, cores []sched.Config) (*virtual, error) {
	v := &virtual{rt: r, ctx: context.Background(), note: newNote(), planAt: int64(planEvery)}
	p := r.cfg.Profile
	cfg := sim.Config{
		Cluster: cores, Policy: r.ctl.policy, Seed: r.cfg.Sampling.Seed,
		Step: p.Step, Overhead: p.Overhead, Latency: int64(p.Latency()),
		Jitter: r.cfg.Jitter, Contention: r.cfg.Contention,
		Source: v, Receive: v.receive, Tap: v.tap,
	}
	if p.Stalling() {
		cfg.Stall = p.Stall
	}
	var err error
	v.sim, err = sim.New(cfg)
	return v, err
}

// listen makes every mailbox write its notes to the driver.
func (v *virtual) listen() {
	for _, s := range v.rt.subs {
		s.in.note = v.note
	}
	v.rt.client.in.note = v.note
}

// due is when something happens next; false if nothing does by itself. When all is
// over, timers that are still out are nothing; what was told at the end is heard.
func (v *virtual) due() (at int64, ok bool) {
	at, ok = v.sim.Next()
	if v.hurried() {
		return at, ok && (at <= v.sim.Now() || !(v.over && v.sim.Fabric().Idle()))
	}
	if v.coming && (!ok || v.arrival.due < at) {
		at, ok = v.arrival.due, true
	}
	if ok {
		at = min(at, v.planAt)
	}
	return at, ok
}

// hurried says whether all that is left is to come to an end: then there are no
// arrivals, plans and horizon any more, and no rhythm to keep.
func (v *virtual) hurried() bool { return v.closing || v.over }

// drive is the driver's loop: one moment of virtual time after the other.
func (v *virtual) drive(ctx context.Context) {
	v.ctx = ctx
	v.begin()
	for noted := true; ctx.Err() == nil; {
		if noted || v.noted() {
			v.wishes()
		}
		noted = false
		v.followed(ctx)
		at, ok := v.due()
		hurried := v.hurried()
		switch h := int64(v.rt.cfg.Horizon); {
		case hurried && !ok:
			v.drained()
			noted = v.wait(ctx, 0)
		case hurried:
			v.advance(at)
		case h > 0 && (v.ended || !ok || at > h):
			noted = v.reach(ctx, h)
		case ok && at <= v.sim.Now() && v.rt.paused.Load():
			v.advance(at) // what a person does while time stands still
		case !ok || v.rt.paused.Load():
			v.pace.stop()
			noted = v.wait(ctx, 0)
		default:
			noted = v.step(ctx, at)
		}
	}
}

// step lets happen what is due at a time, or waits for that on the wall clock.
func (v *virtual) step(ctx context.Context, at int64) (noted bool) {
	rest := v.pace.until(at, v.sim.Now(), v.rt.cfg.Pacer.Speed())
	if rest <= 0 {
		v.advance(at)
		return false
	}
	noted = v.wait(ctx, min(rest, shownEvery))
	v.advance(min(at-1, v.pace.passed(v.sim.Now())))
	return noted
}

// reach lets the time come to the horizon, where it stands still. Requests that
// are under way end when the runtime is closed.
func (v *virtual) reach(ctx context.Context, horizon int64) (noted bool) {
	if v.ended {
		return v.wait(ctx, 0)
	}
	if v.sim.Now() < horizon && v.rt.paused.Load() {
		v.pace.stop()
		return v.wait(ctx, 0)
	}
	if noted = v.step(ctx, horizon); v.sim.Now() == horizon {
		v.ended = true
		v.rt.end()
	}
	return noted
}

// begin starts the first requests.
func (v *virtual) begin() {
	c := v.rt.client
	c.keep((*book).begin)
	if a := v.rt.cfg.Arrivals; a != nil {
		v.arrival = *newSchedule(a, 0)
		if v.coming = v.arrival.advance(1); !v.coming {
			c.keep((*book).noMore)
		}
	}
	v.fill()
}

// fill starts the requests that may start, and says when the run is at its end.
func (v *virtual) fill() {
	c := v.rt.client
	c.keep(func(b *book) {
		b.fill()
		v.over = b.idle()
	})
	c.finish()
}

// advance makes it time at. What arrives then does so before anything else that
// is due; the planner looks when everything else is done.
func (v *virtual) advance(at int64) {
	if at < v.sim.Now() {
		return
	}
	hurried := v.hurried()
	for !hurried && v.coming && v.arrival.due <= at {
		now := v.arrival
		v.coming = v.arrival.advance(1)
		last := !v.coming
		v.sim.At(now.due, func() { v.arrive(now.offset, last) })
	}
	v.sim.Advance(at)
	v.now.Store(at)
	if !hurried && at >= v.planAt {
		v.planAt = at + int64(planEvery)
		v.rt.planner.read()
		v.rt.planner.look()
	}
}

// arrive starts the request whose arrival is due.
func (v *virtual) arrive(offset time.Duration, last bool) {
	v.now.Store(v.sim.Now())
	v.rt.client.keep(func(b *book) {
		b.arrive(offset, 0)
		if last {
			b.noMore()
		}
	})
	v.fill()
}

// noted says whether something has been noted since it was last asked.
func (v *virtual) noted() bool {
	select {
	case <-v.note:
		return true
	default:
		return false
	}
}

// wait waits for a note, for a time on the wall clock if that is not 0, or for
// the end; it says whether there was a note.
func (v *virtual) wait(ctx context.Context, d time.Duration) (noted bool) {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-v.note:
		return true
	case <-over:
	}
	return false
}

// wishes does what is asked for in the mailboxes.
func (v *virtual) wishes() {
	for _, s := range v.rt.subs {
		v.items = s.in.take(v.items)
		for i := range v.items {
			switch it := &v.items[i]; {
			case it.swap != nil:
				s.takeOver(it.swap)
			case it.drain != nil:
				v.drain = it.drain
			default:
				v.sim.Tell(s.self, *it.ev)
			}
			v.items[i] = item{}
		}
	}
	v.wants = v.rt.client.in.take(v.wants)
	for i := range v.wants {
		v.closing = v.closing || v.wants[i].op == opAbort
		v.rt.client.handle(&v.wants[i])
		v.wants[i] = clientItem{}
	}
	if len(v.wants) > 0 {
		v.fill()
	}
	select {
	case <-v.rt.planner.wish:
		if !v.hurried() && !v.ended {
			v.rt.planner.read()
			v.rt.planner.look()
		}
	default:
	}
}

// drained tells whoever waits for it that nothing runs any more.
func (v *virtual) drained() {
	if v.drain == nil {
		return
	}
	v.drain.Add(-v.rt.n)
	v.drain = nil
}

// tap takes what a core was told and ordered.
func (v *virtual) tap(p event.Peer, ev *event.Event, cmds []event.Command) {
	v.now.Store(ev.At)
	s, c := v.rt.subs[p], v.rt.client
	s.record(ev, cmds)
	over := false
	for i := range cmds {
		switch cmd := &cmds[i]; cmd.Kind {
		case event.RunBatch:
			// Its result is known at once and stated when its time is over.
			s.outs, s.runErr = s.run.Run(v.ctx, cmd.Batch, make([]event.Output, 0, len(cmd.Batch.Rows)))
		case event.Free, event.Preempt:
			if s.core.Running() == nil {
				s.run.Free(cmd.Req)
			} else {
				s.frees = append(s.frees, cmd.Req) // as flush does on the other clocks
			}
		case event.Emit:
			c.emitted(cmd)
		case event.Reject, event.Finish:
			c.handle(&clientItem{cmd: cmd})
			over = true
		}
	}
	if over {
		v.fill()
	}
}

// Answer implements sim.Source.
func (v *virtual) Answer(at int64, p event.Peer, _ *sched.Core, b *event.Batch, step *event.StepResult) {
	v.now.Store(at)
	s := v.rt.subs[p]
	s.answer(step, b, s.outs, s.runErr)
	s.outs, s.runErr = nil, nil
	for _, id := range s.frees {
		s.run.Free(id)
	}
	s.frees = s.frees[:0]
}

func (v *virtual) receive(p event.Peer, m *event.PeerReq, _ sched.View) event.Verdict {
	v.now.Store(v.sim.Now())
	return v.rt.subs[p].receive(m)
}

// followed waits for readers of the tape that have fallen far behind: unlike any
// other clock, this one may write faster than all of them read.
func (v *virtual) followed(ctx context.Context) {
	if v.turns++; v.turns < 64 || v.closing {
		return
	}
	v.turns = 0
	for v.rt.tape.Behind() > mostBehind {
		v.rt.planner.read()
		if v.rt.tape.Behind() <= mostBehind {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-v.rt.tape.Room():
		case <-v.note:
			v.wishes()
			if v.closing {
				return
			}
		}
	}
}

// mostBehind is how many records the slowest reader of the tape may lack.
const mostBehind = 1 << 18

// shownEvery is how often the time moves on where nothing happens meanwhile.
const shownEvery = 33 * time.Millisecond
