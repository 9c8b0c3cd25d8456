//go:build !soak

package workload

// How much the laws of arrivals are tested on: seeds, arrivals of each, and the
// longest window in seconds, of which there have to be many.
const (
	statSeeds    = 1
	statArrivals = 1_200_000
	statWindow   = 5.0
)
