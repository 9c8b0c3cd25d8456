// Package live runs the cores on the wall clock: one subserver per model, each
// with three loops as thin goroutines. The client loop (at the front) turns
// prompts into requests and committed tokens into text, the decode loop owns a
// core, its Lua machine and its runner, the inter-model loop moves messages to
// peers.
//
// The invariant that matters: only a subserver's own decode loop calls its
// core's Step and its router; every other goroutine moves bytes through
// mailboxes that never block. No policy lives here, it is all in runtime/sched.
//
// Read runtime.go for how the parts are joined, then subserver.go (the decode
// loop) and client.go. setters.go holds what a person may change while it runs,
// routers.go how a router is loaded and swapped.
package live
