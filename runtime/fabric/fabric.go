package fabric

import (
	"fmt"
	"maps"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// Receive answers a message that brings a request, as the router's receive
// would. v is what the receiving core knows of the request; its ID is 0 where
// that is nothing.
type Receive func(core event.Peer, m *event.PeerReq, v sched.View) event.Verdict

// Message is on its way between two cores: a request, or where Peer is nil the
// news of what the sender runs (Busy) or the active count. Messages of one link
// (From, To) arrive in the order sent.
type Message struct {
	Seq    uint64 // rising from 1 over the whole fabric
	From   event.Peer
	To     event.Peer
	SentAt int64
	Peer   *event.PeerReq
	Active int
	Busy   bool // N rows until Until
	N      int
	Until  int64
}

// Fabric is a cluster of cores. It belongs to one goroutine.
type Fabric struct {
	cfgs    []sched.Config
	cores   []*sched.Core
	links   []link // from x number of cores + to
	flying  int    // messages on their way
	seq     uint64
	receive Receive
	lost    map[event.ReqID]bool // whose pen died with a subserver; nil without restarts
}

// New joins one core per configuration; configuration i must be that of
// subserver i. A nil receive commits every suffix.
func New(cfgs []sched.Config, receive Receive) (*Fabric, error) {
	f := &Fabric{cfgs: slices.Clone(cfgs), receive: receive}
	for i, cfg := range cfgs {
		if int(cfg.Self) != i {
			return nil, fmt.Errorf("configuration %d is that of subserver %d", i, cfg.Self)
		}
		if len(cfg.Seats) != len(cfgs) {
			return nil, fmt.Errorf("subserver %d is configured for a cluster of %d, not %d", i, len(cfg.Seats), len(cfgs))
		}
		c, err := sched.New(cfg)
		if err != nil {
			return nil, err
		}
		f.cores = append(f.cores, c)
	}
	if len(f.cores) == 0 {
		return nil, fmt.Errorf("a fabric needs at least one subserver")
	}
	f.links = make([]link, len(f.cores)*len(f.cores))
	return f, nil
}

// Uniform is the configuration of a cluster: one entry of seats and kvTokens per
// subserver.
func Uniform(seats, kvTokens []int, block int) []sched.Config {
	cfgs := make([]sched.Config, len(seats))
	for i := range cfgs {
		cfgs[i] = sched.Config{Self: event.Peer(i), Seats: seats, KVTokens: kvTokens, Block: block}
	}
	return cfgs
}

// Len is the number of cores.
func (f *Fabric) Len() int { return len(f.cores) }

// Core is subserver p. Events must go through Step or Deliver, so that what it
// sends is seen.
func (f *Fabric) Core(p event.Peer) *sched.Core { return f.cores[p] }

// Step gives ev to core p and appends its commands to out. Messages among them
// are in flight from now on.
func (f *Fabric) Step(p event.Peer, ev *event.Event, out []event.Command) []event.Command {
	from := len(out)
	out = f.cores[p].Step(ev, out)
	for i := range out[from:] {
		cmd := &out[from+i]
		switch cmd.Kind {
		case event.SendPeer:
			f.launch(Message{From: p, To: cmd.To, SentAt: ev.At, Peer: cmd.Peer})
		case event.TellActive:
			f.tell(Message{From: p, SentAt: ev.At, Active: cmd.N})
		case event.TellBusy:
			f.tell(Message{From: p, SentAt: ev.At, Busy: true, N: cmd.N, Until: cmd.At})
		}
	}
	return out
}

// tell launches m to everybody else.
func (f *Fabric) tell(m Message) {
	for to := range f.cores {
		if m.To = event.Peer(to); m.To != m.From {
			f.launch(m)
		}
	}
}

// Deliver takes the next message of link from -> to to its receiver at time at.
// It returns the event that the receiver saw and appends its commands to out; ok
// is false when nothing is on its way there.
func (f *Fabric) Deliver(from, to event.Peer, at int64, out []event.Command) (ev event.Event, cmds []event.Command, ok bool) {
	l := f.link(from, to)
	if l == nil {
		return event.Event{}, out, false
	}
	m := l.take()
	f.flying--
	switch {
	case m.Peer != nil:
		ev = event.Event{Kind: event.PeerIn, At: at, Peer: m.Peer, Verdict: f.verdict(to, m.Peer)}
	case m.Busy:
		ev = event.Event{Kind: event.Busy, At: at, From: m.From, N: m.N, Until: m.Until}
	default:
		ev = event.Event{Kind: event.Active, At: at, N: m.Active}
	}
	cmds = f.Step(to, &ev, out)
	// Who was asked to send again may have been restarted meanwhile.
	if f.lost != nil && m.Peer != nil && m.Peer.Status == event.Resend && f.pens(m.Peer.ID) == 0 {
		f.lost[m.Peer.ID] = true
	}
	return ev, cmds, true
}

// Restart replaces subserver p by one that knows nothing. Requests whose pen it
// held are lost with it and end by the time-out of the front; all others go on,
// as it asks for what it lacks. The front cannot be restarted: it is the home of
// every request.
func (f *Fabric) Restart(p event.Peer) error {
	if p <= event.Front || int(p) >= len(f.cores) {
		return fmt.Errorf("subserver %d cannot be restarted in a cluster of %d; only those behind the front can", p, len(f.cores))
	}
	c, err := sched.New(f.cfgs[p])
	if err != nil {
		return err
	}
	old := f.cores[p]
	f.cores[p] = c
	if f.lost == nil {
		f.lost = map[event.ReqID]bool{}
	}
	pens := f.allPens()
	for _, id := range old.Requests() {
		if pens[id] == 0 {
			f.lost[id] = true
		}
	}
	return nil
}

// Lost says whether the pen of a request died with a subserver.
func (f *Fabric) Lost(id event.ReqID) bool { return f.lost[id] }

func (f *Fabric) verdict(to event.Peer, m *event.PeerReq) event.Verdict {
	if f.receive == nil || m.Status != event.New && m.Status != event.Alive {
		return event.Verdict{}
	}
	v, _ := f.cores[to].View(m.ID)
	return f.receive(to, m, v)
}

// Clone returns a fabric that continues exactly as this one would. The receive
// function is shared.
func (f *Fabric) Clone() *Fabric {
	g := &Fabric{cfgs: f.cfgs, links: make([]link, len(f.links)), flying: f.flying, seq: f.seq, receive: f.receive, lost: maps.Clone(f.lost)}
	for i := range f.links {
		g.links[i].queue = slices.Clone(f.links[i].waiting())
	}
	for _, c := range f.cores {
		g.cores = append(g.cores, c.Clone())
	}
	return g
}

// Idle says whether nothing is left: no message in flight, no request anywhere
// and every KV pool free.
func (f *Fabric) Idle() bool {
	if f.flying > 0 {
		return false
	}
	for _, c := range f.cores {
		l := c.Load()
		if l.Ready+l.Running+l.Pending+l.Waiting+l.KVUsed > 0 || c.In(sched.Ready)+c.In(sched.Ended) > 0 || c.Running() != nil {
			return false
		}
	}
	return true
}
