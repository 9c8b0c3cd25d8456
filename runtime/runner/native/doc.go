// Package native executes batches with the embedded forward pass. KV lies where
// the core says: every row names its blocks, the runner keeps them as the
// request's table and never chooses one itself.
//
// The invariant that matters: what a row yields depends on its own tokens, its
// sampling key and the model, never on the batch it is in, on the cores that
// helped, on who filled the blocks of its beginning, or on what its blocks held
// before.
//
// Read native.go, table.go for what a row's Blocks, Cached and Start mean, then
// runtime/model for the forward pass and its routing signals, kernels/vec for
// the sample.
package native
