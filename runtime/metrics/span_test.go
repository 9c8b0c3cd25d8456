package metrics_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// Case K5: TTFT runs from the arrival to the first token, which has no ITL; a step
// that feeds a chunk of seven positions and a step that emits nothing are no ITL
// of their own, the gap of a hand-off is; the peak is not below the average.
func TestTimesOfTokens(t *testing.T) {
	r := metrics.NewRun(2)
	s := newScript(r)
	s.event(100*ms, 0, event.Event{Kind: event.Arrive, Req: 1, Arrival: &event.Arrival{Prompt: make([]event.Token, 9), MaxTokens: 100}})
	s.command(130*ms, 0, event.Command{Kind: event.Admit, Req: 1, N: 1})
	chunk := row(1, 7)
	chunk.Sample, chunk.Prefill, chunk.PromptLen = false, true, 9
	s.run(130*ms, 0, event.RuleEager, chunk)
	s.done(150*ms, 0, 20*ms)
	s.run(150*ms, 0, event.RuleEager, row(1, 2))
	s.done(160*ms, 0, 10*ms, keep(1, 0))
	s.emit(160*ms, 0, 1, 9) // TTFT 60
	s.run(160*ms, 0, event.RuleEager, row(1, 1))
	s.done(170*ms, 0, 10*ms, drop(1, 1)) // nothing is emitted
	hop(s, 170*ms, 0, 1, 1, 1)
	first := row(1, 10)
	first.Prefill, first.PromptLen = true, 9
	s.run(180*ms, 1, event.RuleEager, first)
	s.done(240*ms, 1, 60*ms, keep(1, 0))
	s.emit(240*ms, 1, 1, 10) // ITL 80, there and with the hand-off
	hop(s, 240*ms, 1, 0, 1, 2)
	s.run(250*ms, 0, event.RuleEager, row(1, 2)) // its own dropped position is fed anew: one beyond one
	s.done(260*ms, 0, 10*ms, keep(1, 0))
	s.emit(260*ms, 0, 1, 11) // ITL 20, with the hand-off back
	for i := range 3 {
		s.run((260+10*int64(i))*ms, 0, event.RuleEager, row(1, 1))
		s.done((270+10*int64(i))*ms, 0, 10*ms, keep(1, 0))
		s.emit((270+10*int64(i))*ms, 0, 1, 12+i) // ITL 10
	}
	s.finish(290*ms, 1, 15)
	sum := r.Summary(400 * ms)
	same(t, "tokens", sum.Tokens, 6)
	same(t, "TTFTs", sum.TTFTms.N, 1)
	near(t, "TTFT", sum.TTFTms.P50, 60, 1e-9)
	same(t, "ITLs", sum.ITLms.N, 5)
	near(t, "ITL p50", sum.ITLms.P50, 10, 1e-9)
	near(t, "ITL p99", sum.ITLms.P99, 80, 1e-9)
	near(t, "queue", sum.Queuems.P99, 30, 1e-9)
	near(t, "latency", sum.E2Ems.P95, 190, 1e-9)
	near(t, "user speed", sum.User.Mean, 5/0.130, 1e-9)
	near(t, "tokens/s", sum.TokensPerS, 5/0.130, 1e-9)
	near(t, "peak of less than 2 s", sum.PeakPerS, sum.TokensPerS, 1e-9)
	same(t, "switches", sum.Switches, 2)
	same(t, "resumes", sum.Resumes, 1)
	same(t, "extended", sum.Extended, 1)
	same(t, "extended by small", sum.TokensByRole[0].Extended, 1)
	same(t, "prompts", sum.PromptTokens, 18)
	near(t, "idle small", sum.TokensByRole[0].Idle, 1-50.0/130, 1e-9) // 160-170, 250-290
	near(t, "idle large", sum.TokensByRole[1].Idle, 1-60.0/130, 1e-9)
}

// The peak is of the best second: 10 tokens/s for 2 s, 50 for the third, and a
// time without a request, which is neither.
func TestPeak(t *testing.T) {
	r := metrics.NewRun(1)
	s := newScript(r)
	s.arrive(0, 1, 1)
	pos := 1
	for at := int64(0); at < 2000; at += 100 {
		s.emit(at*ms, 0, 1, pos)
		pos++
	}
	s.emit(2000*ms, 0, 1, pos)
	s.finish(2000*ms, 1, pos+1)
	s.arrive(9000*ms, 2, 1)
	for i := range 50 {
		s.emit(9000*ms+int64(i+1)*20*ms, 0, 2, 1+i)
	}
	s.finish(10_000*ms, 2, 51)
	sum := r.Summary(20_000 * ms)
	near(t, "window", sum.Window.Seconds(), 3, 1e-9)
	near(t, "average", sum.TokensPerS, 70.0/3, 1e-9)
	near(t, "peak", sum.PeakPerS, 50, 1e-9)
	near(t, "from", sum.From.Seconds(), 0, 0)
	near(t, "to", sum.To.Seconds(), 10, 0)
}

