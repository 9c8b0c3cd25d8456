package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/sched"
)

// TestFitIsTheClamp: the search lowers thresholds as the core does (INV-7), so
// what it gives is what runs.
func TestFitIsTheClamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(1, 20).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "models")
		s := Spec{N: n, Cap: rapid.SliceOfN(rapid.IntRange(1, 12), m, m).Draw(t, "cap")}
		for range m {
			s.P, s.Step = append(s.P, make([]float64, m)), append(s.Step, Latency{Base: 1})
			s.P[len(s.P)-1][0] = 1
		}
		q, err := newSearch(&s, Options{FreeB0: true})
		if err != nil {
			t.Fatal(err)
		}
		got := rapid.SliceOfN(rapid.IntRange(-2, 25), m, m).Draw(t, "B")
		want := slices.Clone(got)
		q.fit(got)
		sched.Clamp(want, s.Cap, n)
		if !slices.Equal(got, want) {
			t.Fatalf("%v, the core says %v", got, want)
		}
	})
}
