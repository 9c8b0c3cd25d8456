package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// Case K5: the first token has a TTFT and no ITL, every other token has an ITL of
// its own, and the gap of a hand-off lies in it. Case F8: a dropped candidate is
// no token.
func TestLatencyDefinitions(t *testing.T) {
	b, r := metrics.NewBoard(2), metrics.NewRun(2)
	s := newScript(b, r)
	s.arrive(100*ms, 1, 5)
	s.run(100*ms, 0, event.RuleEager, event.Row{Req: 1, Tokens: make([]event.Token, 5), Sample: true, Prefill: true})
	s.done(110*ms, 0, 9*ms, keep(1, 0))
	s.emit(110*ms, 0, 1, 5) // TTFT 10
	s.run(110*ms, 0, event.RuleEager, row(1, 1))
	s.done(120*ms, 0, 9*ms, keep(1, 0))
	s.emit(120*ms, 0, 1, 6) // ITL 10
	s.run(120*ms, 0, event.RuleEager, row(1, 1))
	s.done(130*ms, 0, 9*ms, drop(1, 1))
	s.command(130*ms, 0, event.Command{Kind: event.SendPeer, Req: 1, To: 1, Peer: &event.PeerReq{ID: 1, Status: event.New}})
	s.event(131*ms, 1, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 1, Status: event.New}})
	s.run(131*ms, 1, event.RuleGuard, event.Row{Req: 1, Tokens: make([]event.Token, 7), Sample: true, Prefill: true})
	s.done(161*ms, 1, 28*ms, keep(1, 0))
	s.emit(161*ms, 1, 1, 7) // ITL 41: the hand-off is inside
	s.command(161*ms, 1, event.Command{Kind: event.SendPeer, Req: 1, To: 0, Peer: &event.PeerReq{ID: 1, Status: event.Alive}})
	s.event(162*ms, 0, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 1, Status: event.Alive}})
	s.run(162*ms, 0, event.RuleEager, row(1, 2)) // its own dropped position and the new token
	s.done(170*ms, 0, 8*ms, keep(1, 0))
	s.emit(170*ms, 0, 1, 8) // ITL 9
	s.emit(170*ms, 0, 1, 9) // ITL 0: a second token of the same moment is a token
	s.finish(170*ms, 1, 10)

	sum := r.Summary(200 * ms)
	same(t, "tokens", sum.Tokens, 5)
	same(t, "small", sum.TokensByRole[0].Tokens, 4)
	same(t, "large", sum.TokensByRole[1].Tokens, 1)
	same(t, "rows", sum.TokensByRole[0].Rows, 4)
	same(t, "dropped", sum.TokensByRole[0].Dropped, 1)
	same(t, "TTFTs", sum.TTFTms.N, 1)
	near(t, "TTFT", sum.TTFTms.P50, 10, 1e-9)
	same(t, "ITLs", sum.ITLms.N, 4)
	near(t, "ITL p50", sum.ITLms.P50, 9, 1e-9)
	near(t, "ITL p99", sum.ITLms.P99, 41, 1e-9)
	near(t, "switches", sum.SwitchesPerToken, 2.0/5, 1e-9)
	near(t, "large share", sum.LargeShare, 1.0/5, 1e-9)
	near(t, "device-seconds per million", sum.TokensByRole[1].DeviceSecondsPerMTok, 0.030*1e6/5, 1e-6)

	// Between 110 and 170 ms come four tokens: the first has no gap before it.
	near(t, "window", sum.Window.Seconds(), 0.060, 1e-9)
	near(t, "tokens/s", sum.TokensPerS, 4/0.060, 1e-6)

	snap := b.Snapshot(200 * ms)
	near(t, "board window", snap.Window.Seconds(), 0.1, 1e-9)
	near(t, "board tokens/s", snap.TokensPerS, 50, 1e-9)
	near(t, "board TTFT", snap.TTFT.P50, 10, 10.0/32)
	same(t, "board ITLs", snap.ITL.N, 4)
	near(t, "board ITL p50", snap.ITL.P50, 9, 9.0/32)
	near(t, "board ITL p99", snap.ITL.P99, 41, 41.0/32)
	near(t, "board switches", snap.SwitchesPerToken, 0.4, 1e-9)
	near(t, "extend", snap.Peers[0].ExtendPerHop, 2, 0)
	same(t, "hops to small", snap.Peers[0].Hops, 1)
	same(t, "hops to large: the first visit is a prefill", snap.Peers[1].Hops, 0)
	same(t, "rule", snap.Peers[1].LastRule, event.RuleGuard)
	for p, want := range [][3]float64{{10, 0, 0}, {10, 0, 1}} { // one hand-off each in 0.1 s
		got := snap.Peers[p]
		near(t, "visits", got.VisitsPerS, want[0], 1e-9)
		near(t, "by B", got.ByB, want[1], 0)
		near(t, "by guard", got.ByGuard, want[2], 0)
	}
}

