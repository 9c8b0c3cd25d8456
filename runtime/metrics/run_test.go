package metrics_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// Case B7: each token once, under one role; what was cut after a stop, and what a
// peer wrote after the end, is in no count, neither of the run nor of the board.
func TestCutTokensAreNotCounted(t *testing.T) {
	b, r := metrics.NewBoard(3), metrics.NewRun(3)
	s := newScript(b, r)
	s.arrive(0, 1, 4)
	for i, core := range []event.Peer{0, 1, 1, 2, 0, 2} {
		s.emit(int64(i+1)*10*ms, core, 1, 4+i)
	}
	s.finish(65*ms, 1, 7) // prompt 4, three tokens stay
	s.emit(70*ms, 2, 1, 10)
	s.arrive(70*ms, 2, 4)
	s.emit(80*ms, 0, 2, 4)
	sum := r.Summary(100 * ms)
	same(t, "tokens", sum.Tokens, 4)
	same(t, "small", sum.TokensByRole[0].Tokens, 2)
	same(t, "middle", sum.TokensByRole[1].Tokens, 2)
	same(t, "large", sum.TokensByRole[2].Tokens, 0)
	same(t, "large tokens", sum.LargeTokens, 0)
	same(t, "role", sum.TokensByRole[1].Role, "middle")
	near(t, "switches", sum.SwitchesPerToken, 0.25, 1e-9)
	same(t, "ITLs", sum.ITLms.N, 2)
	same(t, "stop", sum.Ends["stop"], 1)
	same(t, "open", sum.Ends["open"], 1)
	same(t, "requests", sum.Requests, 2)
	snap := b.Snapshot(100 * ms)
	same(t, "board tokens", snap.Tokens, 4)
	near(t, "board middle", snap.Peers[1].CommittedPerS, 20, 1e-9)
	near(t, "board large", snap.Peers[2].CommittedPerS, 0, 0)
	near(t, "board switches", snap.SwitchesPerToken, 0.25, 1e-9)
}

// Case K6: loading before the first token and time without a request are outside
// of the window of tokens/s.
func TestRunWindow(t *testing.T) {
	r := metrics.NewRun(1)
	s := newScript(r)
	s.host(1000*ms, &tape.Setting{Setting: "clock", New: "live"})
	s.arrive(5000*ms, 1, 1)
	for i := range 11 {
		s.emit(6000*ms+int64(i)*100*ms, 0, 1, 1+i)
	}
	s.finish(7000*ms, 1, 12)
	s.arrive(17_000*ms, 2, 1) // ten seconds without a request
	for i := range 11 {
		s.emit(17_100*ms+int64(i)*100*ms, 0, 2, 1+i)
	}
	s.finish(18_100*ms, 2, 12)
	s.arrive(50_000*ms, 3, 1)
	s.command(50_000*ms, 0, event.Command{Kind: event.Finish, Req: 3, Reason: event.ReasonAborted, N: 1})
	sum := r.Summary(60_000 * ms)
	near(t, "window", sum.Window.Seconds(), 2.1, 1e-9)
	near(t, "tokens/s", sum.TokensPerS, 21/2.1, 1e-9)
	near(t, "elapsed", sum.ElapsedS, 59, 1e-9)
	near(t, "TTFT p50", sum.TTFTms.P50, 100, 1e-9)
	near(t, "TTFT p99", sum.TTFTms.P99, 1000, 1e-9)
	same(t, "TTFTs", sum.TTFTms.N, 2)
	same(t, "aborted", sum.Ends["aborted"], 1)
	near(t, "ITL p99", sum.ITLms.P99, 100, 1e-9)
}

func TestRunCounts(t *testing.T) {
	r := metrics.NewRun(2)
	s := newScript(r)
	s.arrive(0, 1, 2)
	lost := row(1, 3)
	lost.Recomputed = 2
	s.run(0, 1, event.RuleEager, lost, row(7, 1))
	s.host(1*ms, &tape.Setting{Setting: "paused", New: "true"})
	s.done(50*ms, 1, 49*ms, keep(1, 0), keep(7, 0)) // the step that ran when it was paused
	s.emit(50*ms, 1, 1, 2)
	s.host(900*ms, &tape.Setting{Setting: "paused", New: "false"})
	s.run(900*ms, 1, event.RuleEager, row(1, 1))
	s.done(950*ms, 1, 49*ms, keep(1, 0))
	s.emit(950*ms, 1, 1, 3)
	s.finish(950*ms, 1, 4)
	s.host(950*ms, &tape.Result{Req: 1, Reason: "stop", Checked: true, Correct: true})
	s.event(951*ms, 0, event.Event{Kind: event.Arrive, Req: 2})
	s.command(951*ms, 0, event.Command{Kind: event.Reject, Req: 2, Text: "too long"})
	s.host(951*ms, &tape.Result{Req: 2, Reason: "error"})
	s.host(952*ms, &tape.Result{Req: 3, Reason: "error", Text: "the question is no text"})
	s.host(953*ms, &tape.Result{Req: 3, Reason: "error", Checked: true})
	sum := r.Summary(1000 * ms)
	same(t, "recomputed", sum.Recomputed, 2)
	same(t, "large", sum.LargeTokens, 2)
	large := sum.TokensByRole[1]
	near(t, "busy", large.BusyS, 0.1, 1e-9)
	near(t, "device-seconds", large.DeviceSecondsPerMTok, 50_000, 1e-6)
	near(t, "mean batch", large.MeanBatch, 1.5, 1e-9)
	same(t, "batches", large.Batches, 2)
	same(t, "correct", sum.Correct, 1)
	same(t, "total", sum.Total, 2)
	same(t, "stop", sum.Ends["stop"], 1)
	same(t, "rejected", sum.Ends["rejected"], 1)
	same(t, "never a request", sum.Ends["error"], 1)
	same(t, "requests", sum.Requests, 3)
	near(t, "ITL without the pause", sum.ITLms.P50, 50, 1e-9)
}

func TestEmptyRun(t *testing.T) {
	sum := metrics.NewRun(2).Summary(5)
	same(t, "tokens", sum.Tokens, 0)
	near(t, "rate", sum.TokensPerS, 0, 0)
	near(t, "share", sum.LargeShare, 0, 0)
	near(t, "p99", sum.ITLms.P99, 0, 0)
	same(t, "roles", len(sum.TokensByRole), 2)
	near(t, "hi", sum.CorrectHi, 1, 0)
}
