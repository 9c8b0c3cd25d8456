// Package reference holds what the single-loop references of the algorithms
// share: a model as a function, a request, and what comes out.
//
// A reference is the algorithm as its paper states it, a plain loop over models
// without scheduler, messages or Lua. It is the oracle: whatever the runtime
// does with batches and hand-offs, ids and writers must come out the same.
//
// The invariant that matters: a Model's output depends on the tokens and the
// request alone, so a reference and the runtime see the same candidates.
//
// Read reference.go for a request, loops.go for the two loops that most algorithms
// share, then the reference.go of each algorithm.
package reference
