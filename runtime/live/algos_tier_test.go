//go:build !soak

package live_test

import "tokenrouter/runtime/event"

const algoProblems, algoBlocks = 6, 1

var threeModels = []string{"tiny-37k", "tiny-114k", "tiny-842k"}

// algoCells is one cell of the soak tier, in which batches wait and prompts are cut.
func algoCells(policies []event.Policy) []algoCell {
	return []algoCell{{policies[1], 7, 8, 0}}
}
