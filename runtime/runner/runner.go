// Package runner defines what executes a batch. The rooms below it do so in
// different ways: native with the embedded forward pass, emulated with what a law
// or a recording says, paced with another runner at the rhythm of a cost profile.
//
// The invariant that matters: a row's output depends on the request's tokens,
// its sampling key and the model, never on what else is in the batch.
package runner

import (
	"context"

	"tokenrouter/runtime/event"
)

// Runner executes batches of one model. It is driven by one goroutine.
type Runner interface {
	// Run executes one forward step and appends one Output per sampling row,
	// in row order, to out. Its error fails the requests of the batch. A
	// cancelled context makes it return early with the context's error.
	Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error)
	// Free drops the KV of a request; unknown ids are ignored.
	Free(id event.ReqID)
	// Hidden copies the last hidden state of a request's newest sampled row
	// into dst; ok is false when the runner has none.
	Hidden(id event.ReqID, dst []float32) (h []float32, ok bool)
	// Close frees everything.
	Close() error
}
