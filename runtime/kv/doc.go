// Package kv accounts for the key/value memory of one subserver in blocks of a
// fixed number of tokens. It counts; the tensors themselves belong to the
// runner.
//
// The invariant that matters (INV-4): blocks in use plus free blocks are the
// whole pool at every moment, and a block is counted for at most one request.
//
// Read pool.go; runtime/sched takes from the pool when a batch starts and gives
// back when a request ends.
package kv
