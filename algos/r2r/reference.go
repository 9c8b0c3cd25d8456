package r2r

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

// Reference runs a request over two models.
func Reference(run reference.Run, threshold float64) reference.Result {
	const small, large = 0, 1
	w := run.Begin()
	for {
		writer, o := event.Peer(small), w.Next(small)
		if float64(o.Entropy) >= threshold {
			w.Drop(small, o)
			writer, o = large, w.Next(large)
		}
		if !w.Commit(writer, o) {
			return w.Result
		}
	}
}

// Rule is one decision: where the request goes after a step of model self, and
// whether its candidate is kept.
func Rule(o *event.Output, self event.Peer, threshold float64) (event.Peer, event.Action) {
	if self == event.Front && float64(o.Entropy) >= threshold {
		return 1, event.Drop
	}
	return event.Front, event.Keep
}
