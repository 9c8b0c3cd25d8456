//go:build soak

package live_test

import "tokenrouter/runtime/event"

const (
	algoProblems = 400
	algoBlocks   = 9
)

var threeModels = []string{"tiny-37k", "tiny-842k", "tiny-3.7m"}

// algoCells are all combinations of four policies, three chunks and three
// concurrencies. Each takes a ninth of the problems, such that each policy, each
// chunk and each concurrency takes all of them.
func algoCells(policies []event.Policy) (cells []algoCell) {
	for p := range policies {
		for c, chunk := range []int{1, 7, 64} {
			for n, concurrency := range []int{1, 8, 32} {
				cells = append(cells, algoCell{policies[p], chunk, concurrency, (2*p + 3*c + n) % algoBlocks})
			}
		}
	}
	return cells
}
