package export

import (
	"cmp"
	"slices"
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// request is an unfinished request on its lane. Its slices are written when it
// ends: the outer one first, then who held the pen.
type request struct {
	id     event.ReqID
	lane   int
	start  int64
	prompt int
	hops   int
	pens   []pen
	flow   arrow
}

// pen is a time during which one subserver, or a message, had the request. It
// ends where the next one begins.
type pen struct {
	name   string
	at     int64
	tokens int // committed during it
}

const (
	penWaiting = "waiting"
	penFlight  = "in flight"
)

func (t *trace) arrive(e *event.Event, at int64) {
	if t.reqs[e.Req] != nil {
		return
	}
	lane := slices.Index(t.lanes, false)
	if lane < 0 {
		lane = len(t.lanes)
		t.lanes = append(t.lanes, false)
		t.w.track(t.pidRequests(), firstLane+lane, "lane "+strconv.Itoa(lane+1))
	}
	t.lanes[lane] = true
	q := &request{id: e.Req, lane: lane, start: at, pens: []pen{{name: penWaiting, at: at}}}
	if e.Arrival != nil {
		q.prompt = len(e.Arrival.Prompt)
	}
	t.reqs[e.Req] = q
	t.n.Requests++
}

// pen passes the pen of a request to name.
func (t *trace) pen(id event.ReqID, name string, at int64) {
	if q := t.reqs[id]; q != nil {
		q.pass(name, at)
	}
}

func (q *request) pass(name string, at int64) {
	if last := q.pens[len(q.pens)-1]; last.name != name {
		q.pens = append(q.pens, pen{name: name, at: max(at, last.at)})
	}
}

// commit counts a token for the time in which its writer had the pen, which
// may be over when the record comes.
func (t *trace) commit(id event.ReqID, writer string) {
	q := t.reqs[id]
	if q == nil {
		return
	}
	for i := len(q.pens) - 1; i >= 0; i-- {
		if q.pens[i].name == writer {
			q.pens[i].tokens++
			return
		}
	}
}

// send puts a request in flight. The arrow is tied to the sending batch.
func (t *trace) send(r *tape.Record, c *coreTrack) {
	m := r.Command.Peer
	if m == nil || m.Status != event.New && m.Status != event.Alive {
		return
	}
	q := t.reqs[m.ID]
	if q == nil {
		return
	}
	q.pass(penFlight, r.At)
	q.hops++
	if c.sent.end > c.sent.start {
		q.flow = arrow{from: r.Core, to: r.Command.To, at: c.sent.start, sent: true}
	}
}

// taken ends a flight where the message arrives.
func (t *trace) taken(m *event.PeerReq, r *tape.Record) {
	if m == nil || m.Status != event.New && m.Status != event.Alive {
		return
	}
	if q := t.reqs[m.ID]; q != nil && q.pens[len(q.pens)-1].name == penFlight {
		q.pass(role(t.roles, r.Core), r.At)
	}
}

func (t *trace) finish(c *event.Command, at int64) {
	q := t.reqs[c.Req]
	if q == nil {
		return
	}
	delete(t.reqs, c.Req)
	how := c.Reason.String()
	if c.Kind == event.Reject {
		how = "rejected"
	}
	t.request(q, at, how)
	t.lanes[q.lane] = false
}

// finishAll writes the requests that the tape leaves unfinished.
func (t *trace) finishAll() {
	open := make([]*request, 0, len(t.reqs))
	for _, q := range t.reqs {
		open = append(open, q)
	}
	slices.SortFunc(open, func(a, b *request) int { return cmp.Compare(a.id, b.id) })
	for _, q := range open {
		t.request(q, t.x.LastAt, "unfinished")
	}
}

func (t *trace) request(q *request, end int64, how string) {
	end = max(end, q.pens[len(q.pens)-1].at)
	w, pid, tid := t.w, t.pidRequests(), firstLane+q.lane
	outer := w.slice(pid, tid, "request", "request "+strconv.FormatUint(uint64(q.id), 10), q.start, end, micros(end))
	w.argText("task", t.x.Tasks[q.id])
	w.argText("end", how)
	w.argInt("prompt_tokens", int64(q.prompt))
	if e, ok := t.x.Ends[q.id]; ok {
		w.argInt("tokens", int64(max(0, e.Len-q.prompt)))
	}
	w.argInt("handoffs", int64(q.hops))
	w.end()
	for i := range q.pens {
		p := &q.pens[i]
		until := end
		if i+1 < len(q.pens) {
			until = q.pens[i+1].at
		}
		if until == p.at {
			continue
		}
		w.slice(pid, tid, "pen", p.name, p.at, until, min(micros(until), outer))
		w.argInt("request", int64(q.id))
		w.argInt("tokens", int64(p.tokens))
		w.end()
	}
}
