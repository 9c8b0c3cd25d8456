package export

import (
	"io"
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/rows"
)

// TraceCounts says what a trace holds.
type TraceCounts struct {
	Batches  int
	Requests int
	Flows    int
}

// Perfetto writes a trace in the Chrome JSON format, times in microseconds:
//
//   - a process per subserver with a track of its batches (never overlapping)
//     and counters for ready, running, pending, waiting, active, B and KV;
//   - a process of requests: each takes the lowest free lane for its life, and
//     within it slices say who holds the pen (waiting, a role, in flight);
//   - a flow per hand-off from the batch that sent it to the batch that took it;
//   - instants for routers, knobs, settings, policies, faults and messages;
//   - counters of the machine.
func (s *Session) Perfetto(w io.Writer) (TraceCounts, error) {
	x, err := rows.NewIndex(s)
	if err != nil {
		return TraceCounts{}, err
	}
	t := trace{
		w:     newTraceWriter(w, s.Name),
		x:     x,
		roles: rolesOf(s, x),
		reqs:  map[event.ReqID]*request{},
	}
	t.head()
	for r, err := range s.Records() {
		if err != nil {
			return t.n, err
		}
		t.record(&r)
		if t.w.err != nil {
			return t.n, t.w.err
		}
	}
	t.tail()
	return t.n, t.w.close()
}

// firstLane is the track of the first lane of requests. All other processes
// have one track, numbered as they are: some readers take track numbers for
// unique in the whole file.
const firstLane = 1000

type trace struct {
	w     *traceWriter
	x     *rows.Index
	roles []string
	cores []*coreTrack
	reqs  map[event.ReqID]*request
	lanes []bool // lane i is taken
	flows uint64
	n     TraceCounts
}

// coreTrack is what is known of one subserver.
type coreTrack struct {
	batch    *event.Batch
	start    int64
	arrivals []arrow // hand-offs that the running batch takes up
	sent     span    // the last finished batch, while its commands are read
	load     *tape.Load
}

// span is a time from start to end, ns.
type span struct{ start, end int64 }

// arrow is a hand-off on its way.
type arrow struct {
	from, to event.Peer
	at       int64 // when the sending batch began
	sent     bool
}

func (t *trace) pid(p event.Peer) int { return int(p) + 1 }
func (t *trace) pidRequests() int     { return len(t.cores) + 1 }
func (t *trace) pidRun() int          { return len(t.cores) + 2 }
func (t *trace) pidMachine() int      { return len(t.cores) + 3 }

func (t *trace) head() {
	n := max(t.x.Cores, len(t.roles))
	for range n {
		t.cores = append(t.cores, &coreTrack{})
	}
	t.w.process(t.pidRun(), 0, "run")
	t.w.track(t.pidRun(), t.pidRun(), "events")
	for i := range n {
		t.w.process(i+1, i+1, role(t.roles, event.Peer(i)))
		t.w.track(i+1, i+1, "batches")
	}
	t.w.process(t.pidRequests(), n+1, "requests")
	t.w.process(t.pidMachine(), n+2, "machine")
}

func (t *trace) record(r *tape.Record) {
	switch r.Kind {
	case tape.KindEvent:
		if r.Core >= 0 {
			t.event(r, t.cores[r.Core])
		}
	case tape.KindCommand:
		if r.Core >= 0 {
			t.command(r, t.cores[r.Core])
		}
	case tape.KindLoad:
		if r.Core >= 0 {
			t.load(r, t.cores[r.Core])
		}
	case tape.KindHost:
		t.host(r)
	}
}

func (t *trace) event(r *tape.Record, c *coreTrack) {
	c.sent = span{}
	e := r.Event
	switch e.Kind {
	case event.Arrive:
		t.arrive(e, r.At)
	case event.StepDone:
		if e.Step != nil && c.batch != nil && e.Step.Batch == c.batch.ID {
			c.sent = span{c.start, max(c.start, r.At)}
			t.batch(r.Core, c, c.sent.end, e.Step)
		}
	case event.PeerIn:
		t.taken(e.Peer, r)
	case event.SetPolicy:
		if p := e.Policy; p != nil && r.Core == event.Front {
			t.w.instant(t.pidRun(), t.pidRun(), "policy", "policy "+p.Form(), "g", r.At)
			t.w.argInt("w_us", p.W/1000)
			t.w.end()
		}
	}
}

