package citer

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

// Reference runs a request over two models: score gives the confidence in the
// small model's candidate. With the candidate's largest probability for score it
// is the reference of no_weights.lua.
func Reference(run reference.Run, threshold float64, score reference.Score) reference.Result {
	return reference.Rewrite(run, func(o event.Output) bool { return score(reference.Small, o) < threshold })
}

// Rule is one decision: where the request goes after a step of model self with
// that confidence, and whether its candidate is kept.
func Rule(confidence float64, self event.Peer, threshold float64) (event.Peer, event.Action) {
	if self == reference.Small && confidence < threshold {
		return reference.Large, event.Drop
	}
	return reference.Small, event.Keep
}
