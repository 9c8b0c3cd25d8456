package sim

import (
	"fmt"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
)

// Sim is one run. It belongs to one goroutine.
type Sim struct {
	cfg    Config
	policy *event.Policy
	fab    *fabric.Fabric
	jitter jitter
	queue  queue
	now    int64

	cores []coreState
	acts  acts
	next  event.ReqID // last id that a client sent
	begun bool
	busy  bool // an event is being handled
	vain  int  // of what is in the queue: timers, and ends that were moved or lost
	books books

	// Scratch of the path without a tap.
	cmds []event.Command
	rows []event.RowResult
	step event.StepResult
	sums cost.Batch

	kept kept
}

// coreState is what the driver keeps of one core.
type coreState struct {
	batch    *event.Batch // whose end is not stated yet, nil when idle
	run      uint64       // its number here, over all lives of the subserver
	started  int64        // when it started
	takes    int64        // ns, how long it executes; under contention known at its end
	end      uint64       // number of what is in the queue for it
	share    share        // how it gets on, under contention
	timer    uint64       // number of the last one it asked for, likewise
	gen      uint64       // by which the core knows it
	dispatch bool         // one is in the queue
}

// New prepares a run.
func New(cfg Config) (*Sim, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	fab, err := fabric.New(cfg.Cluster, cfg.Receive)
	if err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	s := &Sim{
		cfg:    cfg,
		policy: &cfg.Policy,
		fab:    fab,
		jitter: newJitter(cfg.Jitter),
		cores:  make([]coreState, fab.Len()),
	}
	s.books = newBooks(&s.cfg)
	return s, nil
}

// Run simulates to the end, that is to Until, or without one until every request
// is over, and returns what was measured.
func (s *Sim) Run() Result {
	if s.cfg.Until > 0 {
		s.Advance(s.cfg.Until)
		return s.Result()
	}
	s.begin()
	for s.more() {
		s.Step()
	}
	return s.Result()
}

// Advance simulates everything that is due up to time until, and makes it that
// time. It says whether anything can still happen by itself: with nothing but
// timers left and no request open, nothing can. A time that has passed changes
// nothing but what is due now.
func (s *Sim) Advance(until int64) (more bool) {
	s.begin()
	for h := s.queue.heap; len(h) > 0 && h[0].at <= until; h = s.queue.heap {
		s.Step()
	}
	s.now = max(s.now, until)
	return s.more()
}

// Next is when the next thing is due; ok is false where nothing is.
func (s *Sim) Next() (at int64, ok bool) {
	s.begin()
	for len(s.queue.heap) > 0 {
		if d := &s.queue.heap[0]; !s.stale(d) {
			return d.at, true
		}
		s.queue.take()
		s.vain--
	}
	return 0, false
}

// more says whether a run without an Until goes on.
func (s *Sim) more() bool {
	return len(s.queue.heap) > s.vain || len(s.queue.heap) > 0 && s.open() > 0
}

// open is how many requests have arrived and are not over.
func (s *Sim) open() int {
	k := s.fab.Core(event.Front).Counts()
	return k.Arrived - k.Finished - k.Cancelled - k.Rejected
}

// begin puts the policy in force and lets every client send.
func (s *Sim) begin() {
	if s.begun {
		return
	}
	s.begun = true
	for p := range s.cores {
		s.setPolicy(event.Peer(p))
	}
	for range s.cfg.Clients {
		s.queue.put(due{class: arrive})
	}
}

// Now is the virtual time in ns.
func (s *Sim) Now() int64 { return s.now }

// Fabric is the cluster, to look at.
func (s *Sim) Fabric() *fabric.Fabric { return s.fab }

// Step simulates the next thing that is due and nothing else of its time; where
// nothing is, it does nothing.
func (s *Sim) Step() {
	s.begin()
	if len(s.queue.heap) == 0 {
		return
	}
	d := s.queue.take()
	s.now = d.at
	if s.stale(&d) {
		s.vain--
		return
	}
	s.books.events++
	c := &s.cores[d.core]
	switch d.class {
	case control, told:
		s.act(d.id)
	case executed:
		s.executed(d.core, c)
	case stepDone:
		s.endStep(d.core, c)
	case deliver:
		s.deliver(&d)
	case arrive:
		s.send()
	case wake:
		s.vain--
		s.tell(d.core, event.Event{Kind: event.Wake, Gen: c.gen})
	case dispatch:
		c.dispatch = false
		s.tell(d.core, event.Event{Kind: event.Dispatch})
	}
}

