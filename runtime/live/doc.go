// Package live runs the cores on the wall clock: one subserver per model, each
// with three loops as thin goroutines. The client loop (at the front) turns
// prompts into requests and checks their answers, the decode loop owns a core and
// its Lua machine and takes each token it emits into its request's text, the
// inter-model loop moves messages to peers. The runner has a goroutine beside
// them.
//
// The invariant that matters: only a subserver's own decode loop calls its
// core's Step and its router; every other goroutine moves bytes through
// mailboxes that never block. No policy lives here, it is all in runtime/sched.
//
// Read runtime.go for how the parts are joined, then subserver.go (the decode
// loop) and client.go. setters.go holds what a person may change while it runs,
// routers.go how a router is loaded and swapped.
package live
