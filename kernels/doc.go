// Package kernels is what of a language model's arithmetic is needed in plain Go:
// routing signals and samples of a row of logits, number formats, and exp, ln,
// sin and cos that give the same bits on every machine. It knows no request and
// no model.
//
// It is also the oracle of the rooms above it: a forward pass runs on
// kernels/matmul and kernels/vec, and tests hold their products, attention, norms,
// activation, rotation, signals and samples against Matrix, Page, RMSNorm,
// SiLUMul, RoPE, Measure and Sampler here. Matrix, Page and the functions on
// vectors are called by tests alone.
//
// The invariant that matters: one order of summation. Every result is a sum that
// runs over its terms in one fixed order, and products are rounded before they
// are added (float32(x*y) forbids fusing), so amd64 and arm64 agree.
//
// Lengths are the caller's promise: a slice that is too short is a bug of the
// caller and stops with an index error, as everywhere in Go. Foreign values
// (NaN logits) are answered with an error.
//
// Read next: signals.go for what a router sees, sample.go for how a token is
// drawn, format.go for halves of floats.
package kernels
