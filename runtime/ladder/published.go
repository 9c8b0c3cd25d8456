package ladder

import (
	"fmt"
	"strings"
)

// PublishedStep is a level of the ladder that was published for R2R on a pair of
// A100, with the rung here that does the same.
type PublishedStep struct {
	TokensPerS float64 `json:"tokens_per_s"`
	Rung       string  `json:"rung"` // "" where none does
	What       string  `json:"what"`
}

// Published are levels, not increments: each number is the throughput with all
// steps up to it. Its concurrency was not published.
var Published = []PublishedStep{
	{132.78, "", "lock-step, research code (the official R2R repository: 134.9)"},
	{230.79, Lockstep, "lock-step, serving engine"},
	{296.86, Async, "asynchronous"},
	{372.48, TokenRouter, "delayed batches"},
}

// PublishedText sets the steps of t beside the published ones, and says what a
// model of step times can show of them.
func PublishedText(t *Table) string {
	var b strings.Builder
	p := Published
	fmt.Fprintf(&b, "%-40s  %10s  %10s  %10s  %10s\n", "beside the published ladder", "lock-step", "x async", "x delayed", "x both")
	fmt.Fprintf(&b, "%-40s  %10.2f  %10.3f  %10.3f  %10.3f\n", "R2R on two A100, n not published",
		p[1].TokensPerS, p[2].TokensPerS/p[1].TokensPerS, p[3].TokensPerS/p[2].TokensPerS, p[3].TokensPerS/p[1].TokensPerS)
	for _, n := range t.Grid.Concurrency {
		var level [3]float64
		for i, rung := range []string{Lockstep, Async, TokenRouter} {
			if r := t.Row(rung, n); r != nil && r.Values[Throughput].N > 0 {
				level[i] = r.Values[Throughput].Mean
			}
		}
		fmt.Fprintf(&b, "%-40s", fmt.Sprintf("here, n %d", n))
		for i, x := range []float64{level[0], level[1] / level[0], level[2] / level[1], level[2] / level[0]} {
			from := []float64{1, level[0], level[1], level[0]}[i]
			switch {
			case !(x > 0) || !(from > 0):
				fmt.Fprintf(&b, "  %10s", "-")
			case i == 0:
				fmt.Fprintf(&b, "  %10.2f", x)
			default:
				fmt.Fprintf(&b, "  %10.3f", x)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	b.WriteString(Wrap(fmt.Sprintf("Published: %.2f -> %.2f -> %.2f -> %.2f tok/s. The first step, x%.3f, is another engine "+
		"under the same schedule: no model of step times has it. The other two are schedule. At p 0.35 and 6.0 and 27.9 ms a step, "+
		"with nothing that slows a step down, no n up to 16 has both: delayed batches gain 11.5 %% at most. Let the small model take "+
		"1.8 times as long while the large one runs, for n = 8 (--contention small@large:1.8), and all three levels come near. But "+
		"that 1.8 and that n are the best of 61 combinations for these three numbers: a fit after the fact, not a prediction.",
		p[0].TokensPerS, p[1].TokensPerS, p[2].TokensPerS, p[3].TokensPerS, p[1].TokensPerS/p[0].TokensPerS), 0))
	return b.String()
}
