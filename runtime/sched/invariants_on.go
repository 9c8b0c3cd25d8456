//go:build invariants

package sched

// Enabled says that Step checks every invariant before it returns.
const Enabled = true
