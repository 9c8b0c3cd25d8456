package metrics_test

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// forever is a half-life that forgets nothing.
const forever = 1e12

// coresTape is a tape of the real cores in which requests run to their length:
// no stops, and no records of a reload, which the scripted router survives
// unchanged.
func coresTape(t testing.TB, cfg tapetest.Config) []tape.Record {
	t.Helper()
	cfg.Vocab = 1 << 30
	recs, _, err := tapetest.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	kept := recs[:0]
	for _, r := range recs {
		switch r.Host.(type) {
		case *tape.Router, *tape.Knob:
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

func estimate(recs []tape.Record, peers int, o metrics.EstimatorOptions) metrics.Estimate {
	e := metrics.NewEstimator(peers, o)
	for i := range recs {
		e.Add(&recs[i])
	}
	return e.Estimate()
}

// walk counts what the estimator should, in another way: by which subserver
// computes the next row of a request, whatever was said and sent between.
func walk(recs []tape.Record, peers int) (rows, tokens [][]float64) {
	type state struct {
		last event.Peer
		n    int // tokens since its last row
	}
	reqs := map[event.ReqID]*state{}
	rows, tokens = make([][]float64, peers), make([][]float64, peers)
	for i := range rows {
		rows[i], tokens[i] = make([]float64, peers), make([]float64, peers)
	}
	move := func(s *state, to event.Peer) {
		if s.last != event.None {
			rows[s.last][to]++
			tokens[s.last][to] += float64(s.n)
		}
		s.last, s.n = to, 0
	}
	for _, r := range recs {
		switch {
		case r.Kind == tape.KindEvent && r.Event.Kind == event.Arrive:
			reqs[r.Event.Req] = &state{last: event.None}
		case r.Kind == tape.KindEvent && r.Event.Kind == event.StepDone:
			for _, row := range r.Event.Step.Rows {
				move(reqs[row.Req], r.Core)
			}
		case r.Kind == tape.KindCommand && r.Command.Kind == event.Emit:
			reqs[r.Command.Req].n++
		case r.Kind == tape.KindCommand && r.Command.Kind == event.Finish:
			move(reqs[r.Command.Req], event.Front)
		}
	}
	return rows, tokens
}

// Without forgetting, P and K are those of the requests' ways through the real
// cores, exactly; and they are those of the router, within four standard errors.
func TestEstimateOfTheCores(t *testing.T) {
	const large = 0.25
	for _, models := range []int{2, 3} {
		recs := coresTape(t, tapetest.Config{Models: models, Requests: 300, Concurrency: 8, MaxTokens: 100, Seed: uint64(models), Large: large})
		got := estimate(recs, models, metrics.EstimatorOptions{HalfLife: forever})
		if !got.Ready || got.Why != "" {
			t.Fatalf("%d models: not ready: %s", models, got.Why)
		}
		rows, tokens := walk(recs, models)
		for i := range models {
			sum := 0.0
			for j := range models {
				sum += rows[i][j]
			}
			same(t, "rows", got.Rows[i], int(sum))
			near(t, "effective rows", got.Effective[i], sum, 1e-3)
			for j := range models {
				near(t, "P", got.P[i][j], rows[i][j]/sum, 1e-6)
				if rows[i][j] > 0 {
					near(t, "K", got.K[i][j], tokens[i][j]/rows[i][j], 1e-6)
				}
			}
			if z := got.Drift[i].Z; math.Abs(z) > 4 {
				t.Errorf("a constant router drifts: %+v", got.Drift[i])
			}
		}
		// The scripted router: a small row is dropped for the large model with the
		// chance large, and kept for the next one with 0.3 of it, unless it is the last.
		last, to := event.Peer(models-1), 0.3*large*0.99
		truth := func(what string, got, p, n, slack float64) {
			near(t, what, got, p, 4*math.Sqrt(p*(1-p)/n)+slack)
		}
		if models == 2 {
			truth("small to large", got.P[0][1], large+to, got.Effective[0], 0.002)
			near(t, "tokens kept on the way", got.K[0][1], to/(large+to), 0.02)
		} else {
			truth("small to large", got.P[0][2], large, got.Effective[0], 0)
			truth("small to middle", got.P[0][1], to, got.Effective[0], 0.002)
			truth("middle to large", got.P[1][2], 1.3*large, got.Effective[1], 0.005)
			near(t, "tokens of a drop", got.K[0][2], 0, 0)
			near(t, "tokens of a hand-off that keeps", got.K[0][1], 1, 0)
		}
		truth("large stays", got.P[last][last], 0.2*0.99, got.Effective[last], 0.01)
		near(t, "tokens of a stay", got.K[0][0], 1, 0)
		near(t, "tokens of the large model", got.K[last][0], 1, 0)
		for i, v := range got.Intervals {
			if !v.Tested || v.PValue < 1e-3 {
				t.Errorf("the router of subserver %d is geometric: %+v", i, v)
			}
			near(t, "mean interval", v.Mean*(1-got.P[i][i]), 1, 0.15)
		}
	}
}

// With the default memory the error is as stated, over many runs.
func TestEstimateErrorIsAsStated(t *testing.T) {
	const runs, large = 60, 0.25
	const p = large + 0.3*large // but for the last row of a request, in 200
	var z2, mean float64
	for seed := range uint64(runs) {
		recs := coresTape(t, tapetest.Config{Requests: 12, Concurrency: 4, MaxTokens: 60, Seed: 1000 + seed, Large: large})
		got := estimate(recs, 2, metrics.EstimatorOptions{})
		z := (got.P[0][1] - p) / math.Sqrt(p*(1-p)/got.Effective[0])
		z2 += z * z / runs
		mean += got.P[0][1] / runs
	}
	// Standard errors: 0.18 of the mean square, 0.005 of the mean.
	near(t, "mean z^2", z2, 1, 0.6)
	near(t, "mean P", mean, p, 0.02)
}

// Decode batches of the real cores take what their law in virtual time says, as
// the tape shows by itself.
func TestEstimateOfSteps(t *testing.T) {
	recs := coresTape(t, tapetest.Config{Requests: 100, Concurrency: 8, MaxTokens: 80, Seed: 5, Large: 0.3})
	got := estimate(recs, 2, metrics.EstimatorOptions{})
	for p := range event.Peer(2) {
		type sum struct{ n, ms float64 }
		by := map[int]*sum{}
		var began *tape.Record
		var rows, tokens, decode float64
		for i := range recs {
			r := &recs[i]
			switch {
			case r.Core != p:
			case r.Kind == tape.KindCommand && r.Command.Kind == event.RunBatch:
				began = r
				for _, row := range r.Command.Batch.Rows {
					rows++
					tokens += float64(len(row.Tokens))
					if !row.Prefill {
						tokens--
						decode++
					}
				}
			case r.Kind == tape.KindEvent && r.Event.Kind == event.StepDone:
				s := by[len(began.Command.Batch.Rows)]
				if s == nil {
					s = new(sum)
					by[len(began.Command.Batch.Rows)] = s
				}
				s.n++
				s.ms += float64(r.At-began.At) / 1e6
			}
		}
		base, perRow := got.Step(int(p))
		for n, s := range by {
			if s.n < 20 {
				continue
			}
			near(t, "step of a batch in ms", (base+perRow*float64(n))/(s.ms/s.n), 1, 0.01)
		}
		m := got.Mix[p]
		near(t, "decode rows", m.Decode, decode/rows, 0.05)
		near(t, "tokens beyond one", m.Tokens, tokens/rows, 0.6)
		if f := got.Whole[p]; !f.Known() || f.MAPE > 0.01 || f.PrefillMAPE > 0.02 {
			t.Errorf("%+v", f)
		}
	}
	step, intervals := got.Tape()
	base, perRow := got.Step(1)
	if step[1].Base != base || step[1].PerRow != perRow || step[1].High != got.Whole[1].High || len(intervals) != 2 || intervals[0].N != got.Intervals[0].N {
		t.Errorf("%+v %+v", step, intervals)
	}
}

// sends writes a run of a two-model router: n requests make rows at the small
// model, of which send decides; the large one writes a token and gives back.
func (s *script) sends(n, steps int, send func(req event.ReqID, step int) bool) {
	at := int64(0)
	for i := range n {
		s.arrive(at, event.ReqID(i+1), 5)
	}
	hop := func(from, to event.Peer, id event.ReqID) {
		m := &event.PeerReq{ID: id, From: from, Status: event.Alive}
		s.command(at, from, event.Command{Kind: event.SendPeer, Req: id, To: to, Peer: m})
		at += ms / 10
		s.event(at, to, event.Event{Kind: event.PeerIn, Peer: m})
	}
	for step := range steps {
		for i := range n {
			id := event.ReqID(i + 1)
			s.run(at, 0, event.RuleEager, row(id, 1))
			at += 6 * ms
			if !send(id, step) {
				s.done(at, 0, 5*ms, keep(id, 0))
				s.emit(at, 0, id, step)
				continue
			}
			s.done(at, 0, 5*ms, drop(id, 1))
			hop(0, 1, id)
			s.run(at, 1, event.RuleB, row(id, 3))
			at += 28 * ms
			s.done(at, 1, 27*ms, keep(id, 0))
			s.emit(at, 1, id, step)
			hop(1, 0, id)
		}
	}
	s.host(at, &tape.Closed{})
}

// A router that sends every third row has the P of one that sends a third at
// random, and is told from it.
func TestEveryThirdIsNotGeometric(t *testing.T) {
	fixed, random := metrics.NewEstimator(2, metrics.EstimatorOptions{}), metrics.NewEstimator(2, metrics.EstimatorOptions{})
	newScript(fixed).sends(4, 300, func(_ event.ReqID, step int) bool { return step%3 == 2 })
	newScript(random).sends(4, 300, func(id event.ReqID, step int) bool {
		return rng.Key{Seed: 3, Req: uint64(id), Pos: step}.Float64(0) < 1.0/3
	})
	a, b := fixed.Estimate(), random.Estimate()
	near(t, "P of every third", a.P[0][1], 1.0/3, 0.02)
	near(t, "P of a third", b.P[0][1], 1.0/3, 0.13)
	for _, e := range []*metrics.Estimate{&a, &b} {
		same(t, "why", e.Why, "")
		near(t, "tokens of a drop", e.K[0][1], 0, 0)
		near(t, "back", e.P[1][0], 1, 0)
		near(t, "small step", e.Steps[0].Base, 5, 1e-9)
		near(t, "small step in whole", e.Whole[0].Base, 6, 1e-9)
		near(t, "large step", e.Steps[1].Base, 27, 1e-9)
	}
	if !a.Intervals[0].Far || a.Intervals[0].CV2 != 0 || a.Intervals[0].Mean != 3 {
		t.Errorf("%+v", a.Intervals[0])
	}
	if v := b.Intervals[0]; v.Far || !v.Tested || math.Abs(v.CV2-v.Geom) > 0.2 {
		t.Errorf("%+v", v)
	}
	if v := a.Intervals[1]; v.Far || v.Mean != 1 {
		t.Errorf("%+v", v)
	}
	if a.Drift[0].Z > 3 || math.Abs(b.Drift[0].Z) > 4 {
		t.Errorf("drifts %+v and %+v", a.Drift[0], b.Drift[0])
	}
}

// Asking changes nothing, what was asked for does not change, and a tape of the
// cores with stops, cancelled requests and a reload is followed to its end.
func TestEstimateIsACopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, recs, _ := drawTape(t)
		asked, silent := metrics.NewEstimator(cfg.Models, metrics.EstimatorOptions{}), metrics.NewEstimator(cfg.Models, metrics.EstimatorOptions{})
		at := rapid.IntRange(0, len(recs)-1).Draw(t, "asked at")
		var first, again metrics.Estimate
		for i := range recs {
			asked.Add(&recs[i])
			silent.Add(&recs[i])
			if i == at {
				first, again = asked.Estimate(), asked.Estimate()
			}
		}
		if !reflect.DeepEqual(asked.Estimate(), silent.Estimate()) {
			t.Fatal("asking changes the figures")
		}
		if !reflect.DeepEqual(first, again) {
			t.Fatal("later records change what was asked for before")
		}
		if got := asked.Estimate(); got.Active != 0 {
			t.Fatalf("%d active at the end", got.Active)
		}
	})
}

