//go:build !soak && !race

package live_test

// storedProblems is how many of the 60 stored answers a cluster is compared
// with; the soak tier takes all.
func storedProblems(models []string) int {
	if models[len(models)-1] == "tiny-3.7m" {
		return 6
	}
	return 15
}

// Numbers of problems of the tests that run every shipped router.
const (
	virtualTasks       = 8
	virtualSeconds     = 80
	invarianceProblems = 8
	chaosRequests      = 40
	referenceLoop      = 200
)

var (
	concurrencies = []int{8}
	loopModels    = []string{"tiny-37k", "tiny-114k"}
	matrix        = matrixOf{problems: 8, chunks: []int{7}, concurrencies: []int{8}}
)
