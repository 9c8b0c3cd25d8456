//go:build invariants

package sched

// Enabled says that Step checks the invariants before it returns.
const Enabled = true

// audit is what Step keeps in order to check, amortised: a check looks at every
// request and every KV block, so a core that has many is not checked after every
// event.
type audit struct {
	unchecked int // events since the last check
}

// With up to so many requests and KV blocks a core is checked after every event,
// with k times as many of either after every k-th.
const (
	auditRequests = 256
	auditBlocks   = 4096
)

// due says whether it is time to check.
func (a *audit) due(requests, blocks int) bool {
	a.unchecked++
	if a.unchecked*auditRequests < requests || a.unchecked*auditBlocks < blocks {
		return false
	}
	a.unchecked = 0
	return true
}
