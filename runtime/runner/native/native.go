package native

import (
	"context"
	"errors"
	"fmt"

	"tokenrouter/kernels"
	"tokenrouter/kernels/team"
	"tokenrouter/kernels/vec"
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
	vocab int // tokens below it may be drawn
	draw  vec.Sampler
	again *model.Workspace // of a row whose logits are wanted after all; nil until then
	step  uint64           // number of the last step
	asked uint64           // step whose logits were last asked for, 0 if none were
}

// Options say what a runner may use. The zero value is a runner whose memory
// grows with the block ids that its batches name, on the core of whoever calls
// it.
type Options struct {
	// Blocks is the number of KV blocks, of model.BlockLen positions, of the
	// core that orders the batches; one that names another block is refused.
	Blocks int
	// Cores are shared with the runners of the other subservers: each has one
	// core while both have work, a step takes all of them while the others rest.
	// What a row yields does not depend on it.
	Cores *team.Cores
	// Vocab bounds the tokens that are drawn: those below it, or all that the
	// model has rows for where it is 0. A model may have more rows than its
	// tokenizer has tokens, and its peer fewer. Signals are of all rows.
	Vocab int
}

// maxBlocks bounds the KV blocks of a runner that was not told how many there
// are: 16 million positions.
const maxBlocks = 1 << 20

// splitFrom is the number of weights from which a model is worth more than one
// core. The products of a smaller one take a few microseconds even for a full
// batch: a second core would spin beside it for nothing.
const splitFrom = 1 << 19

// New makes a runner for model m at place self among the session's models, with
// no options.
func New(m *model.Model, self int) *Runner { return NewWith(m, self, Options{}) }

// NewWithBlocks is New for a core whose KV pool has the given number of blocks.
func NewWithBlocks(m *model.Model, self, blocks int) *Runner {
	return NewWith(m, self, Options{Blocks: blocks})
}

// NewWith is New with options.
func NewWith(m *model.Model, self int, o Options) *Runner {
	if o.Blocks == 0 {
		o.Blocks = maxBlocks
	}
	r := &Runner{model: m, self: self, ws: &model.Workspace{}, pool: m.NewPool(o.Blocks), reqs: map[event.ReqID]*entry{}, vocab: m.Config.Vocab}
	if o.Vocab > 0 {
		r.vocab = min(o.Vocab, r.vocab)
	}
	if o.Cores != nil {
		r.ws.Seat = o.Cores.Seat()
		if m.Params() < splitFrom {
			r.ws.Seat.Limit(1)
		}
	}
	return r
}

// Run executes one forward step over the batch's rows.
func (r *Runner) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	r.step++
	keep := r.keeps()
	r.rows = r.rows[:0]
	for i := range b.Rows {
		row := &b.Rows[i]
		blocks, err := r.place(row)
		if err != nil {
			return out, err
		}
		r.rows = append(r.rows, model.Row{
			Blocks: blocks, Start: row.Start, Tokens: row.Tokens,
			Signals: row.Sample, Hidden: row.Sample, Logits: row.Sample && (keep || !greedy(&row.Sampling)),
		})
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
		o, err := r.output(row, i)
		if err != nil {
			return out, fmt.Errorf("%s: request %d at position %d: %w", r.model.Name, row.Req, e.n, err)
		}
		out = append(out, o)
		e.hidden = append(e.hidden[:0], r.ws.Hidden(i)...)
		e.sampled(r.step, i, row)
	}
	return out, nil
}

// greedy says that a row takes the most likely token, which the signals name:
// its logits need not be written down.
func greedy(p *event.Sampling) bool {
	return (p.Temperature <= 0 || p.TopK == 1) && p.Temperature == p.Temperature && p.TopP == p.TopP
}

// output is what row i of the step gives.
func (r *Runner) output(row *event.Row, i int) (event.Output, error) {
	s, err := r.ws.Signals(i)
	if err != nil {
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
	if greedy(p) {
		o.Token, err = r.best(row, i, s.TopK)
		return o, err
	}
	key := rng.Key{Seed: p.Seed, Req: uint64(row.Req), Pos: row.Start + len(row.Tokens), Model: r.self, Purpose: rng.Sample}
	o.Token, err = r.draw.Sample(r.ws.Logits(i)[:r.vocab], kernels.SampleParams{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP}, key.Float64(0))
	return o, err
}

// best is the most likely token of row i that may be drawn. Where none of the
// listed ones may, which trained weights hardly do, the last position is computed
// once more for its logits: they are the same.
func (r *Runner) best(row *event.Row, i int, top []kernels.TokenProb) (event.Token, error) {
	for _, t := range top {
		if int(t.ID) < r.vocab {
			return t.ID, nil
		}
	}
	if r.again == nil {
		r.again = &model.Workspace{Seat: r.ws.Seat}
	}
	last := len(row.Tokens) - 1
	err := r.model.Forward(r.again, r.pool, []model.Row{{
		Blocks: r.rows[i].Blocks, Start: row.Start + last, Tokens: row.Tokens[last:], Logits: true,
	}})
	if err != nil {
		return 0, err
	}
	return kernels.Argmax(r.again.Logits(0)[:r.vocab])
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

// Close frees everything but the model, which others may use.
func (r *Runner) Close() error {
	if r.pool == nil {
		return nil
	}
	err := r.pool.Close()
	r.ws, r.again, r.pool, r.reqs, r.spare, r.rows = nil, nil, nil, nil, nil, nil
	return err
}
