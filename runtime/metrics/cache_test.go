package metrics_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// Prefix hits are of prompt positions, once per request that comes without KV:
// later parts of a prefill do not count again, nor what was generated. What was
// taken from a request and fed again is recomputed.
func TestCacheAndPreemption(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	s.arrive(0, 1, 60)
	s.arrive(0, 2, 20)
	part := event.Row{Req: 1, Start: 32, Cached: 32, Tokens: make([]event.Token, 7), Prefill: true, PromptLen: 60}
	rest := event.Row{Req: 1, Start: 39, Tokens: make([]event.Token, 21), Prefill: true, Sample: true, PromptLen: 60}
	s.run(0, 0, event.RuleEager, part)
	s.done(10*ms, 0, 9*ms)
	s.run(10*ms, 0, event.RuleAhead, rest, event.Row{Req: 2, Tokens: make([]event.Token, 20), Prefill: true, Sample: true, PromptLen: 20})
	s.done(20*ms, 0, 9*ms, keep(1, 0), keep(2, 0))
	snap := b.Snapshot(20 * ms)
	same(t, "prompt positions", snap.Peers[0].Prompt, 80)
	near(t, "hits", snap.Peers[0].PrefixHits, 32.0/80, 1e-12)
	near(t, "eager", snap.Peers[0].ByEager, 0.5, 0)
	near(t, "look-ahead", snap.Peers[0].ByAhead, 0.5, 0)
	same(t, "recomputed", snap.Peers[0].Recomputed, 0)
	same(t, "prompt positions of a subserver without requests", snap.Peers[1].Prompt, 0)
	near(t, "its hits", snap.Peers[1].PrefixHits, 0, 0)

	s.command(20*ms, 0, event.Command{Kind: event.Preempt, Req: 1, N: 61})
	s.run(30*ms, 0, event.RuleEager, event.Row{Req: 1, Start: 64, Cached: 64, Tokens: make([]event.Token, 3), Prefill: true, Sample: true, PromptLen: 60, Recomputed: 2})
	s.done(40*ms, 0, 9*ms, keep(1, 0))
	snap = b.Snapshot(40 * ms)
	same(t, "preempted", snap.Peers[0].Preempted, 1)
	same(t, "recomputed", snap.Peers[0].Recomputed, 2)
	same(t, "prompt positions, the prompt once more", snap.Peers[0].Prompt, 140)
	near(t, "hits, generated tokens left out", snap.Peers[0].PrefixHits, (32.0+60)/140, 1e-12)
	gone := b.Snapshot(60_000 * ms)
	same(t, "preempted long ago", gone.Peers[0].Preempted, 0)
	same(t, "recomputed long ago", gone.Peers[0].Recomputed, 0)
}

// The latest plan stands beside the figures, also before the first request; it
// is no change and starts no window again. It says nothing of another router,
// clock or speed.
func TestPlanStandsBesideTheFigures(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	same(t, "no plan", b.Snapshot(0).Plan == nil, true)
	same(t, "policy", b.Snapshot(0).Policy, "eager")
	first, second := &tape.Plan{Policy: "table", Predicted: 208}, &tape.Plan{Policy: "table", Predicted: 190}
	s.host(0, first)
	same(t, "before the first request", b.Snapshot(0).Plan, first)
	s.arrive(0, 1, 2)
	s.emit(10*ms, 0, 1, 2)
	policyOf(s, 1000*ms, 2, event.Policy{Kind: event.Table, Table: [][]int{{1, 1}}, W: guardW})
	s.host(1500*ms, second)
	policyOf(s, 1500*ms, 2, event.Policy{Kind: event.Table, Table: [][]int{{1, 1}, {1, 2}}, W: 2 * guardW})
	snap := b.Snapshot(2000 * ms)
	same(t, "the latest", snap.Plan, second)
	same(t, "policy", snap.Policy, "table")
	same(t, "W", int64(snap.W), 2*guardW)
	same(t, "window, since the policy and not since the plan", int64(snap.Window), 1000*ms)
	live := func(hash string) *tape.Plan {
		s.host(2000*ms, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: hash})
		return b.Snapshot(2000 * ms).Plan
	}
	same(t, "another router", live("a") == nil, true)
	s.host(2000*ms, first)
	same(t, "the same router", live("a"), first)
	for _, h := range []tape.Setting{{Setting: "speed", Old: "1x", New: "2x"}, {Setting: "clock", Old: "paced", New: "live"}} {
		s.host(2000*ms, &tape.Setting{Setting: "concurrency", Old: "4", New: "5"})
		s.host(2000*ms, &tape.Setting{Setting: h.Setting, New: h.New})
		same(t, "the same "+h.Setting, b.Snapshot(2000*ms).Plan, first)
		s.host(2000*ms, &h)
		same(t, "another "+h.Setting, b.Snapshot(2000*ms).Plan == nil, true)
		s.host(2000*ms, first)
	}
}
