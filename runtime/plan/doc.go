// Package plan predicts the throughput of a cluster under delayed batching and
// picks the threshold B*.
//
// The invariant that matters: every method here describes the same system, that
// of runtime/sched under thresholds. They check one another: closed forms the
// chain, the chain the simulator, the simulator the fluid limit.
//
// Start with spec.go, what a system is; chain.go solves it exactly.
package plan
