// Package rng gives keyed, counter-based random numbers: every draw is a pure
// function of who asks (seed, request, position, model, purpose) and of the
// number of the draw.
//
// There is no generator to save or restore. A request that was preempted,
// moved to another subserver, replayed or simulated asks with the same [Key]
// and gets the same draws, and no draw depends on what any other request did.
//
// The invariant that matters: two keys that differ in any field, or two draws
// of one key, never use the same (counter, key) input of the cipher. The
// mapping from (Key, n) to Philox inputs is injective over the full range of
// every field but Model, of which the low 32 bits count.
//
// The cipher is Philox4x64 with 10 rounds (Salmon, Moraes, Dror, Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.2).
//
// Read key.go first, then philox.go.
package rng
