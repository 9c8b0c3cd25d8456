//go:build !soak

package sim_test

// Sizes of the proofs in the default tier: enough to catch a core that does
// otherwise, not to print figures. See soak_test.go.
const (
	curveSeconds   = 180 // of each point of a throughput curve
	curveError     = 0.015
	systemSeconds  = 80
	drains         = 30
	pairedSeeds    = 20
	pairedSeconds  = 10
	switchSeeds    = 5
	switchSure     = false // so few seeds leave half a percent open
	switchSeconds  = 40
	poolStreams    = 1_000
	predictMost    = 8
	predictSeeds   = 3
	predictSeconds = 4
	poolSeconds    = 6
)
