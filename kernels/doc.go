// Package kernels is the arithmetic of a language model on float32 slices:
// matrix products, norms, rotary positions, attention over pages of KV, gated
// activation, number formats, and sampling with the routing signals of a row.
// It knows no request and no model.
//
// The invariant that matters: one order of summation. Every output of every
// kernel is a sum that runs over its terms in one fixed order, whatever the
// number of columns, their neighbours, the tile that computed it or the thread.
// So a token's logits are bitwise equal alone, inside a batch, and in any
// chunking of its prompt. Products are rounded before they are added
// (float32(x*y) forbids fusing), so amd64 and arm64 agree as well; exp, ln, sin
// and cos are this package's own for the same reason.
//
// Lengths are the caller's promise: a slice that is too short is a bug of the
// caller and stops with an index error, as everywhere in Go. Foreign values
// (NaN logits) are answered with an error.
//
// Read next: matrix.go for the weight layout and the two tiles that everything
// heavy runs on, attention.go for how pages of KV use the same tiles,
// signals.go for what a router sees.
package kernels
