package metrics

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// core is what the board knows of one subserver.
type core struct {
	load     tape.Load
	running  bool
	batch    uint64
	rows     int      // of the running batch
	in       []*entry // requests of the running batch
	started  int64    // when the running batch started
	idle     int64    // since when none runs
	lastRule event.Rule
	until    int64 // busy and waiting time is counted up to here
}

// waitsForB says that the core is idle because ready has not reached B.
func (c *core) waitsForB() bool {
	return !c.running && c.load.Ready > 0 && c.load.Ready < c.load.B
}

// count says how much of the time from c.until to t was busy or waiting for B.
func (c *core) count(t int64) (busy, wait int64) {
	busy, wait = c.peek(c.until, t)
	c.until = max(c.until, t)
	return busy, wait
}

// peek is count for a time from which on nothing has changed.
func (c *core) peek(from, t int64) (busy, wait int64) {
	d := max(t-from, 0)
	switch {
	case c.running:
		return d, 0
	case c.waitsForB():
		return 0, d
	}
	return 0, 0
}

// answers counts checked answers of requests that lived under one router and one
// setting of its knobs.
type answers struct{ right, checked int }

// Board folds a tape into what the board shows. Its memory is bounded by the
// number of active requests. It belongs to one goroutine.
type Board struct {
	clock    running
	ledger   ledger
	cores    []core
	window   *window
	series   series
	changes  changes
	view     slot // scratch of Snapshot
	began    bool // work has been seen
	epoch    int
	answers  answers
	families families // of them
	plan     *tape.Plan
	policy   string // thresholds in force, as event.Policy.Form writes them
	guard    int64  // W in ns, 0 while it is not known
	virtual  bool   // time is: its speed means nothing
}

// NewBoard returns the fold of a tape of the given number of subservers.
func NewBoard(peers int) *Board {
	peers = max(peers, 1)
	return &Board{
		clock:    newRunning(),
		ledger:   newLedger(false),
		cores:    make([]core, peers),
		window:   newWindow(peers),
		series:   newSeries(peers),
		families: newFamilies(),
		changes:  newChanges(),
		view:     slot{peers: make([]peerCount, peers)},
		policy:   eager,
	}
}

// Add takes one record. Records come in tape order.
func (b *Board) Add(r *tape.Record) {
	t, at := b.clock.of(r)
	switch r.Kind {
	case tape.KindEvent:
		if r.Event != nil && b.valid(r.Core) {
			b.event(r.Core, r.Event, t, at)
		}
	case tape.KindCommand:
		if p := r.Writer(); r.Command != nil && b.valid(p) {
			b.command(p, r.Command, t)
		}
	case tape.KindLoad:
		if r.Load != nil && b.valid(r.Core) {
			b.advance(t)
			b.book(r.Core, t)
			b.cores[r.Core].load = *r.Load
		}
	case tape.KindHost:
		b.host(r.Host, t, at)
	}
}

func (b *Board) valid(p event.Peer) bool { return p >= 0 && int(p) < len(b.cores) }

// begin starts all windows with the first work: what came before is loading.
func (b *Board) begin(t int64) {
	if b.began {
		return
	}
	b.began = true
	b.restart(t)
	b.series.start(t)
	b.changes.start(t)
}

// restart lets the window start again at t.
func (b *Board) restart(t int64) {
	b.window.restart(t)
	for i := range b.cores {
		b.cores[i].until = max(b.cores[i].until, t)
	}
}

// advance moves the running slot on to t. Time that passed in a slot is booked
// there before it ends.
func (b *Board) advance(t int64) {
	w := b.window
	if t-w.start > (slots+1)*slotWidth {
		from := w.from
		w.restart(floorTo(t, slotWidth) - windowNs)
		w.from = from
		for i := range b.cores {
			b.cores[i].until = max(b.cores[i].until, w.start)
		}
	}
	for t >= w.start+slotWidth {
		for i := range b.cores {
			b.book(event.Peer(i), w.start+slotWidth)
		}
		w.rotate()
	}
}

