// Package fabric joins the cores of a cluster by messages, still pure: what one
// core sends is in flight until the caller delivers it to the other. Simulator,
// what-if and tests drive it; the live runtime joins the same cores by
// goroutines.
//
// The invariant that matters (INV-2): every admitted request has its pen at
// exactly one core or in exactly one message in flight. Check proves it for the
// whole cluster.
//
// Read fabric.go, then link.go, what is on its way; the core itself is
// runtime/sched.
package fabric
