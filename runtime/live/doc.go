// Package live runs a session: one subserver per model, the clients, what a person
// may change, and the planner. It has two drivers over the same parts.
//
// On the clocks live, paced and emulated each subserver has three loops as thin
// goroutines. The client loop (at the front) turns prompts into requests and
// checks their answers, the decode loop owns a core and its Lua machine and takes
// each token it emits into its request's text, the inter-model loop moves messages
// to peers. The runner has a goroutine beside them.
//
// On the clock sim one goroutine does all of that in virtual time, over a
// runtime/sim of the same cores; without wishes from outside its tape is a function
// of the Config, byte for byte.
//
// The invariant that matters: only a subserver's own decode loop calls its
// core's Step and its router; every other goroutine moves bytes through
// mailboxes that never block. No policy lives here, it is all in runtime/sched.
//
// Read runtime.go for how the parts are joined, then subserver.go (the decode
// loop), client.go with book.go, and virtual.go (virtual time). answer.go is what
// both drivers do with a step; date.go and order.go say when a fact is due under a
// cost profile. setters.go holds what a person may change while it runs, routers.go
// how a router is loaded and swapped.
package live
