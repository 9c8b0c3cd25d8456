package runner

import "tokenrouter/runtime/event"

// Features is what trained heads read of a runner whose model computes. Like Run,
// it is called by one goroutine at a time, and never while a step runs.
//
// The invariant that matters: a row's features are those of its own tokens, bit for
// bit, whatever was in the batch.
type Features interface {
	// Hidden is that of Runner.
	Hidden(id event.ReqID, dst []float32) (h []float32, ok bool)
	// TopLogits writes the k largest raw logits of a request's newest sampled row
	// into dst, falling; fewer where the model has fewer rows. It is asked before
	// the next step; ok is false when the runner has none.
	TopLogits(id event.ReqID, k int, dst []float32) (l []float32, ok bool)
	// Embedding writes the input embedding of a token into dst; ok is false for a
	// token that the model does not know.
	Embedding(token event.Token, dst []float32) (e []float32, ok bool)
}

// FeaturesOf finds the features of a runner, or of the one that it wraps.
func FeaturesOf(r Runner) (Features, bool) {
	for {
		if f, ok := r.(Features); ok {
			return f, true
		}
		w, ok := r.(interface{ Unwrap() Runner })
		if !ok {
			return nil, false
		}
		r = w.Unwrap()
	}
}
