package metrics

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// DefaultHalfLife is the half-life of the routing matrix in decode rows of a
// subserver: the best of 50, 200 and 1,000 where the share that goes to the large
// model moves within seconds, and no loss where it does not.
const DefaultHalfLife = 50

// minRows is how many rows of a subserver make its routing known.
const minRows = 20

// EstimatorOptions are the memories of an Estimator; 0 means the default.
type EstimatorOptions struct {
	HalfLife     float64 // decode rows of a subserver, default DefaultHalfLife
	StepHalfLife float64 // batches, default cost.DefaultHalfLife

	// Whole counts the runs of steps of the whole session as well, for
	// [Estimator.Lengths].
	Whole bool
}

// Estimator folds a tape into what the throughput model needs: where rows go,
// what they commit, how long steps take, and whether requests leave a subserver
// as the model assumes.
//
// What counts is what the cores did, not what the router said: a row went where
// the request went after it, and committed what its core emitted. Where a router
// holds tokens back, that is by how many tokens the text is longer behind the row:
// none or fewer where some were taken back. Faults, budgets
// and the end of a request are thereby in the figures. A row that ends its request
// (EOS, max_tokens) goes to the front, with its token: in the closed system that
// the model describes a request that ends is replaced at once, and its
// replacement starts there. At the front that is a stay. For the send intervals
// such a row is a step after which the request was not sent on.
//
// Every row that drew a candidate is a step of the model, the first after a
// prefill too; parts of a chunked prefill and rows that came too late for a
// request that had ended are not. Tokens that a stop string cuts later are not
// taken back.
//
// Memory is bounded by the number of active requests. Add allocates nothing in
// steady state. An Estimator belongs to one goroutine.
type Estimator struct {
	cores  []coreEstimate
	visits map[event.ReqID]*visit
	free   []*visit
	active int
	flight flight
	live   string // router, file@hash
	file   string
	turns  int

	virtual bool // time is: its speed means nothing
}

// coreEstimate is what is known of one subserver.
type coreEstimate struct {
	routing   routing
	intervals intervals
	lengths   *lengths // nil unless asked for
	steps     stepTimes
	cause     event.Kind // of the commands that come
	from      event.Peer // of a PeerIn
	heads     []int      // of the running batch: the position that each row which samples draws for
	rows      []outcome  // of the StepDone whose commands come
	cursor    int
}

// visit is where a request is.
type visit struct {
	at    event.Peer
	steps int // made there since it came

	// The row that sent it there was the nth on its way.
	from event.Peer
	nth  int

	hop    uint32 // of the message that took it there, and when that was sent
	sentAt int64
}

// outcome is what becomes of a row of a finished step.
type outcome struct {
	req    event.ReqID
	step   int // of its visit
	dest   event.Peer
	tokens int
	pos    int  // of the candidate
	held   bool // the router holds tokens back
	sent   bool
	failed bool
}

// NewEstimator returns the fold of a tape of the given number of subservers. It
// counts requests that arrive from then on.
func NewEstimator(peers int, o EstimatorOptions) *Estimator {
	peers = max(peers, 1)
	if !(o.HalfLife > 0) {
		o.HalfLife = DefaultHalfLife
	}
	e := &Estimator{cores: make([]coreEstimate, peers), visits: map[event.ReqID]*visit{}}
	for i := range e.cores {
		c := &e.cores[i]
		c.routing = newRouting(peers, o.HalfLife)
		c.steps = newStepTimes(o.StepHalfLife)
		if o.Whole {
			c.lengths = &lengths{}
		}
	}
	return e
}

// Add takes one record. Records come in tape order.
func (e *Estimator) Add(r *tape.Record) {
	if r.Kind == tape.KindHost {
		e.host(r.Host)
		return
	}
	if r.Core < 0 || int(r.Core) >= len(e.cores) {
		return
	}
	switch r.Kind {
	case tape.KindEvent:
		e.settle(r.Core)
		if r.Event != nil {
			e.event(r.Core, r.Event, r.At)
		}
	case tape.KindCommand:
		if r.Command != nil {
			e.command(r.Core, r.Command, r.At)
		}
	case tape.KindLoad:
		e.settle(r.Core)
		if r.Load != nil && r.Core == event.Front {
			e.active = max(r.Load.Active, 0)
		}
	}
}

// settle counts the rows of p's last step: its commands are all seen.
func (e *Estimator) settle(p event.Peer) {
	c := &e.cores[p]
	for i := range c.rows {
		o := &c.rows[i]
		if o.failed {
			continue
		}
		c.routing.add(p, o.dest, o.tokens)
		c.intervals.add(o.step, o.sent)
		if c.lengths != nil {
			c.lengths.add(o.req, o.step, o.sent)
		}
		if o.sent {
			if v := e.visits[o.req]; v != nil && v.from == p && v.at == o.dest {
				v.nth = c.routing.tokens[o.dest].n
			}
		}
	}
	c.rows, c.cursor = c.rows[:0], 0
}

func (e *Estimator) settleAll() {
	for p := range e.cores {
		e.settle(event.Peer(p))
	}
}

func (e *Estimator) event(p event.Peer, ev *event.Event, at int64) {
	c := &e.cores[p]
	c.cause = ev.Kind
	switch ev.Kind {
	case event.Arrive:
		if p == event.Front && e.visits[ev.Req] == nil {
			e.visits[ev.Req] = e.newVisit()
		}
	case event.PeerIn:
		c.from = event.None
		if ev.Peer != nil {
			c.from = ev.Peer.From
			e.arrived(ev.Peer, at)
		}
	case event.StepDone:
		if ev.Step != nil && c.steps.done(ev.Step, at) {
			e.stepDone(p, ev.Step)
		}
	}
}

