package metrics

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Run folds the tape of a whole run into its summary. It keeps 8 bytes per token,
// so its percentiles are exact. It belongs to one goroutine.
type Run struct {
	clock  running
	ledger ledger
	cores  []runCore
	began  bool
	start  int64 // session time of the first record

	active map[event.ReqID]struct{}
	quiet  int64 // running time since when no request is active
	gap    int64 // running time without one since the last token

	emitted    bool
	first      int64 // running time of the first token
	sum        totals
	ends       map[string]int
	answers    answers
	recomputed int64
	faults     int
}

// totals are what the tokens of requests add up to.
type totals struct {
	tokens    []int64 // by subserver
	switches  int64
	atFirst   int64 // tokens at the very time of the first
	last      int64 // running time of the last token
	idle      int64 // running time without an active request before it
	ttft, itl []float64
}

// runCore is one subserver's part of a run.
type runCore struct {
	peerCount
	running bool
	batch   uint64
	inBatch int   // rows of the running batch
	started int64 // session time: a device is busy in a pause, too
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
		if rec.Command != nil && r.valid(rec.Core) {
			r.command(rec.Core, rec.Command, t, at)
		}
	case tape.KindHost:
		switch h := rec.Host.(type) {
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
		r.ledger.arrive(ev.Req, t, 0)
	case event.StepDone:
		c := &r.cores[p]
		if ev.Step == nil || !c.running || c.batch != ev.Step.Batch {
			return
		}
		c.running = false
		c.batches++
		c.batchRows += int64(c.inBatch)
		c.busyNs += max(at-c.started, 0)
		c.rows += int64(len(ev.Step.Rows))
		for i := range ev.Step.Rows {
			if row := &ev.Step.Rows[i]; row.Action == event.Drop && r.ledger.drop(row.Req, p) {
				c.dropped++
			}
		}
	}
}

func (r *Run) command(p event.Peer, cmd *event.Command, t, at int64) {
	switch cmd.Kind {
	case event.Admit:
		if len(r.active) == 0 && r.emitted {
			r.gap += max(t-r.quiet, 0)
		}
		r.active[cmd.Req] = struct{}{}
	case event.RunBatch:
		if cmd.Batch == nil {
			return
		}
		c := &r.cores[p]
		c.running, c.batch, c.inBatch, c.started = true, cmd.Batch.ID, len(cmd.Batch.Rows), at
		for i := range cmd.Batch.Rows {
			r.recomputed += int64(cmd.Batch.Rows[i].Recomputed)
		}
	case event.SendPeer:
		if cmd.Peer != nil {
			r.ledger.left(cmd.Peer.ID)
		}
	case event.Emit:
		em, ok := r.ledger.emit(cmd.Req, cmd.Pos, p, t)
		if !ok {
			return
		}
		if em.undrop {
			r.cores[p].dropped--
		}
		if !r.emitted {
			r.emitted, r.first, r.sum.last = true, t, t
		}
		r.sum.idle += r.gap
		r.gap = 0
	case event.Reject:
		r.ends["rejected"]++
		r.ledger.close(cmd.Req)
		r.leave(cmd.Req, t)
	case event.Finish:
		r.ends[cmd.Reason.String()]++
		if e := r.ledger.close(cmd.Req); e != nil {
			r.sum.add(e, e.kept(cmd.N), r.first)
		}
		r.leave(cmd.Req, t)
	case event.Note:
		if cmd.Note == event.NoteFault {
			r.faults++
		}
	}
}

// leave notes that a request is no longer active.
func (r *Run) leave(id event.ReqID, t int64) {
	if _, ok := r.active[id]; !ok {
		return
	}
	delete(r.active, id)
	r.quiet = t
}

// result counts an answer, and the end of a request that never became one.
func (r *Run) result(h *tape.Result) {
	if !r.ledger.seen(h.Req) {
		r.ends[h.Reason]++
		r.ledger.close(h.Req)
	}
	if h.Checked {
		r.answers.checked++
		if h.Correct {
			r.answers.right++
		}
	}
}

// add counts the first kept tokens of a request; the first of the run was at
// running time first.
func (s *totals) add(e *entry, kept int, first int64) {
	for i := range kept {
		t := e.times[i]
		s.tokens[e.writers[i]]++
		switch {
		case i > 0:
			s.itl = append(s.itl, float64(max(t-e.times[i-1], 0)))
			if e.writers[i] != e.writers[i-1] {
				s.switches++
			}
		case e.known:
			s.ttft = append(s.ttft, float64(max(t-e.arrived, 0)))
		}
		if t <= first {
			s.atFirst++
		}
		s.last = max(s.last, t)
	}
}
