//go:build soak

package workload

const (
	statSeeds    = 4
	statArrivals = 6_000_000
	statWindow   = 20.0
)
