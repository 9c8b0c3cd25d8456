package emulated

import (
	"context"

	"tokenrouter/runtime/event"
)

// Tokens says what models answer. It serves the runners of all models at once.
type Tokens interface {
	// Answer appends what a model says about each row of b that samples, in row
	// order, to out.
	Answer(model int, b *event.Batch, out []event.Output) ([]event.Output, error)
}

// Runner stands for one model. It keeps nothing of the requests, so KV that is
// freed, preempted or moved changes nothing here.
type Runner struct {
	tokens Tokens
	model  int
}

// New returns the runner of model number model, small first.
func New(tokens Tokens, model int) *Runner { return &Runner{tokens: tokens, model: model} }

// Run answers a batch at once.
func (r *Runner) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	return r.tokens.Answer(r.model, b, out)
}

// Free has nothing to drop.
func (r *Runner) Free(event.ReqID) {}

// Hidden has none: a hidden state is no signal that could be drawn.
func (r *Runner) Hidden(_ event.ReqID, dst []float32) ([]float32, bool) { return dst[:0], false }

// Close has nothing to free.
func (r *Runner) Close() error { return nil }

// samples is how many rows of a batch sample.
func samples(b *event.Batch) int {
	n := 0
	for i := range b.Rows {
		if b.Rows[i].Sample {
			n++
		}
	}
	return n
}
