package fabric

import (
	"fmt"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// Check tests every core and what only the whole cluster shows: one pen per
// admitted request, and tokens that agree wherever they are held.
func (f *Fabric) Check() error {
	for p, c := range f.cores {
		if err := c.Check(); err != nil {
			return fmt.Errorf("subserver %d: %w", p, err)
		}
	}
	pens := map[event.ReqID]int{}
	for i := range f.flight {
		if m := &f.flight[i]; m.Peer != nil && carriesPen(m) {
			pens[m.Peer.ID]++
		}
	}
	home := f.cores[event.Front]
	for _, id := range home.Requests() {
		v, _ := home.View(id)
		if v.Phase == sched.Waiting || v.Phase == sched.Ended {
			continue
		}
		n := pens[id]
		longest := v
		for _, c := range f.cores {
			w, ok := c.View(id)
			if !ok {
				continue
			}
			if w.Phase == sched.Ready || w.Phase == sched.Running {
				n++
			}
			if len(w.Tokens) > len(longest.Tokens) {
				longest = w
			}
		}
		if n != 1 {
			return fmt.Errorf("INV-2: %d pens write request %d", n, id)
		}
		for p, c := range f.cores {
			if err := prefix(c, id, longest.Tokens); err != nil {
				return fmt.Errorf("subserver %d: %w", p, err)
			}
		}
	}
	return nil
}

// carriesPen says whether nobody but the message may write its request.
func carriesPen(m *Message) bool {
	switch m.Peer.Status {
	case event.New, event.Alive, event.Resend:
		return true
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
	for i, t := range v.Tokens {
		if t != tokens[i] {
			return fmt.Errorf("INV-9: position %d of request %d is token %d here and %d elsewhere", i, id, t, tokens[i])
		}
	}
	return nil
}
