//go:build soak

package sim_test

// Sizes of the proofs whose figures are quoted.
const (
	curveSeconds   = 10_000
	curveError     = 0.003
	systemSeconds  = 5_000
	drains         = 400
	pairedSeeds    = 20
	pairedSeconds  = 1_000
	switchSeeds    = 20
	switchSure     = true
	switchSeconds  = 400
	poolStreams    = 12_000
	predictMost    = 16
	predictSeeds   = 20
	predictSeconds = 200
	poolSeconds    = 60
)
