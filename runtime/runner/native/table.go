package native

import (
	"fmt"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
)

// entry is what the runner knows of a request.
type entry struct {
	blocks []event.Block // where its KV is, from position 0 on
	n      int           // positions in it
	hidden []float32
	newest newest
}

// place brings a request's table up to date with a row and returns it. A
// prefill row names the whole table, and the first Cached positions were filled
// for an earlier request; any other row names it from the block of Start on.
// What the table held behind Start is forgotten, whatever becomes of the step.
func (r *Runner) place(row *event.Row) ([]event.Block, error) {
	e := r.reqs[row.Req]
	held := 0
	if e != nil {
		held = e.n
	}
	if text := fault(row, held); text != "" {
		return nil, fmt.Errorf("%s: request %d %s", r.model.Name, row.Req, text)
	}
	if e == nil {
		e = r.takeEntry()
		r.reqs[row.Req] = e
	}
	keep := row.Start / model.BlockLen
	if row.Prefill {
		keep = 0
	}
	e.blocks, e.n = append(e.blocks[:keep], row.Blocks...), row.Start
	return e.blocks, nil
}

// fault says what is wrong with a row of a request that holds positions.
func fault(row *event.Row, held int) string {
	switch {
	case len(row.Blocks) == 0:
		return "has a row without KV blocks: the core that orders a batch has to say where its KV is"
	case row.Start < 0:
		return fmt.Sprintf("asks for position %d: positions count from 0", row.Start)
	case row.Prefill && row.Start != row.Cached:
		return fmt.Sprintf("begins at position %d, but the prefix cache gives it %d: a prefill begins behind what is cached", row.Start, row.Cached)
	case row.Prefill && row.Cached%model.BlockLen != 0:
		return fmt.Sprintf("is given %d positions of the prefix cache: only whole blocks of %d can be shared", row.Cached, model.BlockLen)
	case !row.Prefill && row.Start > held:
		return fmt.Sprintf("asks for position %d, its KV ends at %d: feed what is missing first, or begin again with a prefill row", row.Start, held)
	}
	return ""
}

func (r *Runner) takeEntry() *entry {
	if n := len(r.spare); n > 0 {
		e := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return e
	}
	return &entry{}
}

// Free forgets where the KV of a request is, and its hidden state. Its blocks
// may be in another request's table already.
func (r *Runner) Free(id event.ReqID) {
	if e := r.reqs[id]; e != nil {
		delete(r.reqs, id)
		e.blocks, e.n, e.hidden, e.newest = e.blocks[:0], 0, e.hidden[:0], newest{}
		r.spare = append(r.spare, e)
	}
}
