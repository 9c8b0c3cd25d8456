package metrics

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Run folds the tape of a whole run into its summary. It keeps 16 bytes per token,
// so its percentiles are exact. It belongs to one goroutine.
type Run struct {
	clock  running
	ledger ledger
	cores  []runCore
	began  bool
	start  int64 // session time of the first record
	span   bounds

	active map[event.ReqID]struct{}
	since  int64   // running time since when no request is active
	quiet  []lapse // in which none was, after the first token

	emitted bool
	first   int64 // running time of the first token
	sum     totals
	ends    map[string]int
	answers answers
	faults  int

	families families
}

// runCore is one subserver's part of a run.
type runCore struct {
	peerCount
	running bool
	batch   uint64
	inBatch int   // rows of the running batch
	started int64 // session time: a device is busy in a pause, too
	began   int64 // the same in running time
	busy    busy
}

// NewRun returns the fold of a run on the given number of subservers.
func NewRun(peers int) *Run {
	return &Run{
		clock:  newRunning(),
		ledger: newLedger(true),
		cores:  make([]runCore, max(peers, 1)),
		active: map[event.ReqID]struct{}{},
		ends:   map[string]int{},
		sum:    totals{tokens: make([]int64, max(peers, 1))},

		families: newFamilies(),
	}
}

// Add takes one record. Records come in tape order.
func (r *Run) Add(rec *tape.Record) {
	t, at := r.clock.of(rec)
	if !r.began {
		r.began, r.start = true, at
	}
	switch rec.Kind {
	case tape.KindEvent:
		if rec.Event != nil && r.valid(rec.Core) {
			r.event(rec.Core, rec.Event, t, at)
		}
	case tape.KindCommand:
		if p := rec.Writer(); rec.Command != nil && r.valid(p) {
			r.command(p, rec.Command, t, at)
		}
	case tape.KindHost:
		switch h := rec.Host.(type) {
		case *tape.Request:
			r.families.asked(h)
		case *tape.Result:
			r.result(h)
		case *tape.Setting:
			if h.Setting == "paused" {
				r.clock.set(isOn(h.New), at)
			}
		}
	}
}

func (r *Run) valid(p event.Peer) bool { return p >= 0 && int(p) < len(r.cores) }

func (r *Run) event(p event.Peer, ev *event.Event, t, at int64) {
	switch ev.Kind {
	case event.Arrive:
		r.span.begin(t)
		r.ledger.arrive(ev.Req, t, 0)
	case event.PeerIn:
		if ev.Peer == nil || (ev.Peer.Status != event.New && ev.Peer.Status != event.Alive) {
			return
		}
		if e := r.ledger.active[ev.Peer.ID]; e != nil && e.arrive(p, ev.Peer.Hop, t) {
			e.resumed, e.extended = p, 0
		}
	case event.StepDone:
		if ev.Step != nil {
			r.stepDone(p, ev.Step, t, at)
		}
	}
}

func (r *Run) stepDone(p event.Peer, step *event.StepResult, t, at int64) {
	c := &r.cores[p]
	if !c.running || c.batch != step.Batch {
		return
	}
	c.running = false
	c.busy.tail = append(c.busy.tail, lapse{c.began, t})
	in := r.span.in(t)
	if in {
		c.batches++
		c.batchRows += int64(c.inBatch)
		c.busyNs += max(at-c.started, 0)
		c.rows += int64(len(step.Rows))
	}
	for i := range step.Rows {
		if r.ledger.row(&step.Rows[i], p) && in {
			c.dropped++
		}
	}
}

func (r *Run) command(p event.Peer, cmd *event.Command, t, at int64) {
	switch cmd.Kind {
	case event.Admit:
		r.admit(cmd.Req, t)
	case event.RunBatch:
		if cmd.Batch != nil {
			r.runBatch(p, cmd.Batch, t, at)
		}
	case event.SendPeer:
		if cmd.Peer == nil {
			return
		}
		for _, w := range r.ledger.left(cmd.Peer) {
			if r.valid(w) && r.span.in(t) {
				r.cores[w].dropped++
				r.cores[w].taken++
			}
		}
	case event.Emit:
		r.span.begin(t)
		em, ok := r.ledger.emit(cmd.Req, cmd.Pos, p, t)
		if !ok {
			return
		}
		if em.undrop && r.span.in(t) {
			r.cores[p].dropped--
		}
		if !r.emitted {
			r.emitted, r.first, r.sum.last = true, t, t
		}
		for i := range r.cores {
			if b := &r.cores[i].busy; len(b.tail) > 0 {
				b.settle(r.lo(), r.span.hi())
			}
		}
	case event.Reject:
		r.ends["rejected"]++
		r.ledger.close(cmd.Req)
		r.leave(cmd.Req, t)
	case event.Finish:
		r.ends[cmd.Reason.String()]++
		if e := r.ledger.close(cmd.Req); e != nil {
			done, kept := cmd.Reason == event.ReasonStop || cmd.Reason == event.ReasonLength, e.kept(cmd.N)
			e.waited = e.waited && (done || kept > 0) // else it was let in to be thrown out
			r.sum.add(e, kept, r.lo(), &r.span, done)
		}
		r.leave(cmd.Req, t)
	case event.Note:
		if cmd.Note != event.NoteFault {
			return
		}
		r.faults++
		if r.ledger.fault(cmd, p) && r.span.in(t) {
			r.cores[p].dropped--
		}
	}
}

// lo is from where on rates are measured: the first token, or the end of the
// warm-up behind it.
func (r *Run) lo() int64 { return max(r.first, r.span.lo()) }

// admit notes that a request is active.
func (r *Run) admit(id event.ReqID, t int64) {
	if len(r.active) == 0 && r.emitted && t > r.since {
		r.quiet = append(r.quiet, lapse{r.since, t})
	}
	r.active[id] = struct{}{}
	if e := r.ledger.active[id]; e != nil {
		e.admit, e.waited = t, e.known
	}
}

// leave notes that a request is no longer active.
func (r *Run) leave(id event.ReqID, t int64) {
	if _, ok := r.active[id]; !ok {
		return
	}
	delete(r.active, id)
	r.since = t
}

func (r *Run) runBatch(p event.Peer, batch *event.Batch, t, at int64) {
	r.span.begin(t)
	c := &r.cores[p]
	c.running, c.batch, c.inBatch, c.started, c.began = true, batch.ID, len(batch.Rows), at, t
	var n peerCount
	for i := range batch.Rows {
		row := &batch.Rows[i]
		n.recomputed += int64(max(row.Recomputed, 0))
		n.prefill(row)
		if e := r.ledger.active[row.Req]; e != nil {
			e.feed(p, row, &n)
		}
	}
	if r.span.in(t) {
		c.add(&n, 1)
	}
}

// result counts an answer, and the end of a request that never became one.
func (r *Run) result(h *tape.Result) {
	if !r.ledger.seen(h.Req) {
		r.ends[h.Reason]++
		r.ledger.close(h.Req)
	}
	r.families.ended(h, h.Checked)
	if h.Checked {
		r.answers.count(h.Correct)
	}
}
