package query

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// Reference lets one model write the whole answer: the large one where large says
// so at the small model's first candidate, which is then dropped.
func Reference(run reference.Run, large func(o event.Output) bool) reference.Result {
	w := run.Begin()
	writer, o := reference.Small, w.Next(reference.Small)
	if large(o) {
		w.Drop(reference.Small, o)
		writer, o = reference.Large, w.Next(reference.Large)
	}
	for w.Commit(writer, o) {
		o = w.Next(writer)
	}
	return w.Result
}

// MixReference draws once per request.
func MixReference(run reference.Run, share float64) reference.Result {
	key := rng.Key{Seed: run.Seed, Req: uint64(run.Req), Pos: len(run.Prompt), Purpose: rng.Router}
	return Reference(run, func(event.Output) bool { return key.Float64(0) < share })
}

// LengthReference looks at the number of tokens of the prompt.
func LengthReference(run reference.Run, length float64) reference.Result {
	return Reference(run, func(event.Output) bool { return float64(len(run.Prompt)) >= length })
}

// HeadReference looks at a head's score of the prompt.
func HeadReference(run reference.Run, threshold float64, score reference.Score) reference.Result {
	return Reference(run, func(o event.Output) bool { return score(reference.Small, o) >= threshold })
}

// ProbeReference lets the small model write some tokens, fewer where the answer
// ends before. Is their mean entropy at or above the threshold, in nats, they are
// cut and the large model writes the whole answer.
func ProbeReference(run reference.Run, threshold float64, tokens int) reference.Result {
	w := run.Begin()
	sum := 0.0
	writer := reference.Small
	for n := 1; ; n++ {
		o := w.Next(writer)
		if writer == reference.Small && n <= tokens {
			sum += float64(o.Entropy)
			if (n == tokens || w.Last(o)) && sum/float64(n) >= threshold {
				w.Truncate(reference.Small, o, len(run.Prompt))
				writer = reference.Large
				continue
			}
		}
		if !w.Commit(writer, o) {
			return w.Result
		}
	}
}
