package sched

import (
	"slices"
	"sort"

	"tokenrouter/runtime/event"
)

// graves is the set of requests that are over (INV-10). Ids rise and nearly all
// end, so it is kept as few closed spans of ids, rising and never touching: a
// session of a million requests leaves one span.
type graves struct{ spans []span }

type span struct{ lo, hi event.ReqID }

// at is the first span that ends at or behind id.
func (g *graves) at(id event.ReqID) int {
	return sort.Search(len(g.spans), func(i int) bool { return g.spans[i].hi >= id })
}

func (g *graves) has(id event.ReqID) bool {
	i := g.at(id)
	return i < len(g.spans) && g.spans[i].lo <= id
}

func (g *graves) add(id event.ReqID) {
	i := g.at(id)
	if i < len(g.spans) && g.spans[i].lo <= id {
		return
	}
	left := i > 0 && g.spans[i-1].hi+1 == id
	right := i < len(g.spans) && id+1 == g.spans[i].lo
	switch {
	case left && right:
		g.spans[i-1].hi = g.spans[i].hi
		g.spans = slices.Delete(g.spans, i, i+1)
	case left:
		g.spans[i-1].hi = id
	case right:
		g.spans[i].lo = id
	default:
		g.spans = slices.Insert(g.spans, i, span{id, id})
	}
}

func (g *graves) clone() graves { return graves{spans: slices.Clone(g.spans)} }
