package native

import (
	"math"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
)

// keepSteps is for how many steps logits are kept after they were last asked for.
// A router that stops asking stops paying; one that asks now and then does not pay
// for a second look at a row each time.
const keepSteps = 256

// newest is where the last step left what it computed for a request.
type newest struct {
	step  uint64 // of the runner, 0 for none
	row   int    // of the step
	start int    // position of the last token fed
	token event.Token
}

// keeps says whether the step that begins writes down the logits of every row that
// samples.
func (r *Runner) keeps() bool { return r.asked > 0 && r.step-r.asked <= keepSteps }

// sampled notes where the results of a row are.
func (e *entry) sampled(step uint64, i int, row *event.Row) {
	last := len(row.Tokens) - 1
	e.newest = newest{step: step, row: i, start: row.Start + last, token: row.Tokens[last]}
}

// TopLogits writes the k largest raw logits of the request's newest sampled row
// into dst, falling. The first time it is asked, the row's last position is
// computed once more for its logits, which are the same; from then on steps keep
// them.
func (r *Runner) TopLogits(id event.ReqID, k int, dst []float32) ([]float32, bool) {
	dst = dst[:0]
	e := r.reqs[id]
	if e == nil || e.newest.step == 0 || e.newest.step != r.step || k < 1 {
		return dst, false
	}
	r.asked = r.step
	logits := r.ws.Logits(e.newest.row)
	if logits == nil {
		if logits = r.lookAgain(e); logits == nil {
			return dst, false
		}
	}
	return topLogits(dst, logits, k), true
}

// lookAgain computes the last position of a request's newest row once more.
func (r *Runner) lookAgain(e *entry) []float32 {
	n := &e.newest
	if r.again == nil {
		r.again = &model.Workspace{Seat: r.ws.Seat}
	}
	err := r.model.Forward(r.again, r.pool, []model.Row{{
		Blocks: e.blocks, Start: n.start, Tokens: []event.Token{n.token}, Logits: true,
	}})
	if err != nil {
		return nil
	}
	return r.again.Logits(0)
}

// Embedding writes the input embedding of a token into dst.
func (r *Runner) Embedding(token event.Token, dst []float32) ([]float32, bool) {
	return r.model.Embedding(token, dst)
}

// topLogits appends the k largest of logits to dst, falling. A value that is no
// number counts as the smallest.
func topLogits(dst, logits []float32, k int) []float32 {
	k = min(k, len(logits))
	// dst is a heap whose smallest value is at its root: most logits of a row are
	// below it and cost one comparison.
	dst = append(dst, logits[:k]...)
	for i, v := range dst {
		if v != v {
			dst[i] = float32(math.Inf(-1))
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(dst, i)
	}
	for _, v := range logits[k:] {
		if v > dst[0] {
			dst[0] = v
			sink(dst, 0)
		}
	}
	slices.SortFunc(dst, func(a, b float32) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	return dst
}

// sink moves a heap's value i down to its place.
func sink(h []float32, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
