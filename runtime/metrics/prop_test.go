package metrics_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// drawTape draws a tape of the real cores, with stops that cut, cancelled
// requests, a reload and router faults in it.
func drawTape(t *rapid.T) (cfg tapetest.Config, recs []tape.Record, out tapetest.Outcome) {
	cfg = tapetest.Config{
		Models:      rapid.IntRange(1, 3).Draw(t, "models"),
		Requests:    rapid.IntRange(1, 60).Draw(t, "requests"),
		Concurrency: rapid.IntRange(1, 9).Draw(t, "concurrency"),
		Vocab:       rapid.IntRange(20, 200).Draw(t, "vocab"),
		MaxTokens:   rapid.IntRange(1, 60).Draw(t, "max tokens"),
		Seed:        rapid.Uint64().Draw(t, "seed"),
		Large:       rapid.Float64Range(0.01, 0.7).Draw(t, "large"),
		Cancel:      rapid.Float64Range(0, 0.4).Draw(t, "cancel"),
	}
	recs, out, err := tapetest.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, recs, out
}

// written is what one request wrote, found without the folds.
type written struct {
	arrived int64
	by      []event.Peer
	at      []int64
	prompt  int
	over    bool
}

// read collects the writers of every request, cut where Finish says.
func read(recs []tape.Record) map[event.ReqID]*written {
	reqs := map[event.ReqID]*written{}
	for _, r := range recs {
		switch {
		case r.Kind == tape.KindEvent && r.Event.Kind == event.Arrive:
			reqs[r.Event.Req] = &written{arrived: r.At, prompt: len(r.Event.Arrival.Prompt)}
		case r.Kind == tape.KindCommand && r.Command.Kind == event.Emit:
			if w := reqs[r.Command.Req]; !w.over {
				w.by, w.at = append(w.by, r.Core), append(w.at, r.At)
			}
		case r.Kind == tape.KindCommand && r.Command.Kind == event.Finish:
			w := reqs[r.Command.Req]
			w.over = true
			n := r.Command.N - w.prompt
			w.by, w.at = w.by[:n], w.at[:n]
		}
	}
	return reqs
}

// Cases B7 and F8: the tokens of a run are those its clients got; roles add up.
func TestRunAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, recs, out := drawTape(t)
		run := metrics.NewRun(cfg.Models)
		for i := range recs {
			run.Add(&recs[i])
		}
		s := run.Summary(recs[len(recs)-1].At)

		want := 0
		for _, n := range out.Emitted {
			want += n
		}
		byRole, ended := 0, 0
		for _, r := range s.TokensByRole {
			byRole += r.Tokens
			if r.Rows < r.Tokens+r.Dropped {
				t.Fatalf("%s drew %d rows, fewer than %d tokens and %d drops", r.Role, r.Rows, r.Tokens, r.Dropped)
			}
		}
		for _, n := range s.Ends {
			ended += n
		}
		if s.Tokens != want || byRole != want || ended != cfg.Requests || s.Requests != cfg.Requests {
			t.Fatalf("%d tokens, by role %d, clients got %d; %d of %d requests ended, %d arrived", s.Tokens, byRole, want, ended, cfg.Requests, s.Requests)
		}
		if s.Ends["open"] != 0 || s.Recomputed != 0 {
			t.Fatalf("%d open, %d recomputed", s.Ends["open"], s.Recomputed)
		}

		tokens, switches := make([]int, cfg.Models), 0
		var ttft, itl []float64
		for _, w := range read(recs) {
			for i := range w.by {
				tokens[w.by[i]]++
				if i == 0 {
					ttft = append(ttft, float64(w.at[0]-w.arrived)/1e6)
					continue
				}
				itl = append(itl, float64(w.at[i]-w.at[i-1])/1e6)
				if w.by[i] != w.by[i-1] {
					switches++
				}
			}
		}
		for p, n := range tokens {
			if s.TokensByRole[p].Tokens != n {
				t.Fatalf("subserver %d wrote %d tokens, the summary says %d", p, n, s.TokensByRole[p].Tokens)
			}
		}
		check := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9 {
				t.Fatalf("%s = %v, want %v", what, got, want)
			}
		}
		check("switches", s.SwitchesPerToken*float64(max(want, 1)), float64(switches))
		check("TTFT p50", s.TTFTms.P50, metrics.Percentile(ttft, 0.5))
		check("TTFT p99", s.TTFTms.P99, metrics.Percentile(ttft, 0.99))
		check("ITL p50", s.ITLms.P50, metrics.Percentile(itl, 0.5))
		check("ITL p99", s.ITLms.P99, metrics.Percentile(itl, 0.99))
		if len(itl) != s.ITLms.N || len(ttft) != s.TTFTms.N || len(itl)+len(ttft) != want {
			t.Fatalf("%d ITLs and %d TTFTs of %d tokens", s.ITLms.N, s.TTFTms.N, want)
		}
		if cfg.Models > 1 {
			check("large share", s.LargeShare*float64(max(want, 1)), float64(tokens[cfg.Models-1]))
		}
	})
}

