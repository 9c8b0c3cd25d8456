package fabric_test

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
	"tokenrouter/runtime/sched"
)

// runner is a fake runner of one subserver with a real KV memory: a cell per
// position of every block. A cell holds a hash of the token written there and of
// all before it, as a key or value vector does. So a row that reads what was
// computed for another text, or that another row has written over, is found.
type runner struct {
	block int
	cells []uint64
	kv    map[event.ReqID]*held
	had   map[event.ReqID]int // positions ever in KV, also before they were taken
}

// held is the KV of one request: its blocks and how many positions are valid.
type held struct {
	blocks []event.Block
	n      int
	robbed bool
	next   int // n once the running batch is over
}

func newRunner(cfg sched.Config) *runner {
	return &runner{
		block: cfg.Block,
		cells: make([]uint64, cfg.KVTokens[cfg.Self]),
		kv:    map[event.ReqID]*held{},
		had:   map[event.ReqID]int{},
	}
}

func (r *runner) cell(h *held, pos int) *uint64 {
	return &r.cells[int(h.blocks[pos/r.block])*r.block+pos%r.block]
}

// run executes a batch. View says what the core knows of a request.
func (r *runner) run(b *event.Batch, view func(event.ReqID) sched.View) error {
	for i := range b.Rows {
		row := &b.Rows[i]
		if err := r.begin(row, view(row.Req)); err != nil {
			return fmt.Errorf("row of request %d at %d: %w", row.Req, row.Start, err)
		}
	}
	// All rows read before any writes: a row must not count on its neighbours.
	for i := range b.Rows {
		row := &b.Rows[i]
		h := r.kv[row.Req]
		x := uint64(1)
		for pos, t := range view(row.Req).Tokens[:row.Start+len(row.Tokens)] {
			x = hash(x, uint64(t))
			switch c := r.cell(h, pos); {
			case pos >= row.Start:
				*c = 0
			case *c != x:
				return fmt.Errorf("INV-4: row of request %d reads at position %d what was not written for it", row.Req, pos)
			}
		}
	}
	for i := range b.Rows {
		if err := r.write(&b.Rows[i], view(b.Rows[i].Req)); err != nil {
			return err
		}
	}
	return nil
}

// begin compares a row with what the runner holds of the request.
func (r *runner) begin(row *event.Row, v sched.View) error {
	end := row.Start + len(row.Tokens)
	if !slices.Equal(row.Tokens, v.Tokens[row.Start:end]) || row.Sample != (end == len(v.Tokens)) {
		return fmt.Errorf("INV-5: feeds %v, sampling %v, of %v", row.Tokens, row.Sample, v.Tokens)
	}
	h := r.kv[row.Req]
	if row.Prefill != (h == nil) {
		return fmt.Errorf("INV-5: prefill is %v", row.Prefill)
	}
	if h == nil {
		h = &held{n: row.Cached, robbed: r.had[row.Req] > 0}
		r.kv[row.Req] = h
		if row.Start != row.Cached || row.Cached >= len(v.Tokens) {
			return fmt.Errorf("INV-14: %d positions are cached of %d held", row.Cached, len(v.Tokens))
		}
	} else if row.Cached != 0 || row.Start != h.n && (row.Start != h.n-1 || len(row.Tokens) != 1) {
		return fmt.Errorf("INV-14: %d positions fed with %d in KV, %d cached", len(row.Tokens), h.n, row.Cached)
	}
	lost := max(0, min(r.had[row.Req], end)-h.n)
	if row.Recomputed != lost || lost > 0 && !h.robbed {
		return fmt.Errorf("INV-14: %d positions recomputed in place of %d", row.Recomputed, lost)
	}
	keep := row.Start / r.block
	if row.Prefill {
		keep = 0
	}
	h.blocks = append(slices.Clip(h.blocks[:keep]), row.Blocks...)
	if len(h.blocks) != kv.Blocks(end, r.block) {
		return fmt.Errorf("INV-4: %d blocks for %d positions", len(h.blocks), end)
	}
	h.next = end
	return nil
}

// write fills the row's cells. Nobody else may hold a block that is written.
func (r *runner) write(row *event.Row, v sched.View) error {
	h := r.kv[row.Req]
	for i := row.Start / r.block; i < len(h.blocks); i++ {
		for id, other := range r.kv {
			if id != row.Req && slices.Contains(other.blocks, h.blocks[i]) {
				return fmt.Errorf("INV-4: requests %d and %d share block %d, which is being written", row.Req, id, h.blocks[i])
			}
		}
	}
	x := uint64(1)
	for pos, t := range v.Tokens[:row.Start+len(row.Tokens)] {
		x = hash(x, uint64(t))
		if pos >= row.Start {
			*r.cell(h, pos) = x
		}
	}
	return nil
}

// done counts what the rows of the batch have fed.
func (r *runner) done(b *event.Batch) {
	for i := range b.Rows {
		if h := r.kv[b.Rows[i].Req]; h != nil {
			h.n = h.next
			r.had[b.Rows[i].Req] = max(r.had[b.Rows[i].Req], h.n)
		}
	}
}

// cut forgets what was computed for tokens that were taken back: they are no part
// of the text any more, so computing others in their place is no second time.
func (r *runner) cut(id event.ReqID, n int) {
	r.had[id] = min(r.had[id], n)
	if h := r.kv[id]; h != nil {
		h.n = min(h.n, n)
		h.blocks = slices.Clip(h.blocks[:min(len(h.blocks), kv.Blocks(h.n, r.block))])
	}
}

func (r *runner) preempt(id event.ReqID, n int) error {
	h := r.kv[id]
	if h == nil || h.n != n {
		return fmt.Errorf("INV-4: %d positions are taken of %+v", n, h)
	}
	delete(r.kv, id)
	return nil
}

func (r *runner) free(id event.ReqID) error {
	if r.kv[id] == nil {
		return fmt.Errorf("INV-4: freed twice")
	}
	delete(r.kv, id)
	return nil
}
