package board

import (
	"maps"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Add folds records in tape order.
func (m *Model) Add(recs []tape.Record) {
	for i := range recs {
		m.add(&recs[i])
	}
}

func (m *Model) add(r *tape.Record) {
	m.fold.Add(r)
	m.latest = max(m.latest, r.At)
	m.seq = max(m.seq, r.Seq)
	if m.begin < 0 {
		m.begin = r.At
	}
	known := r.Core >= 0 && int(r.Core) < m.n
	switch r.Kind {
	case tape.KindEvent:
		if known && r.Event != nil {
			m.event(r.Core, r.Event, r.At)
		}
	case tape.KindCommand:
		if known && r.Command != nil {
			m.command(r.Core, r.Command, r.At)
		}
	case tape.KindLoad:
		if known && r.Load != nil {
			m.cores[r.Core].load = *r.Load
		}
	case tape.KindHost:
		m.host(r.Host, r.At)
	}
}

func (m *Model) event(p event.Peer, ev *event.Event, at int64) {
	switch ev.Kind {
	case event.Arrive:
		r := m.request(ev.Req, at)
		r.enter(waiting, event.Front, at)
		if ev.Arrival != nil {
			r.prompt = len(ev.Arrival.Prompt)
			r.most = r.prompt + ev.Arrival.MaxTokens
		}
	case event.StepDone:
		if ev.Step != nil {
			m.stepDone(p, ev.Step, at)
		}
	case event.PeerIn:
		if ev.Peer == nil || ev.Peer.Status > event.Alive {
			return
		}
		if r := m.reqs[ev.Peer.ID]; r != nil && r.state != finished {
			m.peerIn(r, p, ev.Peer, at)
		}
	case event.SetPolicy:
		if p == event.Front && ev.Policy != nil {
			m.notePolicy(ev.Policy, at)
		}
	}
}

// peerIn takes a message with the pen; a stale one changes nothing, as in the
// core.
func (m *Model) peerIn(r *request, p event.Peer, msg *event.PeerReq, at int64) {
	if msg.Hop > 0 && msg.Hop <= r.hop {
		return
	}
	r.hop, r.router, r.fields = msg.Hop, msg.State, msg.Fields
	r.enter(ready, p, at)
	r.away = awayFrom(r.away, p, at)
}

// awayFrom keeps the time at which a request left home.
func awayFrom(away int64, p event.Peer, at int64) int64 {
	switch {
	case p == event.Front:
		return 0
	case away == 0:
		return at
	}
	return away
}

// request finds a request or opens one in the place of a finished one.
func (m *Model) request(id event.ReqID, at int64) *request {
	if r := m.reqs[id]; r != nil {
		return r
	}
	r := &request{id: id, since: at, byRole: make([]int, m.n)}
	m.reqs[id] = r
	for i, old := range m.slots {
		if old.state == finished {
			m.slots[i] = r
			return r
		}
	}
	m.slots = append(m.slots, r)
	return r
}

func (r *request) enter(s state, p event.Peer, at int64) {
	r.state, r.at, r.since = s, p, at
}

func (m *Model) stepDone(p event.Peer, s *event.StepResult, at int64) {
	c := &m.cores[p]
	b := c.running
	if b == nil || b.id != s.Batch {
		b = &batch{id: s.Batch, core: p, rows: len(s.Rows)}
		c.rows, c.sampled = nil, nil
	}
	b.execNs = s.ExecNs
	for i := range c.rows {
		if r := m.reqs[c.rows[i].Req]; r != nil && r.state == running && r.at == p {
			r.enter(ready, p, at)
		}
	}
	for i := range s.Rows {
		row := &s.Rows[i]
		r := m.reqs[row.Req]
		if r == nil || r.state == finished {
			continue
		}
		r.settle()
		out := r.prompt + r.len()
		r.last = decision{core: p, row: row, batch: b, at: at, pos: out, emitted: out, prefill: r.seenBy&(1<<p) == 0, state: r.router, fields: r.fields, knobs: m.knobs}
		r.router = row.State
		m.hold = row.Hold
		if row.Action != event.Keep {
			r.last.shown = m.shown(row.Output.Token)
		}
		if i < len(c.sampled) && c.rows[c.sampled[i]].Req == row.Req {
			in := &c.rows[c.sampled[i]]
			r.last.waited = in.WaitedNs
			r.last.pos = in.Start + len(in.Tokens)
		}
		r.seenBy |= 1 << p
	}
	c.running, c.rows, c.sampled = nil, nil, c.sampled[:0]
}

func (m *Model) command(p event.Peer, cmd *event.Command, at int64) {
	m.noteLost(p, cmd)
	switch cmd.Kind {
	case event.Admit:
		r := m.request(cmd.Req, at)
		if r.state == waiting {
			r.enter(ready, p, at)
			r.prefill = true
		}
	case event.Reject:
		r := m.request(cmd.Req, at)
		m.finish(r, "error", at)
		m.note(eventLine{at: at, level: tape.Error, text: "request " + num(uint64(cmd.Req)) + " rejected: " + cmd.Text})
	case event.RunBatch:
		if cmd.Batch != nil {
			m.runBatch(p, cmd.Batch, at)
		}
	case event.SendPeer:
		m.sendPeer(p, cmd, at)
	case event.Emit:
		m.emit(p, cmd, at)
	case event.Finish:
		r := m.reqs[cmd.Req]
		if r == nil {
			return
		}
		if cmd.N > 0 {
			r.cut(cmd.N - r.prompt)
		}
		m.finish(r, cmd.Reason.String(), at)
	case event.Preempt:
		m.cores[p].lost = loss{cmd.Req, at, true}
	case event.Note:
		if r := m.reqs[cmd.Req]; r != nil && cmd.Note == event.NoteFault {
			r.overrule(p, cmd.Text)
		}
		m.noteCmd(p, cmd, at)
	}
}

// loss is a request whose KV its core has just taken.
type loss struct {
	req  event.ReqID
	at   int64
	open bool // not known yet what for
}

// noteLost warns of KV that a core took for want of blocks. That of a request
// which it hands off next was given back, as to an ordinary server (resubmit).
func (m *Model) noteLost(p event.Peer, next *event.Command) {
	l := m.cores[p].lost
	m.cores[p].lost.open = false
	switch {
	case !l.open:
	case next.Kind == event.SendPeer && next.Req == l.req:
		m.resubmits = true
	default:
		m.note(eventLine{at: l.at, level: tape.Warn, text: "KV of " + m.role(p) + " is short: a request lost its own and will feed it again"})
	}
}

func (m *Model) runBatch(p event.Peer, b *event.Batch, at int64) {
	c := &m.cores[p]
	c.running = &batch{id: b.ID, core: p, rule: b.Rule, rows: len(b.Rows), ready: b.Ready, b: b.B}
	c.rows, c.sampled = b.Rows, c.sampled[:0]
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.Sample {
			c.sampled = append(c.sampled, i)
		}
		if r := m.reqs[row.Req]; r != nil && r.state != finished {
			r.enter(running, p, at)
			r.prefill = row.Prefill
		}
	}
}

