package metrics_test

import (
	"math/rand/v2"
)

// newNormal gives standard normal numbers from a seed.
func newNormal(seed uint64) func() float64 {
	return rand.New(rand.NewPCG(seed, 1)).NormFloat64
}
