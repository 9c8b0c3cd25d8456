package kv

import "tokenrouter/runtime/event"

// Oldest lists the cached blocks in the order in which they will be reclaimed.
func (p *Pool) Oldest() []event.Block {
	var out []event.Block
	for b := p.tree.oldest; b != none; b = p.slots[b].newer {
		out = append(out, b)
	}
	return out
}