func (t *trace) command(r *tape.Record, c *coreTrack) {
	cmd := r.Command
	switch cmd.Kind {
	case event.RunBatch:
		if cmd.Batch != nil {
			t.run(r.Core, c, cmd.Batch, max(r.At, c.sent.end))
		}
	case event.Admit:
		t.pen(cmd.Req, role(t.roles, r.Core), r.At)
	case event.Reject, event.Finish:
		t.finish(cmd, r.At)
	case event.Emit:
		t.commit(cmd.Req, role(t.roles, r.Writer()))
	case event.SendPeer:
		t.send(r, c)
	case event.Note:
		if cmd.Note != event.NoteBudget && cmd.Note != event.NoteDead && r.Core >= 0 {
			t.w.instant(t.pid(r.Core), t.pid(r.Core), "note", cmd.Note.String(), "p", r.At)
			t.w.argInt("request", int64(cmd.Req))
			t.w.argText("text", cmd.Text)
			t.w.end()
		}
	}
}

// run begins a batch and hands it the arrows that end in it.
func (t *trace) run(p event.Peer, c *coreTrack, b *event.Batch, at int64) {
	if c.batch != nil {
		t.batch(p, c, at, nil)
	}
	c.batch, c.start = b, at
	for i := range b.Rows {
		if q := t.reqs[b.Rows[i].Req]; q != nil && q.flow.sent && q.flow.to == p {
			c.arrivals = append(c.arrivals, q.flow)
			q.flow = arrow{}
		}
	}
}

// batch writes the finished batch of subserver p; st is nil if its end is not
// on the tape.
func (t *trace) batch(p event.Peer, c *coreTrack, end int64, st *event.StepResult) {
	b, w, pid := c.batch, t.w, t.pid(p)
	tokens, prefill := 0, 0
	for i := range b.Rows {
		tokens += len(b.Rows[i].Tokens)
		if b.Rows[i].Prefill {
			prefill++
		}
	}
	name := "mixed"
	switch prefill {
	case 0:
		name = "decode"
	case len(b.Rows):
		name = "prefill"
	}
	w.slice(pid, pid, batchCat, name, c.start, end, micros(end))
	w.argInt("batch", int64(b.ID))
	w.argInt("rows", int64(len(b.Rows)))
	w.argInt("prefill_rows", int64(prefill))
	w.argInt("tokens", int64(tokens))
	w.argText("rule", b.Rule.String())
	w.argInt("ready", int64(b.Ready))
	w.argInt("B", int64(b.B))
	w.arg("requests")
	for i := range b.Rows {
		w.b = append(w.b, "[,"[min(i, 1)])
		w.b = strconv.AppendUint(w.b, uint64(b.Rows[i].Req), 10)
	}
	if len(b.Rows) == 0 {
		w.b = append(w.b, '[')
	}
	w.b = append(w.b, ']')
	switch {
	case st == nil:
		w.argText("end", "not on the tape")
	case st.Err != "":
		w.argText("error", st.Err)
	default:
		drops := 0
		for i := range st.Rows {
			if st.Rows[i].Action != event.Keep {
				drops++
			}
		}
		w.argInt("drops", int64(drops))
		w.argMicros("exec_us", st.ExecNs)
		w.argMicros("route_us", st.RouteNs)
	}
	w.end()
	t.n.Batches++
	if end == c.start { // no viewer can draw an arrow to it
		c.arrivals = c.arrivals[:0]
	}
	for _, a := range c.arrivals {
		t.flows++
		t.n.Flows++
		w.flow('s', t.pid(a.from), t.flows, a.at)
		w.flow('f', pid, t.flows, c.start)
	}
	c.arrivals, c.batch = c.arrivals[:0], nil
	if st != nil {
		t.truncations(pid, end, st)
	}
}

// truncations marks where tokens were taken back.
func (t *trace) truncations(pid int, at int64, st *event.StepResult) {
	for i := range st.Rows {
		row := &st.Rows[i]
		if row.Action != event.Truncate {
			continue
		}
		t.w.instant(pid, pid, "router", row.Action.String(), "t", at)
		t.w.argInt("request", int64(row.Req))
		t.w.argInt("to", int64(row.At))
		if row.Scored {
			t.w.arg("score")
			t.w.b = appendFloat(t.w.b, row.Score)
		}
		t.w.end()
	}
}

func (t *trace) tail() {
	for i, c := range t.cores {
		if c.batch != nil {
			t.batch(event.Peer(i), c, max(c.start, t.x.LastAt), nil)
		}
	}
	t.finishAll()
}
