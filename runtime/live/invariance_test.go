package live_test

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// shipped are the routers of the library with knobs that make them hand over
// often.
var shipped = []struct {
	name   string
	params map[string]float64
}{
	{"r2r", map[string]float64{"threshold": 0.05}},
	{"rstitch", map[string]float64{"threshold": 0.01}},
	{"me", nil},
	{"random", nil},
	{"small_only", nil},
	{"large_only", nil},
}

// TestBatchingChangesNothing: the same seed gives the same tokens by the same
// writers whatever the batches were (INV-16, case G1).
func TestBatchingChangesNothing(t *testing.T) {
	fixed := func(b ...int) event.Policy { return event.Policy{Kind: event.Fixed, B: b} }
	for _, r := range shipped {
		t.Run(r.name, func(t *testing.T) {
			base := setup{
				models: []string{"tiny-37k", "tiny-114k"}, router: r.name, params: r.params,
				tasks: referenceTasks(t, invarianceProblems), concurrency: 1,
				sampling: event.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7},
			}
			solo, recs := run(t, base)
			// The controls that never come back resume nothing.
			if n := resumesFeedWhatIsMissing(t, recs); n == 0 && !strings.HasSuffix(r.name, "_only") {
				t.Error("nothing was resumed; the test has lost its sense")
			}
			check := func(what string, change func(*setup)) {
				s := base
				change(&s)
				got, recs := run(t, s)
				sameAnswers(t, what, solo, got)
				resumesFeedWhatIsMissing(t, recs)
			}
			for _, n := range concurrencies {
				check(fmt.Sprintf("concurrency %d", n), func(s *setup) { s.concurrency = n })
				check(fmt.Sprintf("concurrency %d, B 1,3", n), func(s *setup) { s.concurrency, s.policy = n, fixed(1, 3) })
				check(fmt.Sprintf("concurrency %d, B 4,2", n), func(s *setup) { s.concurrency, s.policy = n, fixed(4, 2) })
			}
			check("paced", func(s *setup) { s.concurrency, s.pacer = 8, pacedAt(t, 64) })
		})
	}
}

// TestThreeModels: the same with a model in the middle, where what a peer holds
// is not what the sender last sent (INV-14).
func TestThreeModels(t *testing.T) {
	base := setup{
		models: []string{"tiny-37k", "tiny-114k", "tiny-842k"}, router: "me",
		tasks: referenceTasks(t, 4), concurrency: 1,
		sampling: event.Sampling{Temperature: 1, Seed: 3},
	}
	solo, recs := run(t, base)
	resumesFeedWhatIsMissing(t, recs)
	writers := map[event.Peer]int{}
	for _, a := range solo {
		for _, w := range a.writers {
			writers[w]++
		}
	}
	if len(writers) != 3 {
		t.Errorf("tokens by %v, want all three models to write", writers)
	}
	base.concurrency = 4
	got, recs := run(t, base)
	sameAnswers(t, "concurrency 4", solo, got)
	resumesFeedWhatIsMissing(t, recs)
}

// resumesFeedWhatIsMissing checks on the tape that nothing is computed twice: a
// resume extends by the suffix, and by one more where this model's last step
// committed the token that it has not fed yet (case D9). It returns how many
// resumes there were.
func resumesFeedWhatIsMissing(t *testing.T, recs []tape.Record) (resumes int) {
	t.Helper()
	type place struct {
		core event.Peer
		req  event.ReqID
	}
	type hold struct {
		held, fed int
		suffix    int  // tokens the last message brought
		committed bool // the last step here committed
		resumed   bool
	}
	held := map[place]*hold{}
	prompt := map[event.ReqID]int{}
	rows := map[place]*event.Row{}
	for i := range recs {
		r := &recs[i]
		if ev := r.Event; ev != nil {
			switch ev.Kind {
			case event.Arrive:
				prompt[ev.Req] = len(ev.Arrival.Prompt)
				held[place{r.Core, ev.Req}] = &hold{held: len(ev.Arrival.Prompt)}
			case event.PeerIn:
				if ev.Peer.Status != event.New && ev.Peer.Status != event.Alive {
					continue
				}
				k := place{r.Core, ev.Peer.ID}
				h := held[k]
				if h == nil {
					h = &hold{}
					held[k] = h
				}
				now := ev.Peer.Loc + len(ev.Peer.Suffix)
				h.suffix, h.held, h.resumed = now-h.held, now, h.fed > 0
			case event.StepDone:
				for j := range ev.Step.Rows {
					res := &ev.Step.Rows[j]
					k := place{r.Core, res.Req}
					h, row := held[k], rows[k]
					h.fed = row.Start + len(row.Tokens)
					h.committed = res.Action == event.Keep
					h.held = h.fed
					if h.committed {
						h.held++
					}
				}
			}
		}
		if c := r.Command; c != nil && c.Kind == event.RunBatch {
			for j := range c.Batch.Rows {
				row := &c.Batch.Rows[j]
				k := place{r.Core, row.Req}
				rows[k] = row
				if row.Recomputed != 0 {
					t.Errorf("request %d at %d recomputes %d positions", row.Req, r.Core, row.Recomputed)
				}
				h := held[k]
				if h == nil || !h.resumed {
					continue
				}
				resumes++
				h.resumed = false
				want := h.suffix
				if h.committed {
					want++
				}
				if len(row.Tokens) != want || row.Start != h.fed {
					t.Errorf("request %d resumes at %d with %d tokens from %d, want %d from %d", row.Req, r.Core, len(row.Tokens), row.Start, want, h.fed)
				}
			}
		}
	}
	return resumes
}
