package rng

import "math/bits"

// Multipliers and Weyl key increments of Philox4x64 (SC 2011, table 2).
const (
	mul0  = 0xD2E7470EE14C6C93
	mul1  = 0xCA5A826395121157
	weyl0 = 0x9E3779B97F4A7C15 // golden ratio
	weyl1 = 0xBB67AE8584CAA73B // sqrt(3) - 1

	rounds = 10
)

// philox4x64 encrypts one counter under one key. For a fixed key it is a
// permutation of the 256-bit counters.
func philox4x64(ctr [4]uint64, key [2]uint64) [4]uint64 {
	for range rounds {
		hi0, lo0 := bits.Mul64(mul0, ctr[0])
		hi1, lo1 := bits.Mul64(mul1, ctr[2])
		ctr = [4]uint64{hi1 ^ ctr[1] ^ key[0], lo1, hi0 ^ ctr[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return ctr
}
