// Package native executes batches with the embedded forward pass.
//
// The invariant that matters: what a row yields depends on its own tokens, its
// sampling key and the model, never on the batch it is in.
//
// Read native.go, then runtime/model for the forward pass and kernels for the
// sample and its routing signals.
package native

import (
	"context"
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
	kv    map[event.ReqID]*entry
	spare []*model.KV
	rows  []model.Row
	draw  kernels.Sampler
	sig   kernels.Signals // of the row at hand
}

type entry struct {
	kv     *model.KV
	hidden []float32
}

// New makes a runner for model m at place self among the session's models.
func New(m *model.Model, self int) *Runner {
	return &Runner{
		model: m, self: self, ws: &model.Workspace{Threads: runtime.GOMAXPROCS(0)}, kv: map[event.ReqID]*entry{},
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
		e := r.kv[row.Req]
		if e == nil {
			e = &entry{kv: r.takeKV()}
			r.kv[row.Req] = e
		}
		if row.Start > e.kv.Len() {
			return out, fmt.Errorf("%s: request %d asks for position %d, its KV ends at %d", r.model.Name, row.Req, row.Start, e.kv.Len())
		}
		r.rows = append(r.rows, model.Row{KV: e.kv, Start: row.Start, Tokens: row.Tokens, Logits: row.Sample, Hidden: row.Sample})
	}
	if err := r.model.Forward(r.ws, r.rows); err != nil {
		return out, err
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		if !row.Sample {
			continue
		}
		o, err := r.output(row, r.ws.Logits(i))
		if err != nil {
			return out, fmt.Errorf("%s: request %d at position %d: %w", r.model.Name, row.Req, row.Start+len(row.Tokens), err)
		}
		out = append(out, o)
		e := r.kv[row.Req]
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

func (r *Runner) takeKV() *model.KV {
	if n := len(r.spare); n > 0 {
		kv := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return kv
	}
	return r.model.NewKV()
}

// Free drops the KV of a request.
func (r *Runner) Free(id event.ReqID) {
	if e := r.kv[id]; e != nil {
		delete(r.kv, id)
		e.kv.Reset()
		r.spare = append(r.spare, e.kv)
	}
}

// Hidden copies the last hidden state (after the final norm) of the request's
// newest sampled row into dst.
func (r *Runner) Hidden(id event.ReqID, dst []float32) ([]float32, bool) {
	e := r.kv[id]
	if e == nil || len(e.hidden) == 0 {
		return dst[:0], false
	}
	return append(dst[:0], e.hidden...), true
}

// Close frees everything.
func (r *Runner) Close() error {
	r.kv, r.spare = nil, nil
	return nil
}
