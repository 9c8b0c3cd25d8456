// Package guard runs goroutines so that a panic in one of them ends the
// program's session in order instead of leaving a broken terminal and a cut
// file behind: it becomes a [Crash], is written to a crash file and goes to
// every hook (restore the terminal, close the session, tell the user).
//
// The invariant that matters: no panic is swallowed. It reaches at least one
// hook that returns normally, or it goes on and ends the process as any other
// panic in Go. A panic inside a hook is noted in the crash and keeps no later
// hook from running.
//
// Every goroutine of this project starts through a [Guard], but for those that
// share one matrix product (runtime/model): they hand a panic to the goroutine
// that waits for them. What Go itself cannot recover (concurrent map writes,
// exhausted memory, a fault in C code) is beyond this package too.
//
// Read guard.go first, then file.go for the crash file.
package guard