// The board's window holds exactly what lies in it, and asking changes nothing.
func TestBoardWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, recs, _ := drawTape(t)
		stretch := rapid.Int64Range(1, 60).Draw(t, "stretch") // so that windows of 10 s are left behind
		ask := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "ask"), 1))
		asked, silent := metrics.NewBoard(cfg.Models), metrics.NewBoard(cfg.Models)
		var tokens []float64 // +1 and -1 by time
		var at []int64
		reqs := map[event.ReqID]int{}
		from, since := int64(-1), 0 // the last change, and the tokens before it
		for i := range recs {
			r := recs[i]
			r.At *= stretch
			asked.Add(&r)
			silent.Add(&r)
			if ask.IntN(10) == 0 {
				asked.Snapshot(r.At + ask.Int64N(30_000)*ms)
				asked.Compare(r.At + 5000*ms)
				asked.Series(r.At, 20, time.Second)
			}
			switch {
			case r.Kind == tape.KindEvent && r.Event.Kind == event.Arrive && from < 0:
				from = r.At
			case r.Kind == tape.KindHost && r.Host.Name() == "router" && r.Host.(*tape.Router).Phase == tape.RouterLive && from >= 0:
				from, since = r.At, len(tokens)
			case r.Kind == tape.KindHost && r.Host.Name() == "knob" && from >= 0:
				from, since = r.At, len(tokens)
			case r.Kind == tape.KindCommand && r.Command.Kind == event.Emit && reqs[r.Command.Req] >= 0:
				reqs[r.Command.Req] = r.Command.Pos + 1
				tokens, at = append(tokens, 1), append(at, r.At)
			case r.Kind == tape.KindCommand && r.Command.Kind == event.Finish:
				if n := reqs[r.Command.Req]; n > 0 {
					tokens, at = append(tokens, -float64(n-r.Command.N)), append(at, r.At)
				}
				reqs[r.Command.Req] = -1
			}
		}
		last := recs[len(recs)-1].At * stretch
		for _, ahead := range []int64{0, 100, 1000, 5000, 40_000} {
			now := last + ahead*ms
			snap := asked.Snapshot(now)
			if other := silent.Snapshot(now); !reflect.DeepEqual(snap, other) {
				t.Fatalf("asking changes the figures:\n%+v\n%+v", snap, other)
			}
			begin := now - int64(snap.Window)
			if begin < from || snap.Window > 10_250*time.Millisecond || (begin > from && snap.Window < 10*time.Second) {
				t.Fatalf("a window of %v at %v, the change was at %v", snap.Window, now, from)
			}
			want := 0.0
			for i, n := range tokens {
				if i >= since && at[i] >= begin {
					want += n
				}
			}
			sum, parts := 0.0, 0.0
			for i, p := range snap.Peers {
				sum += p.CommittedPerS
				if total := p.Busy + p.WaitB + p.Idle; math.Abs(total-1) > 1e-9 || min(p.Busy, p.WaitB, p.Idle) < -1e-9 {
					t.Fatalf("fractions of subserver %d add up to %v: %+v", i, total, p)
				}
				parts += p.RowsPerS
			}
			if math.Abs(sum-snap.TokensPerS) > 1e-6 {
				t.Fatalf("committed/s by role is %v, tokens/s %v", sum, snap.TokensPerS)
			}
			if got := float64(snap.Tokens); math.Abs(got-max(want, 0)) > 0.5 && want >= 0 && !cutAcross(tokens) {
				t.Fatalf("%v tokens in the window, want %v", got, want)
			}
			if parts+1e-6 < snap.TokensPerS && !cutAcross(tokens) && snap.Window > time.Second {
				t.Fatalf("%v rows/s make %v tokens/s", parts, snap.TokensPerS)
			}
		}
		if !reflect.DeepEqual(asked.Compare(last), silent.Compare(last)) || !reflect.DeepEqual(asked.Marks(), silent.Marks()) {
			t.Fatal("asking changes the comparison or the marks")
		}
		total, bins := 0, asked.Series(last, 1<<20, time.Second)
		for _, b := range bins {
			by := 0
			for _, n := range b.ByPeer {
				by += n
			}
			if by != b.Tokens {
				t.Fatalf("a bin of %d tokens holds %d by role", b.Tokens, by)
			}
			total += b.Tokens
		}
		if len(bins) > 0 && !cutAcross(tokens) && float64(total) != sumOf(tokens) {
			t.Fatalf("the series holds %d tokens, want %v", total, sumOf(tokens))
		}
	})
}

