//go:build !invariants

package sched

// Enabled says that Step checks the invariants before it returns.
const Enabled = false

// audit is what Step keeps in order to check; here nothing.
type audit struct{}

func (*audit) due(int, int) bool { return false }
