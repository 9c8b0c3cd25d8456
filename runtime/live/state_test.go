package live_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/tape"
)

// TestStateBelongsToTheRequest: a router that decides by what it has seen of a
// request decides for each as if it were alone, also where its state travels and
// a message carries a budget and fields (case F2); and the same question, asked
// four times, is answered four times the same (case D1).
func TestStateBelongsToTheRequest(t *testing.T) {
	const router = `
function route(r)
  local s = r.state
  s.unsure = r.entropy > 0.05 and (s.unsure or 0) + 1 or math.max((s.unsure or 0) - 1, 0)
  s.last = s.here
  s.here = r.model
  if r.model == "large" then
    if (r.fields.more or 0) > 2 and s.last == "large" then return STAY end
    return s.unsure % 2 == 0 and HOME or STAY
  end
  if s.unsure > 1 then return to("large"), (s.unsure % 3 == 0) and DROP or KEEP end
  return STAY
end
function send(req, dest)
  return { budget = 1 + (req.state.unsure or 0) % 4, fields = { more = req.state.unsure } }
end
`
	dir := t.TempDir()
	path := filepath.Join(dir, "stateful.lua")
	if err := os.WriteFile(path, []byte(router), 0o644); err != nil {
		t.Fatal(err)
	}
	s := setup{models: []string{"tiny-37k", "tiny-114k"}, router: path, dir: dir, tasks: referenceTasks(t, invarianceProblems), concurrency: 1}
	for range 3 {
		again := s.tasks[0]
		again.ID += "'"
		s.tasks = append(s.tasks, again)
	}
	solo, recs := run(t, s)
	checkTape(t, s, recs)
	s.concurrency, s.policy = 8, event.Policy{Kind: event.Fixed, B: []int{2, 3}}
	got, recs := run(t, s)
	sameAnswers(t, "beside each other", solo, got)
	checkTape(t, s, recs)
	first, writers := solo[1], map[event.Peer]int{}
	for id := range event.ReqID(3) {
		a := solo[event.ReqID(len(s.tasks))-id]
		if !slices.Equal(a.ids, first.ids) || !slices.Equal(a.writers, first.writers) {
			t.Errorf("asked again, %v by %v, before %v by %v", a.ids, a.writers, first.ids, first.writers)
		}
	}
	for _, w := range first.writers {
		writers[w]++
	}
	if len(writers) != 2 {
		t.Errorf("tokens by %v, want both models to write", writers)
	}
}

// shut keeps every step waiting until it is opened.
type shut struct {
	runner.Runner
	open chan struct{}
}

func (g *shut) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	<-g.open
	return g.Runner.Run(ctx, b, out)
}

// TestPeerThatStands: while a peer stands still the requests that wait for it
// are seen, cancelled and replaced, and controls answer; once it moves all is
// freed (case E9).
func TestPeerThatStands(t *testing.T) {
	open := make(chan struct{})
	s := pair(t, 12)
	s.router, s.params = "large_only", nil
	n := 0
	s.wrap = func(r runner.Runner) runner.Runner {
		if n++; n == 2 {
			return &shut{r, open}
		}
		return r
	}
	sub, all := s.tape.Subscribe(), s.tape.Subscribe()
	rt := newRuntime(t, s)
	rt.Start()
	pending := func(want int) {
		await(sub, func(r *tape.Record) bool { return r.Load != nil && r.Core == event.Front && r.Load.Pending == want })
	}
	pending(s.concurrency)
	for id := range event.ReqID(4) {
		rt.Cancel(1 + id)
		await(sub, func(r *tape.Record) bool {
			res, ok := r.Host.(*tape.Result)
			return ok && res.Req == 1+id && res.Reason == "aborted"
		})
		pending(s.concurrency) // the next one waits in its place
	}
	if err := rt.SetRouter("me"); err != nil {
		t.Error(err)
	}
	close(open)
	<-rt.Done()
	closeRuntime(t, rt)
	checkTape(t, s, all.Next(nil, 0))
}
