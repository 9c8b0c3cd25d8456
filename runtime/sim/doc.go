// Package sim drives the cores of a runtime/fabric in virtual time: an event
// heap takes the place of models, network and clients. What it measures is what
// the real scheduler would do, so it is the proof that the core does what
// runtime/plan says, and the plan's where no formula reaches.
//
// The invariant that matters: a Config gives the same events and commands, byte
// for byte, whatever the machine does meanwhile. Every draw is a function of
// (seed, request, position or step, model, purpose) and never of the order in
// which draws are made, so two policies under one seed meet the same requests,
// the same wishes of the router and the same jitter: their difference is paired.
// A clone continues as its original would.
//
// At one time everything due is delivered before any core is told to dispatch
// (ties merge); see queue.go for the order.
//
// A run goes by itself from its first request to its end (Run), or piece by piece
// (Advance) under somebody who brings the requests and looks on (Tell, Tap).
//
// § numbers are those of docs/throughput-model.md.
//
// Start with config.go, what is simulated, and sim.go, the loop; acts.go is what
// may be done to a run, step.go how long a step takes beside others, clone.go
// what-if, source.go plays models and router.
package sim