// One period of 100 ms, 200 of them: the large model waits 40 ms for B = 3, runs
// 30 ms with three rows, and has nothing to do for 30 ms. The small one runs five
// batches of two rows, 12 ms each, and drops three of the ten candidates.
func period(s *script, t0 int64, pos []int) {
	s.load(t0, 1, tape.Load{Ready: 1, B: 3, Active: 4})
	for i := range int64(5) {
		at := t0 + i*20*ms
		s.run(at, 0, event.RuleEager, row(1, 1), row(2, 1))
		if i == 2 {
			s.load(t0+40*ms, 1, tape.Load{Ready: 0, Running: 3, B: 3, Active: 4})
			s.run(t0+40*ms, 1, event.RuleB, row(3, 1), row(4, 1), row(5, 1))
		}
		if i == 3 {
			s.done(t0+70*ms, 1, 29*ms, keep(3, 0), keep(4, 0), keep(5, 0))
			s.load(t0+70*ms, 1, tape.Load{B: 3, Active: 4})
			for id := event.ReqID(3); id <= 5; id++ {
				s.emit(t0+70*ms, 1, id, pos[id])
				pos[id]++
			}
		}
		first := keep(1, 0)
		if i < 3 {
			first = drop(1, 1)
		}
		s.done(at+12*ms, 0, 11*ms, first, keep(2, 0))
		if i < 3 {
			s.command(at+12*ms, 0, event.Command{Kind: event.SendPeer, Req: 1, To: 1, Peer: &event.PeerReq{ID: 1, Status: event.Alive}})
		} else {
			s.emit(at+12*ms, 0, 1, pos[1])
			pos[1]++
		}
		s.emit(at+12*ms, 0, 2, pos[2])
		pos[2]++
	}
}

