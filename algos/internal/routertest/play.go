package routertest

import (
	"slices"
	"testing"

	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// Play runs a request under a router. A fault fails the test, and so does what a
// subserver may not ask for: a second DROP of a position, a TRUNCATE of what has
// been emitted or not beyond the one before.
func Play(t testing.TB, run reference.Run, vms []*scripting.VM) reference.Result {
	t.Helper()
	p := NewPlayer(t, run, vms)
	for p.Step() {
		continue
	}
	return p.Result()
}

// Player is a request under way.
type Player struct {
	t   testing.TB
	run reference.Run
	vms []*scripting.VM
	w   *reference.Writer

	self    event.Peer
	state   []byte
	fields  []byte
	left    int // tokens of the budget, 0 none
	emitted int
	at      []place // of each subserver
	done    bool
	swapped bool
}

// place is what a subserver knows of the request.
type place struct {
	held    []event.Token
	visited bool
	sampled bool
	dropped int // last position that it dropped
	cut     int // last position that it truncated to
}

// NewPlayer begins a request at the front.
func NewPlayer(t testing.TB, run reference.Run, vms []*scripting.VM) *Player {
	p := &Player{
		t: t, run: run, vms: vms, w: run.Begin(), self: event.Front,
		emitted: len(run.Prompt), at: make([]place, len(vms)),
	}
	for i := range p.at {
		p.at[i].dropped, p.at[i].cut = -1, -1
	}
	p.at[event.Front].visited = true
	return p
}

// Result is what has been written.
func (p *Player) Result() reference.Result { return p.w.Result }

// Swap lets another router decide from the next step on, as a reload does. What the
// old one had dropped, and the new one would drop again, is kept, as the core does.
func (p *Player) Swap(to *scripting.Program) {
	p.t.Helper()
	p.swapped = true
	for _, vm := range p.vms {
		if err := vm.Swap(to); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Step makes one decode step and says whether the request goes on.
func (p *Player) Step() bool {
	p.t.Helper()
	o := p.w.Next(p.self)
	here := &p.at[p.self]
	row := scripting.Row{
		Req: p.run.Req, Output: &o, Pos: p.w.Pos(), PromptLen: len(p.run.Prompt), Step: p.w.Len(),
		Prefill: !here.sampled, State: p.state, Fields: p.fields, Emitted: p.emitted, Last: p.w.Last(o),
	}
	here.sampled = true
	d := p.vms[p.self].Route(&row)
	if d.Fault != "" {
		p.t.Fatal(d.Fault)
	}
	p.state = d.State
	if p.swapped && p.gone(d) {
		d = scripting.Decision{Dest: event.Front}
	}
	switch d.Action {
	case event.Keep:
		if !p.commit(o) {
			return false
		}
		if p.left > 0 {
			if p.left--; p.left == 0 {
				d.Dest = event.Front
			}
		}
	case event.Drop:
		p.once(d.Dest, p.w.Pos())
		p.w.Drop(p.self, o)
	case event.Truncate:
		if d.At > p.w.Pos() || d.At < p.emitted || d.At <= here.cut {
			p.t.Fatalf("subserver %d truncates to %d at %d: %d are emitted, it has truncated to %d", p.self, d.At, p.w.Pos(), p.emitted, here.cut)
		}
		p.once(d.Dest, d.At)
		here.cut = d.At
		p.w.Truncate(p.self, o, d.At)
	}
	here.held = slices.Clone(p.w.Tokens())
	return d.Dest == p.self || p.handOver(&row, d.Dest)
}

// gone says that a decision gives away a position that this subserver has given
// away before.
func (p *Player) gone(d scripting.Decision) bool {
	here := &p.at[p.self]
	switch d.Action {
	case event.Drop:
		return here.dropped >= p.w.Pos()
	case event.Truncate:
		return here.dropped >= d.At || d.At <= here.cut
	}
	return false
}

// once fails the test where the pen stays with who gives a position away, or has
// given it away before.
func (p *Player) once(dest event.Peer, pos int) {
	p.t.Helper()
	here := &p.at[p.self]
	if dest == p.self {
		p.t.Fatalf("subserver %d gives position %d to itself", p.self, pos)
	}
	if here.dropped >= pos {
		p.t.Fatalf("subserver %d drops twice at %d", p.self, pos)
	}
	here.dropped = pos
}

func (p *Player) commit(o event.Output) bool {
	on := p.w.Commit(p.self, o)
	p.emitted = max(p.emitted, p.w.Pos()-p.vms[p.self].Program().Hold)
	return on
}

// handOver brings the request to another subserver, which takes it over as its
// receive says.
func (p *Player) handOver(row *scripting.Row, dest event.Peer) bool {
	p.t.Helper()
	budget, fields, fault := p.vms[p.self].Send(row, dest)
	if fault != "" {
		p.t.Fatal(fault)
	}
	tokens, there := p.w.Tokens(), &p.at[dest]
	msg := event.PeerReq{
		ID: p.run.Req, From: p.self, Status: event.Alive, Budget: budget, State: p.state, Fields: fields,
		Limits: event.Limits{PromptLen: len(p.run.Prompt), MaxLen: len(p.run.Prompt) + p.run.MaxTokens, EOS: p.run.EOS},
	}
	if !there.visited {
		msg.Status, there.visited = event.New, true
	}
	for msg.Loc < min(len(there.held), len(tokens)) && there.held[msg.Loc] == tokens[msg.Loc] {
		msg.Loc++
	}
	there.held = there.held[:msg.Loc]
	msg.Suffix = tokens[msg.Loc:]
	v := p.vms[dest].Receive(&msg, there.held)
	if v.Fault != "" {
		p.t.Fatal(v.Fault)
	}
	p.self, p.fields, p.left = dest, fields, budget
	if v.Kind == event.Append {
		for _, id := range v.Ids[len(msg.Suffix):] {
			if !p.commit(event.Output{Token: id}) {
				return false
			}
		}
	}
	there.held = slices.Clone(p.w.Tokens())
	return true
}