// stale says whether d is of something that was moved, replaced or lost since it
// came into the queue.
func (s *Sim) stale(d *due) bool {
	switch d.class {
	case executed, stepDone:
		return d.id != s.cores[d.core].end
	case wake:
		return d.id != s.cores[d.core].timer
	}
	return false
}

// send lets a client send the next request, if any is left.
func (s *Sim) send() {
	if s.cfg.Requests > 0 && int(s.next) >= s.cfg.Requests {
		return
	}
	s.next++
	id := s.next
	length := longest
	if s.cfg.Length != nil {
		length = s.cfg.Length(id)
	}
	s.tell(event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{
		Prompt:    prompt(s.cfg.Seed, id, max(1, s.cfg.Prompt)),
		MaxTokens: length,
	}})
}

// endStep answers the batch that runs at core p.
func (s *Sim) endStep(p event.Peer, c *coreState) {
	b := c.batch
	c.batch = nil
	s.books.ended(p, s.now, b, c)
	step, rows := &s.step, s.rows
	if s.cfg.Tap != nil {
		step, rows = &s.kept.steps.take(1)[0], s.kept.rows.take(len(b.Rows))
	} else {
		if len(rows) < len(b.Rows) {
			rows = make([]event.RowResult, 2*len(b.Rows))
			s.rows = rows
		}
		clear(rows[:len(b.Rows)])
	}
	n := 0
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Sample {
			rows[n].Req = row.Req
			n++
		}
	}
	*step = event.StepResult{Batch: b.ID, Rows: rows[:n:n], ExecNs: c.takes}
	s.cfg.Source.Answer(s.now, p, s.fab.Core(p), b, step)
	s.tell(p, event.Event{Kind: event.StepDone, Step: step})
}

// tell states a fact to core p and carries out what follows.
func (s *Sim) tell(p event.Peer, ev event.Event) {
	ev.At = s.now
	s.busy = true
	s.cmds = s.fab.Step(p, &ev, s.cmds[:0])
	s.after(p, &ev)
	s.busy = false
}

func (s *Sim) deliver(d *due) {
	s.busy = true
	ev, cmds, ok := s.fab.Deliver(d.from, d.core, s.now, s.cmds[:0])
	if ok {
		s.cmds = cmds
		s.after(d.core, &ev)
	}
	s.busy = false
}

// after carries out the commands that core p answered ev with. Who looks on is
// given copies, so that without them nothing need be allocated.
func (s *Sim) after(p event.Peer, ev *event.Event) {
	cmds := s.cmds
	if s.cfg.Tap != nil && (ev.Kind != event.Dispatch || len(cmds) > 0) {
		kept := &s.kept.events.take(1)[0]
		*kept = *ev
		cmds = append(s.kept.cmds.take(len(cmds))[:0], cmds...)
		s.cfg.Tap(p, kept, cmds)
	}
	for i := range cmds {
		s.obey(p, &cmds[i])
	}
	if c := &s.cores[p]; ev.Kind != event.Dispatch && c.batch == nil && !c.dispatch {
		c.dispatch = true
		s.queue.put(due{at: s.now, class: dispatch, core: p})
	}
	if ev.Kind == event.StepDone && s.cfg.Control != nil {
		shown := *ev
		if policy := s.cfg.Control(p, &shown); policy != nil {
			s.SetPolicy(*policy)
		}
	}
}

func (s *Sim) obey(p event.Peer, cmd *event.Command) {
	c := &s.cores[p]
	switch cmd.Kind {
	case event.RunBatch:
		s.books.started(p, s.now, cmd.Batch)
		s.start(p, c, cmd.Batch)
	case event.WakeAt:
		c.timer++
		c.gen = cmd.Gen
		if cmd.At >= NoGuard {
			return
		}
		s.vain++
		s.queue.put(due{at: max(cmd.At, s.now), class: wake, core: p, id: c.timer})
	case event.SendPeer:
		s.launch(p, cmd.To)
	case event.TellActive, event.TellBusy:
		for to := range s.cores {
			if to := event.Peer(to); to != p {
				s.launch(p, to)
			}
		}
	case event.Emit:
		s.books.emitted(s.now, cmd.Req)
	case event.Finish, event.Reject:
		s.books.over(s.now, cmd)
		if s.cfg.Clients == 0 {
			return
		}
		next := s.now
		if cmd.Kind == event.Reject {
			next += rejected
		}
		s.queue.put(due{at: next, class: arrive})
	}
}

// rejected is how many ns a client waits that was turned away. With none, the
// time would never pass where no request fits.
const rejected = 1_000_000

// launch lets the message that the fabric has just put on its way arrive.
func (s *Sim) launch(from, to event.Peer) {
	s.queue.put(due{at: s.now + s.cfg.Latency, class: deliver, core: to, from: from})
}
