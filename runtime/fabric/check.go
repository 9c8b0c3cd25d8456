package fabric

import (
	"fmt"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// Check tests every core and what only the whole cluster shows: one pen per
// admitted request, and tokens that agree wherever they are known to have been
// emitted. Those that are held back may be cut, so that they differ from what
// others hold of them.
func (f *Fabric) Check() error {
	for p, c := range f.cores {
		if err := c.Check(); err != nil {
			return fmt.Errorf("subserver %d: %w", p, err)
		}
	}
	home := f.cores[event.Front]
	pens := f.allPens()
	for _, id := range home.Requests() {
		v, _ := home.View(id)
		if v.Phase == sched.Waiting || v.Phase == sched.Ended {
			continue
		}
		longest := v
		for _, c := range f.cores {
			if w, ok := c.View(id); ok && w.Emitted > longest.Emitted {
				longest = w
			}
		}
		want := 1
		if f.lost[id] {
			want = 0
		}
		if n := pens[id]; n != want {
			return fmt.Errorf("INV-2: %d pens write request %d in place of %d", n, id, want)
		}
		for p, c := range f.cores {
			if err := prefix(c, id, longest.Tokens); err != nil {
				return fmt.Errorf("subserver %d: %w", p, err)
			}
		}
	}
	return nil
}

// pens counts the cores and messages that may write request id.
func (f *Fabric) pens(id event.ReqID) (n int) {
	for i := range f.links {
		for _, m := range f.links[i].waiting() {
			if m.Peer != nil && m.Peer.ID == id && carriesPen(&m) {
				n++
			}
		}
	}
	for _, c := range f.cores {
		if holdsPen(c, id) {
			n++
		}
	}
	return n
}

// allPens counts them for every request at once.
func (f *Fabric) allPens() map[event.ReqID]int {
	pens := map[event.ReqID]int{}
	for i := range f.links {
		for _, m := range f.links[i].waiting() {
			if m.Peer != nil && carriesPen(&m) {
				pens[m.Peer.ID]++
			}
		}
	}
	for _, c := range f.cores {
		for _, id := range c.Requests() {
			if holdsPen(c, id) {
				pens[id]++
			}
		}
	}
	return pens
}

func holdsPen(c *sched.Core, id event.ReqID) bool {
	v, ok := c.View(id)
	return ok && (v.Phase == sched.Ready || v.Phase == sched.Running)
}

// carriesPen says whether nobody but the message may write its request.
func carriesPen(m *Message) bool {
	switch m.Peer.Status {
	case event.New, event.Alive:
		return true
	case event.Resend:
		return m.Peer.Hop > 0 // at hop 0 it only asks whether the request lives
	case event.Finished, event.Error:
		return m.To == event.Front
	}
	return false
}

func prefix(c *sched.Core, id event.ReqID, tokens []event.Token) error {
	v, ok := c.View(id)
	if !ok {
		return nil
	}
	for i, t := range v.Tokens[:v.Emitted] {
		if t != tokens[i] {
			return fmt.Errorf("INV-9: position %d of request %d is token %d here and %d elsewhere", i, id, t, tokens[i])
		}
	}
	return nil
}
