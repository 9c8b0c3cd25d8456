package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
)

// draft writes k tokens before it looks back: the first of them that was unsure
// is written by the large model, and those behind it are taken back.
const draft = `
hold(8)
local threshold = param("threshold", { default = 0.2, min = 0, max = 4 })
local k = param("k", { default = 6, min = 1, max = 9 })
function route(r)
  if r.model == "large" then return HOME end
  local s = r.state
  s.n = (s.n or 0) + 1
  if not s.over and r.entropy >= threshold() then s.over = r.pos end
  if s.n < k() and not r.last then return STAY end
  local over = s.over
  r.state = nil
  if over then return to("large"), TRUNCATE(over) end
  return STAY
end
`

// Looking back after k tokens is the same as looking at each: greedy, the token
// at which the draft is cut and all before it are those of a router that asks at
// once. So tokens and writers are r2r's, whatever k, though the small model wrote
// much that nobody ever saw, and no position is fed twice for want of KV.
func TestDraftsAreCut(t *testing.T) {
	const n = 12
	want, _ := run(t, setup{
		models: []string{"tiny-37k", "tiny-842k"}, router: "r2r", params: map[string]float64{"threshold": 0.2},
		concurrency: 4, tasks: referenceTasks(t, n),
	})
	for _, tc := range []struct {
		k           float64
		concurrency int
		virtual     bool
	}{{1, 4, false}, {2, 8, false}, {6, 1, false}, {6, 8, true}, {9, 8, false}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "draft.lua"), []byte(draft), 0o644); err != nil {
			t.Fatal(err)
		}
		s := setup{
			models: []string{"tiny-37k", "tiny-842k"}, router: "draft", params: map[string]float64{"k": tc.k},
			concurrency: tc.concurrency, tasks: referenceTasks(t, n), dir: dir, virtual: tc.virtual,
		}
		got, recs := run(t, s)
		sameAnswers(t, "draft", want, got)
		checkTape(t, s, recs)
		cut := 0
		for i := range recs {
			switch r := &recs[i]; {
			case r.Kind == tape.KindEvent && r.Event.Kind == event.StepDone:
				for _, row := range r.Event.Step.Rows {
					if row.Action == event.Truncate {
						cut++
					}
					if row.Fault != "" {
						t.Fatal(row.Fault)
					}
				}
			case r.Kind == tape.KindCommand && r.Command.Kind == event.RunBatch:
				for _, row := range r.Command.Batch.Rows {
					if row.Recomputed > 0 {
						t.Fatalf("k=%v: %d positions are recomputed", tc.k, row.Recomputed)
					}
				}
			case r.Kind == tape.KindCommand && r.Command.Kind == event.Note:
				t.Fatalf("k=%v: %v", tc.k, r.Command)
			}
		}
		if cut < n {
			t.Errorf("k=%v: %d drafts were cut; the test has lost its sense", tc.k, cut)
		}
	}
}

// restless lets every model write runs and takes tokens back at random, as far as
// its hold goes.
const restless = `
%H
function route(r)
  local s = r.state
  if r.model ~= "small" then
    if r.random(0) < 0.4 then return HOME end
    return STAY
  end
  local at = math.max(r.emitted, (s.cut or 0) + 1, r.pos - 1 - math.floor(9 * r.random(1)))
  if r.random(0) < 0.15 and at < r.pos then
    s.cut = at
    return to("large"), TRUNCATE(at)
  end
  if r.random(2) < 0.1 then return to("large"), DROP end
  if r.random(3) < 0.1 then return to("middle") end
  return STAY
end
`

// A router that is reloaded with another hold while requests run, on three models:
// nobody is stuck, every position is emitted once and in order, the counts agree
// and the cores order the same when told again (INV-18 to 20).
func TestHoldIsReloaded(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i, hold := range []string{"hold(6)", "hold(1)", "hold(30)"} {
		names = append(names, string(rune('a'+i)))
		text := strings.ReplaceAll(restless, "%H", hold)
		if err := os.WriteFile(filepath.Join(dir, names[i]+".lua"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names = append(names, "r2r")
	for _, core := range []live.CoreOptions{{}, {Chunk: 7, Overcommit: 300}, {Resubmit: true}} {
		s := setup{
			models: []string{"tiny-37k", "tiny-114k", "tiny-842k"}, router: "a", dir: dir,
			concurrency: 6, tasks: referenceTasks(t, 10), core: core, kvTokens: 4096, tape: tape.New(),
			policy: event.Policy{Kind: event.Fixed, B: []int{2, 1, 2}},
		}
		all, sub := s.tape.Subscribe(), s.tape.Subscribe()
		rt := newRuntime(t, s)
		rt.Start()
		for i := range 7 {
			n := 0
			await(sub, func(r *tape.Record) bool {
				if isCommand(event.Emit)(r) {
					n++
				}
				return n == 60
			})
			if err := rt.SetRouter(names[(i+1)%len(names)]); err != nil {
				t.Fatal(err)
			}
		}
		sub.Close()
		<-rt.Done()
		closeRuntime(t, rt)
		recs := all.Next(nil, 0)
		checkTape(t, s, recs)
		cut, others := 0, 0
		for i := range recs {
			if c := recs[i].Command; c != nil && c.Kind == event.Emit && c.Wrote > 0 {
				others++
			}
			if ev := recs[i].Event; ev != nil && ev.Kind == event.StepDone {
				for _, row := range ev.Step.Rows {
					if row.Action == event.Truncate {
						cut++
					}
				}
			}
		}
		if cut < 10 || others < 50 {
			t.Errorf("%+v: %d truncations, %d tokens emitted for another; the test has lost its sense", core, cut, others)
		}
	}
}