func TestBoardOfASteadyRun(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	s.load(0, 0, tape.Load{Active: 4, Ready: 1, B: 1, KVUsed: 412, KVTotal: 2048})
	for id := event.ReqID(1); id <= 5; id++ {
		s.arrive(0, id, 0)
	}
	pos := make([]int, 6)
	for i := range int64(200) {
		period(s, i*100*ms, pos)
	}
	snap := b.Snapshot(20_000 * ms)
	near(t, "window", snap.Window.Seconds(), 10, 0)
	same(t, "active", snap.Active, 4)
	small, large := snap.Peers[0], snap.Peers[1]
	near(t, "tokens/s", snap.TokensPerS, 100, 1e-9)
	near(t, "large share", snap.LargeShare, 0.3, 1e-9)
	near(t, "small rows/s", small.RowsPerS, 100, 1e-9)
	near(t, "small committed/s", small.CommittedPerS, 70, 1e-9)
	near(t, "small dropped/s", small.DroppedPerS, 30, 1e-9)
	near(t, "small mean batch", small.MeanBatch, 2, 1e-9)
	near(t, "small step", small.StepMs, 12, 1e-9)
	near(t, "small exec", small.ExecMs, 11, 1e-9)
	near(t, "small busy", small.Busy, 0.6, 1e-9)
	near(t, "small waits", small.WaitB, 0, 1e-9)
	near(t, "small idle", small.Idle, 0.4, 1e-9)
	near(t, "large rows/s", large.RowsPerS, 30, 1e-9)
	near(t, "large committed/s", large.CommittedPerS, 30, 1e-9)
	near(t, "large mean batch", large.MeanBatch, 3, 1e-9)
	near(t, "large busy", large.Busy, 0.3, 1e-9)
	near(t, "large waits", large.WaitB, 0.4, 1e-9)
	near(t, "large idle", large.Idle, 0.3, 1e-9)
	same(t, "large rule", large.LastRule, event.RuleB)
	same(t, "KV", small.Load.KVUsed, 412)

	// Flow balance: busy = steps/s x step time = rows/s x step / mean batch.
	for _, p := range snap.Peers {
		near(t, "flow balance", p.RowsPerS*p.StepMs/1000/p.MeanBatch, p.Busy, 1e-9)
	}

	// Without news time goes on: busy, waiting and rates follow.
	later := b.Snapshot(25_000 * ms)
	near(t, "tokens/s 5 s later", later.TokensPerS, 50, 1e-9)
	near(t, "large idle 5 s later", later.Peers[1].Idle, 0.65, 1e-9)
	gone := b.Snapshot(60_000 * ms)
	near(t, "tokens/s 40 s later", gone.TokensPerS, 0, 0)
	near(t, "large idle 40 s later", gone.Peers[1].Idle, 1, 1e-9)
	same(t, "ITLs 40 s later", gone.ITL.N, 0)
}

// A batch that runs across slots, and one longer than the window, are busy time.
func TestLongStepIsBusy(t *testing.T) {
	b := metrics.NewBoard(1)
	s := newScript(b)
	s.arrive(0, 1, 3)
	s.run(1000*ms, 0, event.RuleEager, row(1, 3))
	near(t, "busy so far", b.Snapshot(4000 * ms).Peers[0].Busy, 0.75, 1e-9)
	same(t, "batch now", b.Snapshot(4000 * ms).Peers[0].Batch, 1)
	near(t, "busy in all of the window", b.Snapshot(31_000 * ms).Peers[0].Busy, 1, 1e-9)
	s.done(61_000*ms, 0, 60_000*ms, keep(1, 0))
	s.emit(61_000*ms, 0, 1, 3)
	snap := b.Snapshot(66_000 * ms)
	near(t, "busy at the end", snap.Peers[0].Busy, 0.5, 1e-9)
	near(t, "step", snap.Peers[0].StepMs, 60_000, 1e-6)
	same(t, "batch now", snap.Peers[0].Batch, 0)
	same(t, "one model is small", snap.LargeShare, 0)
}

// A DROP that the core overrules is a committed token and no drop.
func TestOverruledDrop(t *testing.T) {
	b, r := metrics.NewBoard(2), metrics.NewRun(2)
	s := newScript(b, r)
	s.arrive(0, 1, 2)
	s.run(0, 0, event.RuleEager, row(1, 2))
	s.done(10*ms, 0, 9*ms, drop(1, 0))
	s.command(10*ms, 0, event.Command{Kind: event.Note, Note: event.NoteFault, Req: 1, Text: "r2r.lua:3"})
	s.emit(10*ms, 0, 1, 2)
	sum := r.Summary(20 * ms)
	same(t, "dropped", sum.TokensByRole[0].Dropped, 0)
	same(t, "faults", sum.Faults, 1)
	near(t, "dropped/s", b.Snapshot(20 * ms).Peers[0].DroppedPerS, 0, 0)
}

