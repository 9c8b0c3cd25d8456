package native

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"tokenrouter/kernels"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/rng"
)

// Runner runs one model for one subserver.
type Runner struct {
	model *model.Model
	self  int // index among the session's models, part of the sampling key
	ws    *model.Workspace
	pool  *model.Pool
	reqs  map[event.ReqID]*entry
	spare []*entry
	rows  []model.Row
	draw  kernels.Sampler
	sig   kernels.Signals // of the row at hand
}

// maxBlocks bounds the KV blocks of a runner that was not told how many there
// are: 16 million positions.
const maxBlocks = 1 << 20

// New makes a runner for model m at place self among the session's models. Its
// memory grows with the block ids that its batches name.
func New(m *model.Model, self int) *Runner { return NewWithBlocks(m, self, maxBlocks) }

// NewWithBlocks is New for a core whose KV pool has the given number of blocks
// of model.BlockLen positions; a batch that names another is refused.
func NewWithBlocks(m *model.Model, self, blocks int) *Runner {
	return &Runner{
		model: m, self: self, ws: &model.Workspace{Threads: runtime.GOMAXPROCS(0)},
		pool: m.NewPool(blocks), reqs: map[event.ReqID]*entry{},
	}
}

// Run executes one forward step over the batch's rows.
func (r *Runner) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	r.rows = r.rows[:0]
	for i := range b.Rows {
		row := &b.Rows[i]
		blocks, err := r.place(row)
		if err != nil {
			return out, err
		}
		r.rows = append(r.rows, model.Row{Blocks: blocks, Start: row.Start, Tokens: row.Tokens, Logits: row.Sample, Hidden: row.Sample})
	}
	if err := r.model.Forward(r.ws, r.pool, r.rows); err != nil {
		var blame *model.RowError
		if errors.As(err, &blame) {
			return out, fmt.Errorf("%s: request %d %s", r.model.Name, b.Rows[blame.Row].Req, blame.Text)
		}
		return out, err
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		e := r.reqs[row.Req]
		e.n = row.Start + len(row.Tokens)
		if !row.Sample {
			continue
		}
		o, err := r.output(row, r.ws.Logits(i))
		if err != nil {
			return out, fmt.Errorf("%s: request %d at position %d: %w", r.model.Name, row.Req, e.n, err)
		}
		out = append(out, o)
		e.hidden = append(e.hidden[:0], r.ws.Hidden(i)...)
	}
	return out, nil
}

func (r *Runner) output(row *event.Row, logits []float32) (event.Output, error) {
	s := &r.sig
	if err := kernels.Measure(s, logits); err != nil {
		return event.Output{}, err
	}
	o := event.Output{
		Entropy: s.Entropy, EntropyNorm: s.EntropyNorm,
		Top1: s.Top1, Top2: s.Top2, LogSumExp: s.LogSumExp,
		TopK: make([]event.TokenProb, len(s.TopK)),
	}
	for i, t := range s.TopK {
		o.TopK[i] = event.TokenProb{Token: t.ID, Logprob: t.Logprob}
	}
	p := &row.Sampling
	key := rng.Key{Seed: p.Seed, Req: uint64(row.Req), Pos: row.Start + len(row.Tokens), Model: r.self, Purpose: rng.Sample}
	var err error
	o.Token, err = r.draw.Sample(logits, kernels.SampleParams{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP}, key.Float64(0))
	return o, err
}

// Hidden copies the last hidden state (after the final norm) of the request's
// newest sampled row into dst.
func (r *Runner) Hidden(id event.ReqID, dst []float32) ([]float32, bool) {
	e := r.reqs[id]
	if e == nil || len(e.hidden) == 0 {
		return dst[:0], false
	}
	return append(dst[:0], e.hidden...), true
}

// Close frees everything.
func (r *Runner) Close() error {
	r.ws, r.pool, r.reqs, r.spare, r.rows = nil, nil, nil, nil, nil
	return nil
}
