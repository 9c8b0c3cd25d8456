package live_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
)

// TestResubmitChangesNoToken: where every switch between models is a new request,
// more is fed and nothing else changes, with and without a prefix cache, in
// parts, preempted, in lock-step and one at a time (INV-16). All that is fed
// again is on the tape, behind the order that took the KV (INV-14).
func TestResubmitChangesNoToken(t *testing.T) {
	for _, r := range shipped {
		t.Run(r.name, func(t *testing.T) {
			base := setup{
				models: loopModels, router: r.name, params: r.params,
				tasks: referenceTasks(t, 4), concurrency: 1,
				sampling: event.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7},
			}
			want, recs := run(t, base)
			if n := switches(t, recs, false); n.recomputed != 0 {
				t.Fatalf("%d positions are recomputed without a cause", n.recomputed)
			}
			check := func(what string, core live.CoreOptions, change func(*setup)) taken {
				s := base
				s.concurrency, s.core = 4, core
				s.core.Resubmit = true
				if change != nil {
					change(&s)
				}
				got, recs := run(t, s)
				sameAnswers(t, what, want, got)
				checkTape(t, s, recs)
				return switches(t, recs, true)
			}
			found := check("resubmitted", live.CoreOptions{}, nil)
			anew := check("no prefix cache", live.CoreOptions{NoPrefix: true}, nil)
			if !strings.HasSuffix(r.name, "_only") && (found.recomputed == 0 || anew.recomputed <= found.recomputed) {
				t.Errorf("%+v with a prefix cache and %+v without: the test has lost its sense", found, anew)
			}
			check("in parts", live.CoreOptions{Chunk: 7, Budget: 24}, nil)
			check("preempted", live.CoreOptions{Overcommit: 400}, func(s *setup) { s.kvTokens = 640 })
			check("in lock-step", live.CoreOptions{}, func(s *setup) { s.policy = event.Policy{Kind: event.LockStep} })
			check("one at a time", live.CoreOptions{MaxActive: 1}, nil)
		})
	}
}

// A router's is_prefill is the first candidate that a subserver draws for a
// request, also where it feeds the request anew later on.
func TestResubmitIsNoFirstCandidate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "first.lua"), []byte(firstHere), 0o600); err != nil {
		t.Fatal(err)
	}
	s := setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "first", dir: dir,
		tasks: referenceTasks(t, 4), concurrency: 1,
	}
	want, _ := run(t, s)
	s.core.Resubmit, s.concurrency = true, 4
	got, recs := run(t, s)
	sameAnswers(t, "resubmitted", want, got)
	if n := switches(t, recs, true); n.taken == 0 {
		t.Error("no request was resubmitted; the test has lost its sense")
	}
}

// The guard W is twice the slowest decode step, and under Resubmit the large model
// has no step without a prefill: those are its steps.
func TestGuardOfResubmitted(t *testing.T) {
	s := setup{
		models: []string{"tiny-37k", "tiny-3.7m"}, router: "r2r", params: map[string]float64{"threshold": 0.05},
		tasks: referenceTasks(t, 4), concurrency: 4, core: live.CoreOptions{Resubmit: true}, tape: tape.New(),
	}
	sub := s.tape.Subscribe()
	rt := newRuntime(t, s)
	rt.Start()
	<-rt.Done()
	closeRuntime(t, rt)
	recs := sub.Next(nil, 0)
	least, steps := time.Duration(math.MaxInt64), 0
	for i := range recs {
		if ev := recs[i].Event; ev != nil && ev.Kind == event.StepDone && recs[i].Core == 1 {
			least, steps = min(least, time.Duration(ev.Step.ExecNs)), steps+1
		}
	}
	if w := rt.GuardW(); steps == 0 || w < 2*least {
		t.Errorf("W is %v and the shortest of %d steps of the large model took %v", w, steps, least)
	}
}

// taken counts how often KV was taken and how many positions were fed again.
type taken struct{ taken, recomputed int }

// switches follows the KV of every request over the tape: what is fed again was
// taken before by a Preempt, what is not on a prefill row was never taken, and
// with resubmit whoever passes the pen holds none.
func switches(t *testing.T, recs []tape.Record, resubmit bool) (n taken) {
	t.Helper()
	type place struct {
		core event.Peer
		req  event.ReqID
	}
	held, robbed := map[place]bool{}, map[place]bool{}
	for i := range recs {
		c := recs[i].Command
		if c == nil {
			continue
		}
		at := place{recs[i].Core, c.Req}
		switch c.Kind {
		case event.Preempt:
			n.taken++
			held[at], robbed[at] = false, true
		case event.Free:
			held[at] = false
		case event.SendPeer:
			if resubmit && held[at] && (c.Peer.Status == event.New || c.Peer.Status == event.Alive) {
				t.Errorf("request %d goes from %d to %d and leaves its KV", c.Req, at.core, c.To)
			}
		case event.RunBatch:
			for j := range c.Batch.Rows {
				row := &c.Batch.Rows[j]
				at.req = row.Req
				if row.Prefill == held[at] {
					t.Errorf("request %d at %d: prefill is %v with KV %v", row.Req, at.core, row.Prefill, held[at])
				}
				if row.Recomputed > 0 && !robbed[at] {
					t.Errorf("request %d at %d feeds %d positions again that nobody took", row.Req, at.core, row.Recomputed)
				}
				held[at] = true
				n.recomputed += row.Recomputed
			}
		}
	}
	return n
}
