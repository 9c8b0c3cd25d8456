package rstitch

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

// Reference runs a request over two models: algorithm 1 of the paper.
func Reference(run reference.Run, threshold float64) reference.Result {
	unsure := func(o event.Output) bool { return float64(o.EntropyNorm) > threshold }
	return reference.Spans(run, unsure, func(o event.Output, _ int) bool { return !unsure(o) })
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
