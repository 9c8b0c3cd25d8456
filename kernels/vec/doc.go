// Package vec is the arithmetic of a model that is not a matrix product: norms,
// gated activation, rotation, attention over pages of KV in half or single
// precision, and what is made of a row of logits: routing signals and a drawn
// token. Package kernels is the oracle of its signals, samples, sums and rotation,
// float64 of the rest.
//
// The invariant that matters: every result is one fixed sequence of roundings,
// which neither the level of kernels, nor how many heads, positions or rows are
// computed together, nor where pages lie, nor which thread measured which part
// changes by a bit. The Go level does what the assembly does, operation by
// operation; fma in exp.go is a true fused multiply-add in single precision.
//
// Lengths are the caller's promise, as in package kernels. Slices that are
// written may be those that are read where a function says so, and may not
// overlap otherwise.
//
// Read next: exp.go for the two building blocks, page.go and attend.go for
// attention, signals.go for what the LM head does with a finished part of a row.
package vec
