//go:build race && !soak

package live_test

// Under the race detector the forward pass is some thirty times slower; what it
// is there to find shows in a few problems.
func storedProblems([]string) int { return 1 }

const (
	virtualTasks       = 4
	virtualSeconds     = 20
	invarianceProblems = 2
	chaosRequests      = 20
	referenceLoop      = 4
)

var (
	concurrencies = []int{8}
	loopModels    = []string{"tiny-37k", "tiny-114k"}
	matrix        = matrixOf{problems: 2, chunks: []int{7}, concurrencies: []int{8}}
)
