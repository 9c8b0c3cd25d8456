package sim

import (
	"math"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// vocabulary is how many tokens scripted models and prompts know.
const vocabulary = 1 << 15

// quantiles is how many equally likely factors stand for the lognormal law: so
// many that their spread is that of the law within 0.1 %.
const quantiles = 1 << 12

// jitter is the law of the factor on a step's time: lognormal with mean 1.
type jitter []float64

// newJitter returns the law with that coefficient of variation, nil for 0.
func newJitter(cv float64) jitter {
	if cv == 0 {
		return nil
	}
	sigma := math.Sqrt(math.Log1p(cv * cv))
	j := make(jitter, quantiles)
	sum := 0.0
	for k := range j {
		z := math.Sqrt2 * math.Erfinv((2*float64(k)+1)/quantiles-1)
		j[k] = math.Exp(sigma * z)
		sum += j[k]
	}
	for k := range j {
		j[k] *= quantiles / sum
	}
	return j
}

// of is the time of step number run of a model that takes d on average.
func (j jitter) of(d int64, seed uint64, model event.Peer, run uint64) int64 {
	if j == nil {
		return d
	}
	u := rng.Key{Seed: seed, Pos: int(run), Model: int(model), Purpose: rng.Jitter}.Uint64(0)
	return int64(math.Round(float64(d) * j[u>>(64-12)]))
}

// prompt makes the prompt of a request, n tokens.
func prompt(seed uint64, id event.ReqID, n int) []event.Token {
	out := make([]event.Token, n)
	key := rng.Key{Seed: seed, Req: uint64(id), Purpose: rng.Prompt}
	for i := range out {
		out[i] = event.Token(key.Uint64(i) % vocabulary)
	}
	return out
}
