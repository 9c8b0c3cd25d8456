package live_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
)

// matrixOf is how far TestNothingChangesTokens goes in a tier: as many problems as
// are outstanding at once, at least some.
type matrixOf struct {
	problems      int
	chunks        []int
	concurrencies []int
}

// policies are all threshold policies, with tables and forecasts that make them
// wait often.
func policies() []event.Policy {
	rows := make([][]int, 32)
	for n := range rows {
		rows[n] = []int{1 + n/4, 1 + n/2}
	}
	return []event.Policy{
		{Kind: event.Eager},
		{Kind: event.Fixed, B: []int{2, 3}},
		{Kind: event.Table, Table: rows},
		{Kind: event.LookAhead, Forecast: &event.Forecast{
			Step:    []event.StepTime{{Base: 300e3}, {Base: 1e6}},
			Share:   [][]int{{600_000, 400_000}, {900_000, 100_000}},
			Latency: 50e3,
		}},
	}
}

// TestNothingChangesTokens: policy, prefill chunk, concurrency, the prefix cache
// and preemption change no token and no writer (INV-16, cases D2, E6, G1).
func TestNothingChangesTokens(t *testing.T) {
	for _, r := range shipped {
		t.Run(r.name, func(t *testing.T) {
			base := setup{
				models: loopModels, router: r.name, params: r.params,
				tasks: referenceTasks(t, max(matrix.problems, slices.Max(matrix.concurrencies))), concurrency: 1,
				sampling: event.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7},
				core:     live.CoreOptions{NoPrefix: true},
			}
			solo, _ := run(t, base)
			check := func(what string, s setup) []tape.Record {
				want := maps.Clone(solo)
				maps.DeleteFunc(want, func(id event.ReqID, _ *answer) bool { return int(id) > len(s.tasks) })
				got, recs := run(t, s)
				sameAnswers(t, what, want, got)
				return recs
			}
			for _, p := range policies() {
				for _, chunk := range matrix.chunks {
					for _, n := range matrix.concurrencies {
						s := base
						s.policy, s.concurrency, s.core = p, n, live.CoreOptions{Chunk: chunk}
						s.tasks = base.tasks[:max(matrix.problems, n)]
						check(fmt.Sprintf("%v, chunk %d, concurrency %d", p.Kind, chunk, n), s)
					}
				}
			}
			s := base
			s.concurrency, s.core = 8, live.CoreOptions{Budget: 16, Overcommit: 400}
			s.kvTokens = 400 // one request in the worst case, three as long as most are
			if n := preemptions(check("preempted", s)); n == 0 {
				t.Error("nothing was preempted; the test has lost its sense")
			}
		})
	}
}

// preemptions counts how often KV was taken from a request.
func preemptions(recs []tape.Record) (n int) {
	for i := range recs {
		if c := recs[i].Command; c != nil && c.Kind == event.Preempt {
			n++
		}
	}
	return n
}
