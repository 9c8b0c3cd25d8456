package replay

import (
	"bytes"
	"fmt"
	"iter"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/store"
)

// Session replays a session from disk. A session that was not closed is replayed
// up to where it was cut, which the report says. An error is a session that
// cannot be read; that it differs is none.
func Session(o *store.Opened) (Report, error) {
	cluster, err := o.Manifest.Cluster()
	if err != nil {
		return Report{}, fmt.Errorf("the session %s cannot be replayed: %w", o.Path, err)
	}
	r, err := Records(cluster, o.Records())
	if !o.Report.Whole() {
		r.Cut = o.Report.String()
		r.Corrupt = o.Report.Cut != nil && o.Report.Cut.Corrupt
	}
	r.end(r.Cut == "")
	return r, err
}

// Records replays the records of a run of cores set up as cluster, in the order
// of the tape; events have to be as a session gives them back. What the cores
// would go on to order behind the last record is in Report.Behind.
func Records(cluster []sched.Config, records iter.Seq2[tape.Record, error]) (Report, error) {
	p := player{links: make([][]event.Event, len(cluster)*len(cluster))}
	for i := range cluster {
		c, err := sched.New(cluster[i])
		if err != nil {
			return Report{}, err
		}
		p.cores = append(p.cores, core{Core: c, self: event.Peer(i)})
	}
	p.report.Cores = len(p.cores)
	for r, err := range records {
		if err == nil {
			err = p.record(&r)
		}
		if err != nil || p.report.Diff != nil {
			return p.report, err
		}
	}
	p.behind()
	return p.report, nil
}

// core is a subserver that is fed again.
type core struct {
	*sched.Core
	self event.Peer
	want []event.Command // ordered by its last event
	next int             // of them, the first that the tape still has to have
	at   int64           // of that event
}

// player is a replay under way.
type player struct {
	cores  []core
	links  [][]event.Event // by sender and receiver: what was sent and has not come in
	report Report
	seq    uint64
	a, b   []byte // encodings to compare
}

func (p *player) record(r *tape.Record) error {
	rep := &p.report
	if p.seq > 0 && r.Seq > p.seq+1 {
		rep.Missing += r.Seq - p.seq - 1
	}
	p.seq = r.Seq
	rep.Records++
	if r.Event == nil && r.Command == nil {
		return nil
	}
	if r.Core < 0 || int(r.Core) >= len(p.cores) {
		return fmt.Errorf("record %d is of subserver %d of a cluster of %d", r.Seq, r.Core, len(p.cores))
	}
	c := &p.cores[r.Core]
	if r.Event != nil {
		rep.Events++
		p.event(c, r)
	} else {
		rep.Commands++
		p.command(c, r)
	}
	return nil
}

// event tells a core the next fact.
func (p *player) event(c *core, r *tape.Record) {
	if c.next < len(c.want) {
		p.differ(r, "the event "+r.Event.String(), c.want[c.next].String())
		return
	}
	if !p.arrived(c.self, r) {
		return
	}
	var failed string
	c.want, failed = step(c.Core, r.Event, c.want[:0])
	c.next, c.at = 0, r.At
	if failed != "" {
		p.differ(r, "the event "+r.Event.String(), "nothing: it fails ("+failed+")")
	}
}

// step is Step of a core whose events may come from a damaged session.
func step(c *sched.Core, ev *event.Event, out []event.Command) (cmds []event.Command, failed string) {
	defer func() {
		if x := recover(); x != nil {
			failed = fmt.Sprint(x)
		}
	}()
	return c.Step(ev, out), ""
}

// command holds a recorded order against the core's.
func (p *player) command(c *core, r *tape.Record) {
	if c.next == len(c.want) {
		p.differ(r, r.Command.String(), "nothing")
		return
	}
	want := &c.want[c.next]
	c.next++
	p.a = event.AppendCommand(p.a[:0], r.Command)
	p.b = event.AppendCommand(p.b[:0], want)
	if !bytes.Equal(p.a, p.b) {
		p.differ(r, sayCommand(r.Command, want), sayCommand(want, r.Command))
		return
	}
	switch want.Kind {
	case event.SendPeer:
		p.send(c.self, want.To, event.Event{Kind: event.PeerIn, Peer: want.Peer})
	case event.TellActive:
		p.tell(c.self, event.Event{Kind: event.Active, N: want.N})
	case event.TellBusy:
		p.tell(c.self, event.Event{Kind: event.Busy, From: c.self, N: want.N, Until: want.At})
	}
}

func (p *player) send(from, to event.Peer, ev event.Event) {
	l := &p.links[int(from)*len(p.cores)+int(to)]
	*l = append(*l, ev)
	p.report.inFlight++
	p.report.Most = max(p.report.Most, p.report.inFlight)
}

func (p *player) tell(from event.Peer, ev event.Event) {
	for to := range p.cores {
		if event.Peer(to) != from {
			p.send(from, event.Peer(to), ev)
		}
	}
}

// arrived says whether an event that comes from another core is the next thing
// sent on its link. Links deliver in order, messages and news alike.
func (p *player) arrived(self event.Peer, r *tape.Record) bool {
	ev := r.Event
	from := event.None
	sent := event.Event{Kind: ev.Kind}
	switch ev.Kind {
	case event.PeerIn:
		sent.Peer = ev.Peer
		if ev.Peer != nil {
			from = ev.Peer.From
		}
	case event.Active:
		from, sent.N = event.Front, ev.N
	case event.Busy:
		from, sent.From, sent.N, sent.Until = ev.From, ev.From, ev.N, ev.Until
	default:
		return true
	}
	if from < 0 || int(from) >= len(p.cores) {
		p.differ(r, "the event "+ev.String(), "nothing: there is no such sender")
		return false
	}
	l := &p.links[int(from)*len(p.cores)+int(self)]
	if len(*l) == 0 {
		p.differ(r, "the event "+ev.String(), fmt.Sprintf("nothing: subserver %d has sent nothing that is under way", from))
		return false
	}
	next := &(*l)[0]
	p.a = event.AppendEvent(p.a[:0], &sent)
	p.b = event.AppendEvent(p.b[:0], next)
	if !bytes.Equal(p.a, p.b) {
		p.differ(r, "the event "+sayEvent(&sent, next), fmt.Sprintf("as the next message of subserver %d: %s", from, sayEvent(next, &sent)))
		return false
	}
	if ev.Kind == event.PeerIn {
		p.report.Messages++
	}
	p.report.inFlight--
	if *l = (*l)[1:]; len(*l) == 0 {
		*l = nil
	}
	return true
}

func (p *player) differ(r *tape.Record, tape, core string) {
	tape, core = window(tape, core)
	p.report.Diff = &Difference{Record: r.Seq, At: r.At, Peer: r.Core, Role: event.Role(r.Core, len(p.cores)), Tape: tape, Core: core}
}

// behind notes the first order that no record follows.
func (p *player) behind() {
	for i := range p.cores {
		c := &p.cores[i]
		if c.next < len(c.want) {
			p.report.Behind = &Difference{
				Record: p.seq + 1, At: c.at, Peer: c.self, Role: event.Role(c.self, len(p.cores)),
				Tape: "no record any more", Core: c.want[c.next].String(),
			}
			return
		}
	}
}
