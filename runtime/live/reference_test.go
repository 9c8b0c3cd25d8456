package live_test

import (
	"fmt"
	"math"
	"testing"

	"tokenrouter/runtime/event"
)

// The stored answers come from an independent float32 implementation. Ids and
// writers must be equal wherever both its gaps (between the two best logits,
// and of the entropy to the threshold) exceed nearTie; at a nearer tie either
// side is right.
const nearTie = 1e-3

// lnV turns R-Stitch's normalised entropy into nats for the tiny family.
var lnV = math.Log(424)

type referenceRun struct {
	file   string // of the stored answers
	key    string // in the summary
	models []string
	router string
	param  float64

	// of all 300 problems, in the independent implementation
	correct, large int
}

var referenceRuns = []referenceRun{
	{"greedy_entropy_0.05.jsonl", "entropy_0.05", []string{"tiny-37k", "tiny-842k"}, "r2r", 0.05, 288, 2222},
	{"greedy_entropy_0.2.jsonl", "entropy_0.2", []string{"tiny-37k", "tiny-842k"}, "r2r", 0.2, 286, 1274},
	{"greedy_entropy_0.5.jsonl", "entropy_0.5", []string{"tiny-37k", "tiny-842k"}, "r2r", 0.5, 276, 832},
	{"greedy_entropy_0.8.jsonl", "entropy_0.8", []string{"tiny-37k", "tiny-842k"}, "r2r", 0.8, 214, 490},
	{"greedy_rstitch_0.1.jsonl", "rstitch_0.1", []string{"tiny-37k", "tiny-842k"}, "rstitch", 0.1 / lnV, 286, 1838},
	{"greedy_rstitch_0.3.jsonl", "rstitch_0.3", []string{"tiny-37k", "tiny-842k"}, "rstitch", 0.3 / lnV, 283, 1238},
	{"greedy_entropy_0.2_3.7m.jsonl", "entropy_0.2_3.7m", []string{"tiny-37k", "tiny-3.7m"}, "r2r", 0.2, 294, 1273},
	{"greedy_entropy_0.5_3.7m.jsonl", "entropy_0.5_3.7m", []string{"tiny-37k", "tiny-3.7m"}, "r2r", 0.5, 282, 832},
}

func (r referenceRun) setup(t testing.TB, n int) setup {
	return setup{
		models: r.models, router: r.router, params: map[string]float64{"threshold": r.param},
		concurrency: 8, tasks: referenceTasks(t, n),
	}
}

func TestStoredAnswers(t *testing.T) {
	for _, r := range referenceRuns {
		t.Run(r.key, func(t *testing.T) {
			n := storedProblems(r.models)
			got, _ := run(t, r.setup(t, n))
			for _, g := range readGolden(t, r.file)[:n] {
				tie := g.MinMargin < nearTie || g.MinThresholdGap != nil && *g.MinThresholdGap < nearTie
				if err := equalsStored(got[event.ReqID(g.Problem+1)], g); err != nil && !tie {
					t.Errorf("problem %d: %v", g.Problem, err)
				}
			}
		})
	}
}

func equalsStored(a *answer, g golden) error {
	for k, id := range g.IDs {
		if k >= len(a.ids) {
			return fmt.Errorf("ends after %d of %d tokens", k, len(g.IDs))
		}
		if w := event.Peer(g.Src[k] - '0'); a.ids[k] != id || a.writers[k] != w {
			return fmt.Errorf("token %d is %d by %d, stored %d by %d", k, a.ids[k], a.writers[k], id, w)
		}
	}
	if len(a.ids) != len(g.IDs) {
		return fmt.Errorf("has %d tokens, stored %d", len(a.ids), len(g.IDs))
	}
	return nil
}
