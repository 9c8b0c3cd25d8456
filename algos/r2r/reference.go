package r2r

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

// Reference runs a request over two models under the entropy strategy.
func Reference(run reference.Run, threshold float64) reference.Result {
	return reference.Rewrite(run, func(o event.Output) bool { return float64(o.Entropy) >= threshold })
}

// NeuralReference runs a request over two models under a trained head.
func NeuralReference(run reference.Run, threshold float64, score reference.Score) reference.Result {
	return reference.Rewrite(run, func(o event.Output) bool { return score(reference.Small, o) >= threshold })
}

// Rule is one decision: where the request goes after a step of model self whose
// signal (nats of entropy, or the head's score) is given, and whether its
// candidate is kept.
func Rule(signal float64, self event.Peer, threshold float64) (event.Peer, event.Action) {
	if self == reference.Small && signal >= threshold {
		return reference.Large, event.Drop
	}
	return reference.Small, event.Keep
}
