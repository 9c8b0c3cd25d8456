// Package kv accounts for the key/value memory of one subserver in blocks of a
// fixed number of tokens: who holds which block, and which beginnings of texts
// are still there to be used again. The tensors themselves belong to the runner.
//
// The invariant that matters (INV-4): every block is either free, or cached
// (nobody holds it, its content may be found again), or used; and a block that
// can be found is never written again while it can be.
//
// Read pool.go (blocks, sequences, reference counts), then tree.go (the prefix
// cache). runtime/sched takes blocks when a batch is composed and gives them
// back when a request ends or is preempted.
package kv
