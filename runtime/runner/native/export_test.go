package native

// Taken is the number of KV blocks that have memory.
func (r *Runner) Taken() int { return r.pool.Taken() }