// Answers count for the router that wrote them from the first token to the last.
func TestRightStartsAgain(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	answer := func(at int64, id event.ReqID, ok bool) {
		s.finish(at, id, 1)
		s.host(at, &tape.Result{Req: id, Checked: true, Correct: ok})
	}
	ask := func(at int64, id event.ReqID, family string) {
		s.host(at, &tape.Request{Req: id, Family: family})
		s.arrive(at, id, 1)
	}
	families := func(name string, want ...string) {
		var got []string
		for _, f := range b.Snapshot(60 * ms).Families {
			got = append(got, fmt.Sprintf("%s %d/%d", f.Family, f.Correct, f.Total))
		}
		same(t, name, strings.Join(got, ", "), strings.Join(want, ", "))
	}
	ask(0, 1, "sort")
	ask(0, 2, "units")
	answer(10*ms, 1, true)
	families("families", "sort 1/1")
	snap := b.Snapshot(20 * ms)
	same(t, "checked", snap.Checked, 1)
	same(t, "right", snap.Right, 1)
	s.host(20*ms, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "3f2a99"})
	same(t, "checked at the reload", b.Snapshot(20*ms).Checked, 0)
	answer(30*ms, 2, false) // began under the old router
	same(t, "checked of the old", b.Snapshot(30*ms).Checked, 0)
	families("families of the old")
	ask(30*ms, 3, "units")
	answer(40*ms, 3, false)
	ask(40*ms, 4, "sort")
	s.host(45*ms, &tape.Setting{Setting: "concurrency", Old: "4", New: "8"})
	answer(50*ms, 4, true)
	s.host(51*ms, &tape.Result{Req: 9, Checked: false, Correct: true})
	families("families of the new", "sort 1/1", "units 0/1")
	snap = b.Snapshot(60 * ms)
	same(t, "checked of the new", snap.Checked, 2)
	same(t, "right of the new", snap.Right, 1)
	lo, hi := metrics.Wilson(1, 2)
	near(t, "lo", snap.RightLo, lo, 0)
	near(t, "hi", snap.RightHi, hi, 0)
}

// At every change the window starts again and its age is its length.
func TestWindowStartsAgain(t *testing.T) {
	changes := map[string]func(*script, int64){
		"router": func(s *script, at int64) {
			s.host(at, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "bbbb"})
		},
		"knob": func(s *script, at int64) {
			s.host(at, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 0.5, New: 0.2})
		},
		"policy": func(s *script, at int64) {
			s.event(at, 0, event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}}})
		},
		"clock": func(s *script, at int64) {
			s.host(at, &tape.Setting{Setting: "clock", Old: "live", New: "paced a100-r2r"})
		},
		"speed":       func(s *script, at int64) { s.host(at, &tape.Setting{Setting: "speed", Old: "1x", New: "2x"}) },
		"concurrency": func(s *script, at int64) { s.host(at, &tape.Setting{Setting: "concurrency", Old: "4", New: "8"}) },
	}
	none := map[string]func(*script, int64){
		"loaded": func(s *script, at int64) {
			s.host(at, &tape.Router{Phase: tape.RouterLoaded, File: "r2r.lua", Hash: "bbbb"})
		},
		"same router": func(s *script, at int64) {
			s.host(at, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "aaaa"})
		},
		"declared knob": func(s *script, at int64) {
			s.host(at, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 0.5, New: 0.5})
		},
		"knob of the next router": func(s *script, at int64) {
			s.host(at, &tape.Knob{Router: "rstitch.lua", Knob: "threshold", Old: 0.5, New: 0.03})
		},
		"guard": func(s *script, at int64) {
			s.event(at, 0, event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Eager, W: 9}})
		},
		"stated setting": func(s *script, at int64) { s.host(at, &tape.Setting{Setting: "clock", New: "live"}) },
		"speed of virtual time": func(s *script, at int64) {
			s.host(at, &tape.Setting{Setting: "clock", New: "sim a100-r2r"})
			s.host(at, &tape.Setting{Setting: "speed", Old: "1x", New: "8x"})
		},
		"batch, before its policy": func(s *script, at int64) {
			s.host(at, &tape.Setting{Setting: "batch", Old: "eager", New: "fixed:1,3"})
		},
		"policy at a peer": func(s *script, at int64) {
			s.event(at, 1, event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}}})
		},
	}
	at := func(change func(*script, int64)) metrics.Snapshot {
		b := metrics.NewBoard(2)
		s := newScript(b)
		s.host(0, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "aaaa"})
		s.arrive(1000*ms, 1, 0)
		for i := range int64(20) {
			s.emit(1000*ms+i*50*ms, 0, 1, int(i))
		}
		change(s, 2100*ms)
		s.emit(2200*ms, 1, 1, 20)
		return b.Snapshot(2350 * ms)
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			snap := at(change)
			same(t, "window", snap.Window, 250*time.Millisecond)
			same(t, "since", snap.Since, true)
			same(t, "tokens", snap.Tokens, 1)
			near(t, "tokens/s", snap.TokensPerS, 4, 1e-9)
			near(t, "large share", snap.LargeShare, 1, 0)
		})
	}
	for name, change := range none {
		t.Run(name, func(t *testing.T) {
			snap := at(change)
			same(t, "window", snap.Window, 1350*time.Millisecond)
			same(t, "tokens", snap.Tokens, 21)
		})
	}
}