// steady is one request that draws every 10 ms in steps of 6 ms from 0 on, where
// the first 200 tokens take twice as long, and then, after 5 s without a request,
// another one.
func steady(r *metrics.Run) *script {
	s := newScript(r)
	s.arrive(0, 1, 1)
	at, pos := int64(0), 1
	token := func(id event.ReqID, every int64) {
		s.run(at*ms, 0, event.RuleEager, row(id, 1))
		s.done((at+6)*ms, 0, 6*ms, keep(id, 0))
		at += every
		s.emit(at*ms, 0, id, pos)
		pos++
	}
	for range 200 {
		token(1, 20)
	}
	for range 100 {
		token(1, 10)
	}
	s.finish(at*ms, 1, pos) // at 5 s
	at, pos = 10_000, 1
	s.arrive(at*ms, 2, 1)
	for range 300 {
		token(2, 10)
	}
	s.finish(at*ms, 2, pos) // at 13 s
	return s
}

// Case K6: warm-up and idle time are in no rate, and the window says so.
func TestWarmUpIsLeftOut(t *testing.T) {
	whole := metrics.NewRun(1)
	steady(whole)
	sum := whole.Summary(20_000 * ms)
	near(t, "whole", sum.TokensPerS, 599/7.98, 1e-9) // 0.02 to 13 s, 5 s of them idle
	same(t, "tokens", sum.Tokens, 600)

	r := metrics.NewRun(1)
	r.Measure(metrics.Span{From: 4 * time.Second})
	steady(r)
	sum = r.Summary(20_000 * ms)
	near(t, "from", sum.From.Seconds(), 4, 0)
	near(t, "to", sum.To.Seconds(), 13, 0)
	near(t, "window", sum.Window.Seconds(), 4, 1e-9)
	near(t, "tokens/s", sum.TokensPerS, 100, 1e-9)
	near(t, "idle", sum.TokensByRole[0].Idle, 0.4, 1e-9)
	same(t, "batches", sum.TokensByRole[0].Batches, 400)
	near(t, "busy", sum.TokensByRole[0].BusyS, 2.4, 1e-9)
	same(t, "tokens", sum.Tokens, 401) // the one at 4 s opens the window
	same(t, "ITLs", sum.ITLms.N, 400)
	near(t, "ITL", sum.ITLms.P50, 10, 1e-9)
	same(t, "TTFTs", sum.TTFTms.N, 1) // the first request's was before
	same(t, "requests", sum.Requests, 2)
	same(t, "latencies", sum.E2Ems.N, 2)
	near(t, "latency", sum.E2Ems.P99, 5000, 1e-9)
	same(t, "speeds", sum.User.N, 2)
	near(t, "p5", sum.User.P5, 100, 1e-9)
}

// A window with an end: what lies behind does not count, nor does the time
// without a request between the last one and that end.
func TestWindowWithAnEnd(t *testing.T) {
	r := metrics.NewRun(1)
	r.Measure(metrics.Span{From: 4500 * time.Millisecond, To: 10100 * time.Millisecond})
	steady(r)
	sum := r.Summary(20_000 * ms)
	near(t, "window", sum.Window.Seconds(), 0.6, 1e-9)
	near(t, "tokens/s", sum.TokensPerS, 100, 1e-9)
	near(t, "idle", sum.TokensByRole[0].Idle, 0.4, 1e-9)
	same(t, "speeds", sum.User.N, 1) // 51 tokens of one, and 10 of the other, which are too few
	near(t, "speed", sum.User.Mean, 100, 1e-9)
	same(t, "latencies", sum.E2Ems.N, 1)

	r = metrics.NewRun(1)
	r.Measure(metrics.Span{From: 12 * time.Second, To: 19 * time.Second})
	steady(r)
	sum = r.Summary(15_000 * ms)
	near(t, "to", sum.To.Seconds(), 15, 0) // asked at 15 s
	near(t, "window without the end", sum.Window.Seconds(), 1, 1e-9)
	near(t, "tokens/s without the end", sum.TokensPerS, 100, 1e-9)

	r = metrics.NewRun(1)
	r.Measure(metrics.Span{From: time.Hour})
	steady(r)
	sum = r.Summary(20_000 * ms)
	near(t, "nothing is left", sum.TokensPerS+sum.PeakPerS, 0, 0)
	same(t, "speeds of nothing", sum.User.N, 0)
}

// Speeds of whole requests however short, of pieces only when long enough.
func TestUserSpeeds(t *testing.T) {
	r := metrics.NewRun(1)
	s := newScript(r)
	for id := event.ReqID(1); id <= 4; id++ {
		s.arrive(0, id, 1)
	}
	for i := range 3 {
		s.emit(int64(10+20*i)*ms, 0, 1, 1+i) // 50 a second
	}
	s.finish(50*ms, 1, 4)
	for i := range 3 {
		s.emit(50*ms+int64(10+100*i)*ms, 0, 2, 1+i) // 10 a second
	}
	s.finish(260*ms, 2, 4)
	for i := range 31 {
		s.emit(300*ms+int64(i)*ms, 0, 3, 1+i) // too few while it is open
	}
	for i := range 32 {
		s.emit(400*ms+int64(i)*40*ms, 0, 4, 1+i) // 25 a second
	}
	u := r.Summary(9000 * ms).User
	same(t, "speeds", u.N, 3)
	near(t, "mean", u.Mean, (2+2+31)/(0.04+0.2+1.24), 1e-9)
	near(t, "median", u.P50, 25, 1e-9)
	near(t, "p5", u.P5, 10, 1e-9)
}

