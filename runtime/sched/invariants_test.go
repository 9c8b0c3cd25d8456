//go:build invariants

package sched

import "testing"

// A core is checked after every event while it is small, then after every k-th.
func TestAuditIsAmortised(t *testing.T) {
	for _, tc := range []struct{ requests, blocks, every int }{
		{0, 1, 1},
		{256, 4096, 1},
		{257, 1, 2},
		{12_000, 4096, 47},
		{10, 64_000, 16},
	} {
		var a audit
		checks := 0
		for range 100 * tc.every {
			if a.due(tc.requests, tc.blocks) {
				checks++
			}
		}
		if checks != 100 {
			t.Errorf("%+v: checked %d times in %d events", tc, checks, 100*tc.every)
		}
	}
}