// cutAcross says that tokens were taken back: at the edge of a window a role
// may then owe tokens that it wrote before it.
func cutAcross(tokens []float64) bool {
	return slices.ContainsFunc(tokens, func(n float64) bool { return n < 0 })
}

func sumOf(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum
}

// Quantiles of the board are nearest-rank ones within the width of a bucket.
func TestBoardQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := metrics.NewBoard(1)
		s := newScript(b)
		s.arrive(0, 1, 0)
		s.emit(0, 0, 1, 0)
		gaps := rapid.SliceOfN(rapid.Int64Range(0, 40*ms), 1, 200).Draw(t, "gaps")
		at := int64(0)
		var exact []float64
		for i, g := range gaps {
			at += g
			s.emit(at, 0, 1, i+1)
			exact = append(exact, float64(g)/1e6)
		}
		q := b.Snapshot(at).ITL
		if q.N != len(gaps) {
			t.Fatalf("%d gaps of %d", q.N, len(gaps))
		}
		for _, c := range []struct{ got, p float64 }{{q.P50, 0.5}, {q.P99, 0.99}} {
			want := metrics.Percentile(exact, c.p)
			if math.Abs(c.got-want) > want/32+0.0011 {
				t.Fatalf("p%v = %v ms, want %v", c.p*100, c.got, want)
			}
		}
	})
}

// A damaged session holds anything: no record makes a fold fail.
func TestAnyRecord(t *testing.T) {
	id := rapid.Uint64Range(0, 5)
	peer := rapid.Int16Range(-2, 4)
	rapid.Check(t, func(t *rapid.T) {
		b, r := metrics.NewBoard(2), metrics.NewRun(2)
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			rec := tape.Record{
				At:   rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 100_000*ms)).Draw(t, "at"),
				Core: event.Peer(peer.Draw(t, "core")),
				Kind: tape.Kind(rapid.IntRange(0, 6).Draw(t, "kind")),
			}
			req := event.ReqID(id.Draw(t, "req"))
			msg := &event.PeerReq{ID: req, Status: event.Status(rapid.IntRange(0, 7).Draw(t, "status"))}
			rows := []event.RowResult{{Req: req, Action: event.Action(rapid.IntRange(0, 2).Draw(t, "action"))}}
			if rapid.Bool().Draw(t, "whole") {
				rec.Event = &event.Event{
					Kind: event.Kind(rapid.IntRange(0, 12).Draw(t, "event")), Req: req, Peer: msg,
					Step: &event.StepResult{Batch: 1, Rows: rows}, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 2}, W: ms},
				}
				rec.Command = &event.Command{
					Kind: event.CmdKind(rapid.IntRange(0, 12).Draw(t, "command")), Req: req, Peer: msg,
					Pos: rapid.Int().Draw(t, "pos"), N: rapid.Int().Draw(t, "n"), Reason: event.Reason(rapid.Uint8().Draw(t, "reason")),
					Batch: &event.Batch{ID: 1, Rows: []event.Row{{Req: req, Sample: true}}},
				}
				rec.Load = &tape.Load{Ready: 1, B: 2}
				rec.Host = rapid.SampledFrom([]tape.Host{
					nil, &tape.Knob{Old: math.NaN(), New: math.Inf(1)}, &tape.Setting{Setting: "paused", New: "true"},
					&tape.Setting{Setting: "paused"}, &tape.Setting{Setting: "clock", New: "x"},
					&tape.Router{Phase: tape.RouterLive, Hash: "a"}, &tape.Result{Req: req, Checked: true}, &tape.Closed{}, &tape.Plan{},
				}).Draw(t, "host")
			}
			b.Add(&rec)
			r.Add(&rec)
		}
		now := rapid.Int64().Draw(t, "now")
		snap := b.Snapshot(now)
		for _, x := range []float64{snap.TokensPerS, snap.LargeShare, snap.SwitchesPerToken, snap.ITL.P99} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Fatalf("%+v", snap)
			}
		}
		b.Compare(now)
		b.Series(now, 100, time.Second)
		r.Summary(now)
	})
}
