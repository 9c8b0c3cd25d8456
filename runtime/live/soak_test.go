//go:build soak

package live_test

import (
	"math"
	"testing"

	"tokenrouter/runtime/event"
)

func storedProblems([]string) int { return 60 }

const (
	virtualTasks       = 60
	virtualSeconds     = 1000
	invarianceProblems = 60
	chaosRequests      = 3000
	referenceLoop      = 200
)

var (
	concurrencies = []int{8, 32}
	loopModels    = []string{"tiny-37k", "tiny-3.7m"}
	matrix        = matrixOf{problems: 8, chunks: []int{1, 7, 64}, concurrencies: []int{1, 8, 32}}
)

// TestAllProblems holds the counts over all 300 evaluation problems against the
// independent implementation: right answers within 2, large tokens within 1 %.
func TestAllProblems(t *testing.T) {
	for _, r := range referenceRuns {
		t.Run(r.key, func(t *testing.T) {
			got, _ := run(t, r.setup(t, 300))
			correct, large, tokens := 0, 0, 0
			for _, a := range got {
				if a.result.Correct {
					correct++
				}
				tokens += len(a.writers)
				for _, w := range a.writers {
					if w != event.Front {
						large++
					}
				}
			}
			t.Logf("%d of 300 right (stored %d), %d large tokens (stored %d), %d tokens", correct, r.correct, large, r.large, tokens)
			if d := correct - r.correct; d < -2 || d > 2 {
				t.Errorf("%d right answers, stored %d", correct, r.correct)
			}
			if math.Abs(float64(large-r.large)) > 0.01*float64(r.large) {
				t.Errorf("%d large tokens, stored %d", large, r.large)
			}
		})
	}
}
