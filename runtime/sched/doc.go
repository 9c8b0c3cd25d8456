// Package sched is the core: the brain of one subserver as a pure state machine.
// Same events, same commands, always. Step knows no clock, goroutine, lock or
// I/O and iterates over no map; time, model outputs and router answers enter as
// parts of events.
//
// The invariant that matters (INV-2): exactly one core, or one message in
// flight, holds the pen of an admitted request, and only the holder of the pen
// writes its tokens. docs/invariants.md numbers all of them; Check tests them,
// after every Step under the build tag "invariants".
//
// Start with core.go (state and Step), batch.go (when a batch starts) and
// compose.go (who is in it and how many tokens each row feeds); then done.go
// (what a finished step does to a request), peerin.go (messages), end.go
// (finish, stop, cancel) and admit.go (the front).
//
//	hold.go     tokens that are held back, and taken back
//	ready.go    the order of those that wait for a batch
//	preempt.go  taking KV from the younger, and why all get on
//	away.go     time-outs, and asking about requests that a peer has
//	policy.go   thresholds; ahead.go looks at what the peers run
//	slab.go     why a step allocates nothing of its own
//
// testdata/*.txt shows each behaviour as a script: start with batching.txt,
// handoff.txt and thresholds.txt, then chunks.txt, prefix.txt, preempt.txt, hold.txt
// and truncate.txt.
// What others do today is in sequential.txt, lockstep.txt and resubmit.txt.
package sched