func (e *Estimator) newVisit() *visit {
	n := len(e.free)
	if n == 0 {
		return &visit{at: event.Front, from: event.None}
	}
	v := e.free[n-1]
	e.free = e.free[:n-1]
	*v = visit{at: event.Front, from: event.None}
	return v
}

func (e *Estimator) end(id event.ReqID) {
	for i := range e.cores {
		if l := e.cores[i].lengths; l != nil {
			l.forget(id)
		}
	}
	if v := e.visits[id]; v != nil {
		delete(e.visits, id)
		e.free = append(e.free, v)
	}
}

// stepDone lets the rows wait for what the core makes of them: unless it says
// otherwise they stay and commit nothing.
func (e *Estimator) stepDone(p event.Peer, s *event.StepResult) {
	c := &e.cores[p]
	for i := range s.Rows {
		row := &s.Rows[i]
		id := row.Req
		v := e.visits[id]
		if v == nil {
			continue
		}
		if v.at != p {
			v.at, v.steps, v.from = p, 0, event.None
		}
		v.steps++
		o := outcome{req: id, step: v.steps, dest: p}
		if row.Hold > 0 && len(c.heads) == len(s.Rows) {
			o.held, o.tokens, o.pos = true, 1, c.heads[i]
		}
		c.rows = append(c.rows, o)
	}
}

// heads appends the positions that the rows of a batch draw for.
func heads(dst []int, b *event.Batch) []int {
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Sample {
			dst = append(dst, row.Start+len(row.Tokens))
		}
	}
	return dst
}

// outcome finds the row of a request in the step whose commands come. They come
// in the order of rows, so the search goes on where the last one ended.
func (c *coreEstimate) outcome(id event.ReqID) *outcome {
	if c.cause != event.StepDone {
		return nil
	}
	for range c.rows {
		if c.rows[c.cursor].req == id {
			return &c.rows[c.cursor]
		}
		c.cursor = (c.cursor + 1) % len(c.rows)
	}
	return nil
}

func (e *Estimator) command(p event.Peer, cmd *event.Command, at int64) {
	c := &e.cores[p]
	switch cmd.Kind {
	case event.RunBatch:
		if cmd.Batch != nil {
			c.steps.start(cmd.Batch, at)
			c.heads = heads(c.heads[:0], cmd.Batch)
		}
	case event.Emit:
		e.emit(p, cmd.Req)
	case event.SendPeer:
		if cmd.Peer != nil {
			e.send(p, cmd.To, cmd.Peer)
			e.sent(cmd.Peer, at)
		}
	case event.Finish:
		if o := c.outcome(cmd.Req); o != nil {
			o.dest, o.failed = event.Front, cmd.Reason == event.ReasonError
		}
		e.end(cmd.Req)
	case event.Reject:
		e.end(cmd.Req)
	case event.TellActive, event.Admit:
		e.active = max(cmd.N, 0)
	}
}

// emit counts a token to the row that committed it, or to the row that sent the
// request to a subserver which appended it on receiving.
func (e *Estimator) emit(p event.Peer, id event.ReqID) {
	c := &e.cores[p]
	if o := c.outcome(id); o != nil {
		if !o.held {
			o.tokens++
		}
		return
	}
	if c.cause != event.PeerIn {
		return
	}
	if v := e.visits[id]; v != nil && v.at == p && v.from == c.from && v.from >= 0 {
		e.settle(v.from)
		e.cores[v.from].routing.credit(p, v.nth, 1)
	}
}

func (e *Estimator) send(p, to event.Peer, m *event.PeerReq) {
	if to < 0 || int(to) >= len(e.cores) {
		return
	}
	o := e.cores[p].outcome(m.ID)
	switch m.Status {
	case event.New, event.Alive:
		if o != nil {
			o.dest, o.sent = to, true
		}
		if o != nil && o.held {
			o.tokens = m.Loc + len(m.Suffix) - o.pos
		}
	case event.Finished:
		if o != nil && p != event.Front { // the front tells everybody
			o.dest = event.Front
		}
		return
	case event.Error:
		if o != nil {
			o.failed = true
		}
		return
	default:
		return
	}
	if v := e.visits[m.ID]; v != nil {
		v.at, v.steps, v.from, v.nth = to, 0, event.None, 0
		if o != nil {
			v.from = p
		}
	}
}

func (e *Estimator) host(h tape.Host) {
	switch h := h.(type) {
	case *tape.Router:
		if h.Phase == tape.RouterLive && e.live != h.File+"@"+h.Hash {
			e.live, e.file = h.File+"@"+h.Hash, h.File
			e.turns++
			e.restartRouting()
		}
	case *tape.Knob:
		if h.Old != h.New && (h.Router == e.file || e.file == "") {
			e.turns++
			e.restartRouting()
		}
	case *tape.Setting:
		if h.Setting == "clock" {
			e.virtual = virtual(h.New)
		}
		if (h.Setting == "clock" || h.Setting == "speed" && !e.virtual) && h.Old != "" && h.Old != h.New {
			e.turns++
			for i := range e.cores {
				e.cores[i].steps.restart()
			}
		}
	case *tape.Closed:
		e.settleAll()
	}
}

// restartRouting lets rows decided from now on say where rows go.
func (e *Estimator) restartRouting() {
	e.settleAll()
	for i := range e.cores {
		e.cores[i].routing.restart()
		e.cores[i].intervals.restart()
		if e.cores[i].lengths != nil {
			e.cores[i].lengths = &lengths{}
		}
	}
	for _, v := range e.visits {
		v.nth = 0
	}
}