func (m *Model) sendPeer(p event.Peer, cmd *event.Command, at int64) {
	if cmd.Peer == nil || cmd.Peer.Status > event.Alive {
		return
	}
	r := m.reqs[cmd.Peer.ID]
	if r == nil || r.state == finished {
		return
	}
	if r.last.core == p {
		m.passedOn(r, cmd.Peer)
	}
	r.enter(inFlight, cmd.To, at)
	r.away = awayFrom(r.away, cmd.To, at)
}

func (m *Model) emit(p event.Peer, cmd *event.Command, at int64) {
	r := m.reqs[cmd.Req]
	if r == nil || r.state == finished {
		return
	}
	if w := cmd.Wrote - 1; w >= 0 && int(w) < m.n {
		p = w
	}
	t := token{id: cmd.Token, writer: p, at: at, by: r.decided(p, cmd), drops: r.dropsAt(cmd.Pos)}
	t.by.shown = ""
	if t.by.row != nil {
		t.at = t.by.at
	}
	var raw []byte
	if t.end = m.isEnd(cmd.Token); !t.end {
		raw = m.text(cmd.Token)
	}
	r.byRole[p]++
	r.prefill = false
	r.push(t, raw, m.theme.G.ASCII)
}

// finish ends a request and lets the oldest finished ones go.
func (m *Model) finish(r *request, reason string, at int64) {
	if r.state == finished {
		return
	}
	r.enter(finished, event.Front, at)
	r.reason, r.away, r.last, r.kept, r.drops, r.held = reason, 0, decision{}, nil, nil, nil
	m.ended++
	m.done = append(m.done, r)
	m.sum += len(r.tokens)
	for len(m.done) > keptFinished || m.sum > keptTokens && len(m.done) > 1 {
		old := m.done[0]
		m.done = m.done[1:]
		m.sum -= len(old.tokens)
		delete(m.reqs, old.id)
	}
}

func (m *Model) host(h tape.Host, at int64) {
	switch h := h.(type) {
	case *tape.Request:
		r := m.request(h.Req, at)
		r.task, r.question, r.answer = h.Task, h.Question, h.Answer
	case *tape.Result:
		m.result(h, at)
	case *tape.Telemetry:
		m.machine = h
	case *tape.Knob:
		m.knob(h)
		m.noteHost(h, at)
	case *tape.Plan:
		m.notePlan(h, at)
	case *tape.Closed:
		m.note(eventLine{at: at, level: tape.Info, text: "session closed: " + h.Reason})
	default:
		m.noteHost(h, at)
	}
}

// knob keeps the values that knobs have. Decisions share the maps, so a move
// makes new ones.
func (m *Model) knob(h *tape.Knob) {
	all, own := Knobs{}, map[string]float64{}
	maps.Copy(all, m.knobs)
	maps.Copy(own, all[h.Router])
	own[h.Knob] = h.New
	all[h.Router] = own
	m.knobs = all
}

func (m *Model) result(h *tape.Result, at int64) {
	r := m.reqs[h.Req]
	if r != nil {
		r.given = h.Answer
		switch {
		case h.Checked && h.Correct:
			r.right = 1
		case h.Checked:
			r.right = -1
		}
	}
	if h.Text != "" {
		m.note(eventLine{at: at, level: tape.Error, text: "request " + num(uint64(h.Req)) + ": " + h.Text})
	}
}
