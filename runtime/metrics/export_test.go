package metrics

import "tokenrouter/runtime/event"

// Standing counts the requests that are ready at and running on subserver p, and
// those that are on their way or elsewhere, as the records tell.
func (b *Board) Standing(p event.Peer) (ready, running, away int) {
	for _, e := range b.ledger.active {
		switch {
		case e.stand == unknown:
		case e.at == p && e.stand == standsReady:
			ready++
		case e.at == p && e.stand == runs:
			running++
		default:
			away++
		}
	}
	return ready, running, away
}
