package native

import "tokenrouter/runtime/event"

// Taken is the number of KV blocks that have memory.
func (r *Runner) Taken() int { return r.pool.Taken() }

// KeepSteps is for how many steps logits are kept after they were asked for.
const KeepSteps = keepSteps

// TopOf is topLogits.
var TopOf = topLogits

// KeptLogits says whether the last step wrote down the logits of a request's row.
func KeptLogits(r *Runner, id event.ReqID) bool {
	return r.ws.Logits(r.reqs[id].newest.row) != nil
}