// What happens before the first request, loading and announcing, is in no window.
func TestBeforeTheFirstRequest(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	snap := b.Snapshot(5000 * ms)
	same(t, "window", snap.Window, 0)
	same(t, "peers", len(snap.Peers), 2)
	near(t, "idle", snap.Peers[1].Idle, 1, 0)
	s.host(1000*ms, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 0.5, New: 0.2})
	s.arrive(8000*ms, 1, 1)
	s.emit(8100*ms, 0, 1, 1)
	snap = b.Snapshot(8200 * ms)
	near(t, "tokens/s", snap.TokensPerS, 5, 1e-9)
	same(t, "marks", len(b.Marks()), 0)
	same(t, "need", b.Compare(8200*ms).Need, "nothing has changed yet")
}

// A request that is back is back also where its KV was taken meanwhile, as at
// every switch under Resubmit: the board counts as the summary does.
func TestBackWithoutKV(t *testing.T) {
	b, r := metrics.NewBoard(2), metrics.NewRun(2)
	s := newScript(b, r)
	s.arrive(0, 1, 20)
	first := row(1, 20)
	first.Prefill, first.PromptLen = true, 20
	s.run(0, 0, event.RuleEager, first)
	s.done(10*ms, 0, 10*ms, drop(1, 1))
	s.command(10*ms, 0, event.Command{Kind: event.Preempt, Req: 1, N: 20})
	hop(s, 10*ms, 0, 1, 1, 1)
	first.Tokens = make([]event.Token, 20)
	s.run(10*ms, 1, event.RuleEager, first)
	s.done(40*ms, 1, 30*ms, keep(1, 0))
	s.emit(40*ms, 1, 1, 20)
	hop(s, 40*ms, 1, 0, 1, 2)
	back := row(1, 5) // 4 that it had, and the one that the other wrote
	back.Prefill, back.PromptLen, back.Start, back.Cached, back.Recomputed = true, 20, 16, 16, 4
	s.run(40*ms, 0, event.RuleEager, back)
	s.done(50*ms, 0, 10*ms, keep(1, 0))
	s.emit(50*ms, 0, 1, 21)
	sum, small := r.Summary(50*ms), b.Snapshot(50 * ms).Peers[0]
	same(t, "resumes", sum.Resumes, 1)
	same(t, "extended beyond one", sum.Extended, 0)
	same(t, "recomputed", sum.Recomputed, 4)
	same(t, "hops on the board", small.Hops, 1)
	near(t, "tokens of a hop on the board", small.ExtendPerHop, 1, 0)
	same(t, "recomputed on the board", small.Recomputed, 4)
}
