package sim

import (
	"fmt"
	"slices"

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

	cores  []coreState
	sent   uint64 // last message of the fabric that is in the queue
	fns    []func()
	calls  int         // of those that are still to be called
	next   event.ReqID // last id that a client sent
	open   int         // requests sent and not over
	timers int         // wakes in the queue
	books  books

	// Scratch of the path without a tap.
	cmds []event.Command
	rows []event.RowResult
	step event.StepResult
	sums cost.Batch
}

// coreState is what the driver keeps of one core.
type coreState struct {
	batch    *event.Batch // that runs, nil when idle
	run      uint64       // its number here, over all lives of the subserver
	started  int64        // when it started
	takes    int64        // ns, how long it runs
	timer    uint64       // number of the last one it asked for, likewise
	gen      uint64       // by which the core knows it
	dispatch bool         // one is in the queue
}

// New prepares a run.
func New(cfg Config) (*Sim, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	fab, err := fabric.New(cfg.Cluster, nil)
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

// Run simulates to the end and returns what was measured. It is called once.
func (s *Sim) Run() Result {
	s.begin()
	for !s.over() {
		d := s.queue.take()
		s.now = d.at
		s.happen(&d)
	}
	return s.result()
}

// over says whether the run is at its end: the time is up, nothing is due any
// more, or every request is over and nothing but timers left.
func (s *Sim) over() bool {
	h := s.queue.heap
	if s.cfg.Until > 0 && (len(h) == 0 || h[0].at > s.cfg.Until) {
		s.now = s.cfg.Until
		return true
	}
	return len(h) == 0 || s.cfg.Until == 0 && s.open == 0 && s.timers == len(h)
}

// begin puts the policy in force and lets every client send.
func (s *Sim) begin() {
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

// At calls fn at time at, before anything else that is due then; a time that has
// passed means now.
func (s *Sim) At(at int64, fn func()) {
	if s.calls == 0 {
		s.fns = s.fns[:0]
	}
	s.calls++
	s.fns = append(s.fns, fn)
	s.queue.put(due{at: max(at, s.now), class: control, id: uint64(len(s.fns) - 1)})
}

// SetPolicy puts p in force everywhere. It may be called before Run, in
// functions given to At and in Tap; it takes effect at once, after the event
// that is being handled.
func (s *Sim) SetPolicy(p event.Policy) {
	s.At(s.now, func() {
		s.policy = &p
		for m := range s.cores {
			s.setPolicy(event.Peer(m))
		}
	})
}

func (s *Sim) setPolicy(p event.Peer) {
	s.tell(p, event.Event{Kind: event.SetPolicy, Policy: s.policy})
}

// Restart kills subserver p and puts one in its place that knows nothing but the
// policy: the batch that ran there, its timers and every pen it held are lost.
// Messages under way arrive. It may be called in functions given to At.
func (s *Sim) Restart(p event.Peer) error {
	if err := s.fab.Restart(p); err != nil {
		return err
	}
	c := &s.cores[p]
	s.books.killed(p, s.now, c)
	c.batch = nil
	c.timer++
	s.setPolicy(p)
	return nil
}

func (s *Sim) happen(d *due) {
	s.books.events++
	switch d.class {
	case control:
		fn := s.fns[d.id]
		s.fns[d.id] = nil
		s.calls--
		fn()
	case arrive:
		s.send()
	case stepDone:
		if c := &s.cores[d.core]; c.batch != nil && c.run == d.id {
			s.endStep(d.core, c)
		}
	case deliver:
		s.deliver(d)
	case wake:
		s.timers--
		if c := &s.cores[d.core]; d.id == c.timer {
			s.tell(d.core, event.Event{Kind: event.Wake, Gen: c.gen})
		}
	case dispatch:
		s.cores[d.core].dispatch = false
		s.tell(d.core, event.Event{Kind: event.Dispatch})
	}
}

// send lets a client send the next request, if any is left.
func (s *Sim) send() {
	if s.cfg.Requests > 0 && int(s.next) >= s.cfg.Requests {
		return
	}
	s.next++
	s.open++
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
	s.books.ended(p, s.now, b, c.takes)
	step, rows := &s.step, s.rows[:0]
	if s.cfg.Tap != nil {
		step, rows = new(event.StepResult), make([]event.RowResult, 0, len(b.Rows))
	}
	core := s.fab.Core(p)
	for i := range b.Rows {
		row := &b.Rows[i]
		if !row.Sample {
			continue
		}
		rows = append(rows, event.RowResult{Req: row.Req})
	}
	s.rows = rows
	*step = event.StepResult{Batch: b.ID, Rows: rows, ExecNs: c.takes}
	s.cfg.Source.Answer(s.now, p, core, b, step)
	s.tell(p, event.Event{Kind: event.StepDone, Step: step})
}

// tell states a fact to core p and carries out what follows.
func (s *Sim) tell(p event.Peer, ev event.Event) {
	ev.At = s.now
	s.cmds = s.fab.Step(p, &ev, s.cmds[:0])
	s.after(p, &ev)
}

func (s *Sim) deliver(d *due) {
	ev, cmds, ok := s.fab.Deliver(d.from, d.core, s.now, s.cmds[:0])
	if !ok {
		return
	}
	s.cmds = cmds
	s.after(d.core, &ev)
}

// after carries out the commands that core p answered ev with. Who looks on is
// given copies, so that without them nothing need be allocated.
func (s *Sim) after(p event.Peer, ev *event.Event) {
	cmds := s.cmds
	if s.cfg.Tap != nil && (ev.Kind != event.Dispatch || len(cmds) > 0) {
		kept := *ev
		cmds = slices.Clone(cmds)
		s.cfg.Tap(p, &kept, cmds)
	}
	for i := range cmds {
		s.obey(p, &cmds[i])
	}
	s.post()
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
		c.batch = cmd.Batch
		c.run++
		c.started, c.takes = s.now, s.takes(p, cmd.Batch)
		s.books.started(p, s.now, cmd.Batch)
		s.queue.put(due{at: s.now + c.takes, class: stepDone, core: p, id: c.run})
	case event.WakeAt:
		c.timer++
		c.gen = cmd.Gen
		if cmd.At >= NoGuard {
			return
		}
		s.timers++
		s.queue.put(due{at: max(cmd.At, s.now), class: wake, core: p, id: c.timer})
	case event.Emit:
		s.books.emitted(s.now, cmd.Req)
	case event.Finish, event.Reject:
		s.open--
		s.books.over(s.now, cmd)
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

// takes is how long batch b, which core p has just started, runs: at least 1 ns.
func (s *Sim) takes(p event.Peer, b *event.Batch) int64 {
	s.sums = cost.Of(b)
	d := int64(s.cfg.Step(int(p), &s.sums))
	return max(1, s.jitter.of(d, s.cfg.Seed, p, s.cores[p].run))
}

// post puts what the last Step sent into the queue.
func (s *Sim) post() {
	flight := s.fab.InFlight()
	i := len(flight)
	for i > 0 && flight[i-1].Seq > s.sent {
		i--
	}
	for ; i < len(flight); i++ {
		m := &flight[i]
		s.sent = m.Seq
		s.queue.put(due{at: m.SentAt + s.cfg.Latency, class: deliver, core: m.To, from: m.From})
	}
}
