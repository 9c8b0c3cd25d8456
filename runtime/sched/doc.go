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
// Start with core.go (state and Step), batch.go (who runs next) and done.go
// (what a finished step does to a request); then peerin.go (messages), end.go
// (finish, stop, cancel), admit.go (the front) and policy.go (thresholds).
// testdata/*.txt shows each behaviour as a script.
package sched
