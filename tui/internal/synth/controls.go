package synth

import (
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Host puts a record from around the cores on the tape now.
func (c *Cluster) Host(h tape.Host) { c.host(h) }

// Note puts a note of a core on the tape now.
func (c *Cluster) Note(core event.Peer, kind event.NoteKind, text string) {
	c.cmd(core, &event.Command{Kind: event.Note, Note: kind, Text: text})
}

// SetB sets fixed thresholds; none at all is eager.
func (c *Cluster) SetB(b ...int) {
	p := event.Policy{Kind: event.Fixed, B: b}
	if len(b) == 0 {
		p.Kind = event.Eager
	}
	c.SetPolicy(p)
}

// SetPolicy changes the policy. Look-ahead is played by the thresholds in B: the
// records are those of it, the decisions are not.
func (c *Cluster) SetPolicy(p event.Policy) {
	p.W = c.guard()
	c.policy = p
	for i := range c.cores {
		c.ev(event.Peer(i), &event.Event{Kind: event.SetPolicy, Policy: &p})
	}
}

// guard is W: twice the slowest step.
func (c *Cluster) guard() int64 { return 2 * slices.Max(c.cfg.Steps) }

// SetFull lets the ready requests of a subserver find no KV, or find it again.
func (c *Cluster) SetFull(core event.Peer, full bool) {
	k := &c.cores[core]
	k.full = full
	if full {
		for _, r := range k.ready {
			c.cmd(core, &event.Command{Kind: event.Note, Note: event.NoteFull, Req: r.id, N: 4})
		}
	}
}

// SetStalled lets a subserver start no batch, as one whose driver is too slow.
func (c *Cluster) SetStalled(core event.Peer, stalled bool) { c.cores[core].stalled = stalled }

// Delay lets the running batch of a subserver take longer; false if none runs.
func (c *Cluster) Delay(core event.Peer, ns int64) bool {
	k := &c.cores[core]
	if k.running == nil {
		return false
	}
	k.until += ns
	return true
}

// Preempt takes the KV of a request that is ready at a subserver; false if none
// is.
func (c *Cluster) Preempt(core event.Peer) bool {
	k := &c.cores[core]
	if len(k.ready) == 0 {
		return false
	}
	r := k.ready[len(k.ready)-1]
	r.lost[core], r.held[core] = r.prompt+r.pos-1, false
	c.cmd(core, &event.Command{Kind: event.Preempt, Req: r.id, N: r.lost[core]})
	return true
}

// Skip lets t ns pass in which nothing happens, as in a pause.
func (c *Cluster) Skip(t int64) {
	c.now += t
	for i := range c.cores {
		k := &c.cores[i]
		k.until += t
		for j := range k.since {
			k.since[j] += t
		}
	}
	for i := range c.mail {
		c.mail[i].at += t
	}
}
