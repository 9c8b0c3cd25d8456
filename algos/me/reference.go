package me

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// Reference runs a request over as many models as there are weights.
func Reference(run reference.Run, weights []float64) reference.Result {
	w := run.Begin()
	key := rng.Key{Seed: run.Seed, Req: uint64(run.Req), Pos: w.Pos(), Purpose: rng.Router}
	writer := Draw(weights, key.Float64(0), event.Front)
	if writer != event.Front {
		w.Drop(event.Front, w.Next(event.Front))
	}
	for {
		key.Pos, key.Model = w.Pos(), int(writer)
		if !w.Commit(writer, w.Next(writer)) {
			return w.Result
		}
		writer = Draw(weights, key.Float64(1), writer)
	}
}

// Draw chooses a model: u is uniform in [0, 1), and the model is the one in
// whose piece of [0, sum of weights) u * sum falls. When every weight is zero
// nothing is drawn and self stays.
func Draw(weights []float64, u float64, self event.Peer) event.Peer {
	var total float64
	for _, w := range weights {
		total += w
	}
	x, last := u*total, self
	for m, w := range weights {
		if w <= 0 {
			continue
		}
		if x < w {
			return event.Peer(m)
		}
		x -= w
		last = event.Peer(m)
	}
	return last
}

// Rule is one decision: where the request goes after a step of model self at
// the position of key, and whether its candidate is kept.
func Rule(key rng.Key, first bool, self event.Peer, weights []float64) (event.Peer, event.Action) {
	if first && self == event.Front {
		if writer := Draw(weights, key.Float64(0), self); writer != event.Front {
			return writer, event.Drop
		}
	}
	return Draw(weights, key.Float64(1), self), event.Keep
}