// On tapes of the real cores: the peak is never below the average, windows that
// follow one another have the tokens of the whole run, and no share leaves 0 to 1.
func TestSpansAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := tapetest.Config{
			Models: rapid.IntRange(1, 3).Draw(t, "models"), Requests: 30, Concurrency: rapid.IntRange(1, 6).Draw(t, "concurrency"),
			Seed: rapid.Uint64().Draw(t, "seed"), Cancel: rapid.Float64Range(0, 0.4).Draw(t, "cancel"),
		}
		recs, _, err := tapetest.Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		end := recs[len(recs)-1].At
		cut := time.Duration(rapid.Int64Range(1, end).Draw(t, "cut"))
		fold := func(s metrics.Span) metrics.Summary {
			r := metrics.NewRun(cfg.Models)
			r.Measure(s)
			for i := range recs {
				r.Add(&recs[i])
			}
			return r.Summary(end)
		}
		all, early, late := fold(metrics.Span{}), fold(metrics.Span{To: cut}), fold(metrics.Span{From: cut + 1})
		if early.Tokens+late.Tokens != all.Tokens || early.ITLms.N+late.ITLms.N != all.ITLms.N || early.E2Ems.N+late.E2Ems.N != all.E2Ems.N || early.Switches+late.Switches != all.Switches ||
			early.Extended+late.Extended != all.Extended || early.Queuems.N+late.Queuems.N != all.Queuems.N {
			t.Fatalf("cut at %v: %+v and %+v are not %+v", cut, early, late, all)
		}
		for _, s := range []metrics.Summary{all, early, late} {
			if s.PeakPerS < s.TokensPerS {
				t.Fatalf("the peak of %v is below the average of %v", s.PeakPerS, s.TokensPerS)
			}
			if s.User.P5 > s.User.P50 {
				t.Fatalf("speeds %+v", s.User)
			}
			for _, r := range s.TokensByRole {
				if r.Idle < 0 || r.Idle > 1 || r.Extended < 0 {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}

// What is let in at the end of a run to be aborted there has not waited; what is
// under way has.
func TestQueueOfTheAborted(t *testing.T) {
	r := metrics.NewRun(1)
	s := newScript(r)
	for id := event.ReqID(1); id <= 3; id++ {
		s.event(0, 0, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: make([]event.Token, 1), MaxTokens: 9}})
	}
	abort := func(id event.ReqID, n int) {
		s.command(900*ms, 0, event.Command{Kind: event.Finish, Req: id, N: n, Reason: event.ReasonAborted})
	}
	s.command(10*ms, 0, event.Command{Kind: event.Admit, Req: 1, N: 1})
	s.emit(20*ms, 0, 1, 1)
	same(t, "waits while it is open", r.Summary(500*ms).Queuems.N, 1)
	abort(1, 2)
	s.command(900*ms, 0, event.Command{Kind: event.Admit, Req: 2, N: 1})
	abort(2, 1)
	abort(3, 1)
	q := r.Summary(900 * ms).Queuems
	same(t, "waits", q.N, 1)
	near(t, "wait", q.P99, 10, 1e-9)
}

// A batch that runs when it is asked, one that goes beyond the window, and a
// pause.
func TestIdleShareAtTheEdges(t *testing.T) {
	r := metrics.NewRun(2)
	r.Measure(metrics.Span{From: 100 * time.Millisecond, To: 300 * time.Millisecond})
	s := newScript(r)
	s.arrive(0, 1, 1)
	s.run(0, 0, event.RuleEager, row(1, 1))
	s.emit(50*ms, 0, 1, 1)
	s.run(60*ms, 1, event.RuleEager, row(1, 1))
	s.done(150*ms, 0, 50*ms, keep(1, 0)) // 100 to 150 is inside
	s.emit(150*ms, 0, 1, 2)
	s.host(200*ms, &tape.Setting{Setting: "paused", New: "true"})
	s.host(900*ms, &tape.Setting{Setting: "paused", New: "false"})
	s.run(950*ms, 0, event.RuleEager, row(1, 1)) // running time 250
	sum := r.Summary(960 * ms)
	near(t, "asked at 260", sum.TokensByRole[0].Idle, 1-60.0/160, 1e-9)
	near(t, "all the time", sum.TokensByRole[1].Idle, 0, 1e-9)
	s.done(1200*ms, 0, 50*ms, keep(1, 0))
	sum = r.Summary(1200 * ms)
	near(t, "beyond the end", sum.TokensByRole[0].Idle, 0.5, 1e-9)
}
