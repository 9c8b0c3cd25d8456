// Package plan predicts the throughput of a cluster under delayed batching and
// picks the threshold B*.
//
// The system is closed: N requests go round among models that run one batch each
// at a time and start the next once B of them wait. Spec says what it is, Result
// what it yields.
//
// The invariant that matters: every method here describes the same system, that
// of runtime/sched under thresholds. They check one another: closed forms and a
// literal chain (in the tests) check the chain, the chain the simulator, the
// simulator the fluid limit. The figures of testdata/vectors.json hold for all.
//
// § numbers are those of docs/throughput-model.md, which derives what is computed
// here.
//
// Start with spec.go. The exact chain: chain.go is the way through it, walk.go
// the states and what follows them (system.go and ticks.go prepare the spec),
// classes.go which of them last, order.go, sweep.go and solve.go the stationary
// vector; closed.go and feasible.go need no chain. Fast methods: countsim.go
// draws counts, fluid.go takes N to be large, latency.go follows each request.
// phases.go and phases_fit.go are the laws of runs that are not geometric, and how
// one is fitted. best.go and table.go choose the thresholds; moved.go and shelf.go
// say when those chosen before still do.
package plan