// book counts the busy and waiting time of a core up to t.
func (b *Board) book(p event.Peer, t int64) {
	busy, wait := b.cores[p].count(t)
	cur, sum := b.window.peer(p)
	cur.busyNs += busy
	sum.busyNs += busy
	cur.waitNs += wait
	sum.waitNs += wait
}

// count adds to what a core did in the running slot.
func (b *Board) count(p event.Peer, n *peerCount) {
	cur, sum := b.window.peer(p)
	cur.add(n, 1)
	sum.add(n, 1)
}

func (b *Board) event(p event.Peer, ev *event.Event, t, at int64) {
	switch ev.Kind {
	case event.Arrive:
		b.begin(t)
		b.ledger.arrive(ev.Req, t, b.epoch)
	case event.StepDone:
		if ev.Step != nil {
			b.stepDone(p, ev.Step, t)
		}
	case event.PeerIn:
		if ev.Peer == nil || (ev.Peer.Status != event.New && ev.Peer.Status != event.Alive) {
			return
		}
		if e := b.ledger.active[ev.Peer.ID]; e != nil && e.arrive(p, ev.Peer.Hop, t) {
			e.resumed, e.extended = p, 0
			b.advance(t)
			b.count(p, &peerCount{visits: 1})
		}
	case event.SetPolicy:
		if p == event.Front && ev.Policy != nil {
			b.policy, b.guard = ev.Policy.Form(), max(ev.Policy.W, 0)
			if c, ok := b.changes.policy(ev.Policy); ok {
				b.changed(c, t, at)
			}
		}
	}
}

func (b *Board) stepDone(p event.Peer, s *event.StepResult, t int64) {
	b.advance(t)
	c := &b.cores[p]
	b.book(p, t)
	if !c.running || c.batch != s.Batch {
		return
	}
	c.running, c.idle = false, t
	for _, e := range c.in {
		e.stepped(p, t)
	}
	var n peerCount
	n.batches, n.batchRows = 1, int64(c.rows)
	switch c.lastRule {
	case event.RuleB:
		n.byB = 1
	case event.RuleGuard:
		n.byGuard = 1
	case event.RuleAhead:
		n.byAhead = 1
	}
	n.stepNs, n.execNs = max(t-c.started, 0), max(s.ExecNs, 0)
	n.rows = int64(len(s.Rows))
	for i := range s.Rows {
		if b.ledger.row(&s.Rows[i], p) {
			n.dropped++
		}
	}
	c.rows = 0
	b.count(p, &n)
}

func (b *Board) command(p event.Peer, cmd *event.Command, t int64) {
	switch cmd.Kind {
	case event.Admit:
		if e := b.ledger.active[cmd.Req]; e != nil {
			e.move(standsReady, p, t)
		}
	case event.RunBatch:
		if cmd.Batch != nil {
			b.runBatch(p, cmd.Batch, t)
		}
	case event.SendPeer:
		if cmd.Peer == nil || cmd.Peer.Status == event.Resend {
			return
		}
		if e := b.ledger.active[cmd.Peer.ID]; e != nil {
			e.move(travels, cmd.To, t)
		}
		for _, w := range b.ledger.left(cmd.Peer) {
			if b.valid(w) {
				b.count(w, &peerCount{dropped: 1, taken: 1})
			}
		}
	case event.Preempt:
		b.advance(t)
		b.count(p, &peerCount{preempted: 1})
	case event.Note:
		if cmd.Note == event.NoteFault && b.ledger.fault(cmd, p) {
			b.advance(t)
			b.undrop(p)
		}
	case event.Emit:
		b.emit(p, cmd, t)
	case event.Reject:
		b.ledger.close(cmd.Req)
	case event.Finish:
		b.finish(cmd, t)
	}
}

func (b *Board) runBatch(p event.Peer, batch *event.Batch, t int64) {
	b.begin(t)
	b.advance(t)
	b.book(p, t)
	c := &b.cores[p]
	c.running, c.batch, c.rows, c.started, c.lastRule = true, batch.ID, len(batch.Rows), t, batch.Rule
	c.in = c.in[:0]
	var n peerCount
	for i := range batch.Rows {
		row := &batch.Rows[i]
		n.recomputed += int64(max(row.Recomputed, 0))
		n.prefill(row)
		e := b.ledger.active[row.Req]
		if e == nil {
			continue
		}
		e.move(runs, p, t)
		c.in = append(c.in, e)
		e.feed(p, row, &n)
	}
	if n != (peerCount{}) {
		b.count(p, &n)
	}
}

