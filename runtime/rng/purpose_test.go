package rng

import "testing"

// Purposes keep their values: a seed means the same for ever. Families leave one
// another room.
func TestPurposesAreNeverRenumbered(t *testing.T) {
	for p, want := range map[Purpose]uint32{
		Sample: 1, Router: 2, Workload: 3,
		Route: 0x100, Phase: 0x101, Length: 0x102, Jitter: 0x103, Prompt: 0x104, Stall: 0x105,
		Law: 0x110, Arrivals: 0x120,
	} {
		if uint32(p) != want {
			t.Errorf("purpose %#x was %#x when seeds were recorded", uint32(p), want)
		}
	}
}
