package frontier_test

import (
	"testing"

	"tokenrouter/runtime/frontier"
)

// BenchmarkTable is the table of a large sweep: 2,000 problems, some 20 points that
// were run and 76 that are composed, 100 of the 2,000 resamples.
func BenchmarkTable(b *testing.B) {
	w := world{n: 2000, seed: 1}
	runs := w.sweep()
	for i := range 12 {
		p := 0.005 * float64(i+1)
		runs = append(runs, w.run("rstitch", knob(p), p, 0.5))
	}
	s, err := frontier.NewSet(runs, params, frontier.CostSteps)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		frontier.NewTable(s, frontier.Options{Resamples: 100, Seed: 1, Against: []string{"random", "r2r"}})
	}
}

// BenchmarkFold is a tape of two requests.
func BenchmarkFold(b *testing.B) {
	records := tapeOf()
	b.ReportAllocs()
	for b.Loop() {
		f := frontier.NewFold(2)
		for i := range records {
			f.Add(&records[i])
		}
	}
}