func (b *Board) emit(p event.Peer, cmd *event.Command, t int64) {
	b.begin(t)
	b.advance(t)
	em, ok := b.ledger.emit(cmd.Req, cmd.Pos, p, t)
	if !ok {
		return
	}
	b.token(p, em.switched, t, 1)
	if em.undrop {
		b.undrop(p)
	}
	if em.timed {
		b.window.gap(em.first, em.wait)
	}
}

// undrop takes back a dropped candidate that was committed after all.
func (b *Board) undrop(p event.Peer) {
	cur, sum := b.window.peer(p)
	cur.dropped--
	sum.dropped--
}

// token counts a token of a core, or takes one back with n = -1.
func (b *Board) token(p event.Peer, switched bool, t, n int64) {
	cur, sum := b.window.peer(p)
	cur.tokens += n
	sum.tokens += n
	if switched {
		b.window.ring[b.window.cur].switches += n
		b.window.sum.switches += n
	}
	b.series.add(t, p, n)
	b.changes.add(t, b.large(p), n)
}

// large says that a subserver is the large one.
func (b *Board) large(p event.Peer) bool { return p > 0 && int(p) == len(b.cores)-1 }

// finish ends a request; tokens that were cut are taken back.
func (b *Board) finish(cmd *event.Command, t int64) {
	b.advance(t)
	e := b.ledger.close(cmd.Req)
	if e == nil {
		return
	}
	if e.known {
		b.changes.lasted(t - e.arrived)
	}
	for i := len(e.writers) - 1; i >= e.kept(cmd.N); i-- {
		b.token(e.writers[i], i > 0 && e.writers[i-1] != e.writers[i], t, -1)
	}
}

func (b *Board) host(h tape.Host, t, at int64) {
	switch h := h.(type) {
	case *tape.Result:
		epoch, known := b.ledger.epoch(h.Req)
		counts := h.Checked && known && epoch == b.epoch
		b.families.ended(h, counts)
		if counts {
			b.answers.count(h.Correct)
			b.changes.answered(h.Correct)
		}
	case *tape.Request:
		b.families.asked(h)
	case *tape.Plan:
		b.plan = h
	case *tape.Router:
		if c, ok := b.changes.router(h); ok {
			b.plan = nil // it says nothing of this router, which may never need another
			b.changed(c, t, at)
		}
	case *tape.Knob:
		if h.Old != h.New && (h.Router == b.changes.file || b.changes.file == "") {
			b.changed(change{MarkKnob, h.Knob, number(h.Old), number(h.New)}, t, at)
		}
	case *tape.Setting:
		b.setting(h, t, at)
	}
}

func (b *Board) setting(s *tape.Setting, t, at int64) {
	if s.Setting == "paused" {
		if lasted := b.clock.set(isOn(s.New), at); lasted > 0 && b.began {
			b.changes.pause(at, lasted)
		}
		return
	}
	if s.Setting == "clock" {
		b.virtual = virtual(s.New)
	}
	if kind, ok := settingKinds[s.Setting]; ok && s.Old != "" && s.Old != s.New && !(kind == MarkSpeed && b.virtual) {
		if kind == MarkClock || kind == MarkSpeed {
			b.plan = nil // its tokens/s are of other step times
		}
		b.changed(change{kind, s.Setting, s.Old, s.New}, t, at)
	}
}

// changed lets every window start again.
func (b *Board) changed(c change, t, at int64) {
	if !b.began {
		return
	}
	b.advance(t)
	t = max(t, b.window.start, b.window.from)
	b.restart(t)
	b.changes.change(c, t, at)
	if c.kind == MarkRouter || c.kind == MarkKnob {
		b.epoch++
		b.answers = answers{}
		clear(b.families.counts)
	}
}