// A damaged session holds anything: no record makes the fold fail, and its
// figures stay figures.
func TestEstimatorOfAnyRecord(t *testing.T) {
	peer := rapid.Int16Range(-2, 4)
	rapid.Check(t, func(t *rapid.T) {
		e := metrics.NewEstimator(rapid.IntRange(0, 3).Draw(t, "peers"), metrics.EstimatorOptions{HalfLife: rapid.Float64().Draw(t, "half-life")})
		for range rapid.IntRange(1, 100).Draw(t, "records") {
			rec := tape.Record{
				At:   rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 100_000*ms)).Draw(t, "at"),
				Core: event.Peer(peer.Draw(t, "core")),
				Kind: tape.Kind(rapid.IntRange(0, 6).Draw(t, "kind")),
			}
			req := event.ReqID(rapid.Uint64Range(0, 3).Draw(t, "req"))
			msg := &event.PeerReq{ID: req, From: event.Peer(peer.Draw(t, "from")), Status: event.Status(rapid.IntRange(0, 7).Draw(t, "status"))}
			if rapid.Bool().Draw(t, "whole") {
				rec.Event = &event.Event{
					Kind: event.Kind(rapid.SampledFrom([]int{1, 3, 3, 4, 0, 12}).Draw(t, "event")), Req: req, Peer: msg,
					Step: &event.StepResult{Batch: 1, ExecNs: rapid.Int64().Draw(t, "exec"), Rows: []event.RowResult{{Req: req}, {Req: req + 1}}},
				}
				rec.Command = &event.Command{
					Kind: event.CmdKind(rapid.IntRange(0, 12).Draw(t, "command")), Req: req, Peer: msg, To: event.Peer(peer.Draw(t, "to")),
					N: rapid.Int().Draw(t, "n"), Reason: event.Reason(rapid.Uint8().Draw(t, "reason")),
					Batch: &event.Batch{ID: 1, Rows: []event.Row{{Req: req, Sample: true, Prefill: rapid.Bool().Draw(t, "prefill")}, {Tokens: []event.Token{1}}}},
				}
				rec.Load = &tape.Load{Active: rapid.Int().Draw(t, "active")}
				rec.Host = rapid.SampledFrom([]tape.Host{
					nil, &tape.Knob{Old: math.NaN(), New: math.Inf(1)}, &tape.Setting{Setting: "speed", Old: "1", New: "x"},
					&tape.Router{Phase: tape.RouterLive, Hash: "a"}, &tape.Closed{},
				}).Draw(t, "host")
			}
			e.Add(&rec)
		}
		got := e.Estimate()
		if got.Active < 0 {
			t.Fatalf("%d active", got.Active)
		}
		for i, p := range got.P {
			sum := 0.0
			for j := range p {
				sum += p[j]
				if !(p[j] >= 0 && got.K[i][j] >= 0) {
					t.Fatalf("%+v", got)
				}
			}
			base, perRow := got.Step(i)
			if math.Abs(sum-1) > 1e-9 || math.IsNaN(base+perRow+got.Drift[i].Z+got.Effective[i]) {
				t.Fatalf("%+v", got)
			}
		}
	})
}

func BenchmarkEstimatorAdd(b *testing.B) {
	feed(b, func() folder { return metrics.NewEstimator(2, metrics.EstimatorOptions{}) })
}

// BenchmarkEstimate is what one look at the figures costs.
func BenchmarkEstimate(b *testing.B) {
	recs := benchTape(b)
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{})
	for i := range recs {
		e.Add(&recs[i])
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Estimate()
	}
}
