package tiny_test

import (
	"testing"

	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/workload"
)

// mixCount is how many answers of a family's first problems for evaluation are
// right: of the first 20, and of the 300 of the model card.
type mixCount struct{ of20, of300 int }

var mixCounts = map[string]map[string]mixCount{
	"mix-114k": {
		"story": {16, 261}, "ledger": {4, 34}, "units": {6, 137}, "calendar": {9, 151}, "sort": {11, 160}, "count": {10, 211},
	},
	"mix-842k": {
		"story": {20, 298}, "ledger": {20, 298}, "units": {17, 266}, "calendar": {20, 300}, "sort": {20, 287}, "count": {20, 290},
	},
}

// TestMixAccuracy: every mix model answers what the card says. The engine gives
// the same bits everywhere, so the counts are exact.
func TestMixAccuracy(t *testing.T) {
	for name, counts := range mixCounts {
		if len(counts) != len(workload.Families()) {
			t.Errorf("%s: counts of %d families, there are %q", name, len(counts), workload.Families())
		}
		for family, count := range counts {
			t.Run(name+"/"+family, func(t *testing.T) {
				t.Parallel()
				n, want := mixProblems[name], count.of20
				switch n {
				case 0:
					t.Skip("counted in the soak tier")
				case 300:
					want = count.of300
				}
				if got := rightOf(t, name, family, n); got != want {
					t.Errorf("%d of %d answers are right, want %d", got, n, want)
				}
			})
		}
	}
	for _, name := range tiny.Names() {
		if _, ok := mixCounts[name]; !ok && name[:3] == "mix" {
			t.Errorf("%s is not counted", name)
		}
	}
}

// rightOf counts the right answers to a family's first n problems.
func rightOf(t *testing.T, name, family string, n int) (right int) {
	t.Helper()
	m := load(t, name)
	g, err := workload.NewFamily(family, workload.EvaluationSeed)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		p := g.Problem()
		prompt, err := m.Tokenizer.EncodeChat([]tokenizer.Message{{Role: "user", Content: p.Question}})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := workload.Extract(m.Tokenizer.Decode(write(t, m, prompt))); ok && workload.Correct(got, p.Answer) {
			right++
		}
	}
	return right
}
