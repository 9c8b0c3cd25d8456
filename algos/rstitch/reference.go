package rstitch

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

// Reference runs a request over two models: algorithm 1 of the paper.
func Reference(run reference.Run, threshold float64) reference.Result {
	const small, large = event.Peer(0), event.Peer(1)
	w := run.Begin()
	active := small
	for {
		o := w.Next(active)
		switch unsure := float64(o.EntropyNorm) > threshold; {
		case active == small && unsure:
			w.Drop(small, o)
			active = large
			continue
		case active == large && !unsure:
			active = small
			if !w.Commit(large, o) {
				return w.Result
			}
		default:
			if !w.Commit(active, o) {
				return w.Result
			}
		}
	}
}

// Rule is one decision: where the request goes after a step of model self, and
// whether its candidate is kept.
func Rule(o *event.Output, self event.Peer, threshold float64) (event.Peer, event.Action) {
	unsure := float64(o.EntropyNorm) > threshold
	switch {
	case self == event.Front && unsure:
		return 1, event.Drop
	case unsure:
		return self, event.Keep
	}
	return event.Front, event.Keep
}
