package main

import (
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sim"
	"tokenrouter/runtime/tape"
)

func each(recs []tape.Record) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// What a simulation took by a profile is found again: step times, what lies
// between steps, messages under way, stalls.
func TestFitGivesTheProfileBack(t *testing.T) {
	t.Run("steady", func(t *testing.T) { givesTheProfileBack(t, nil, nil) })
	t.Run("stalls", func(t *testing.T) {
		givesTheProfileBack(t, &cost.Stalls{Share: 0.04, Ms: []float64{20, 30}}, &cost.Stalls{Share: 0.1, Ms: []float64{4}})
	})
}

func givesTheProfileBack(t *testing.T, stalls, between *cost.Stalls) {
	truth := cost.Profile{Name: "truth", LatencyMs: 0.25, Rows: []cost.Row{
		{
			Role: cost.Small, Features: "split", Base: 2.5, PerDecodeRow: 0.05, PerPrefillToken: 0.004, PerDecodeCtx: 1e-4,
			PerPrefillPair: 1e-6, Overhead: 0.125, OverheadPerRow: 0.0625,
			Stalls: stalls, OverheadStalls: between,
		},
		{
			Role: cost.Large, Features: "split", Base: 14, PerDecodeRow: 0.1, PerPrefillToken: 0.05, PerDecodeCtx: 2e-4,
			PerPrefillPair: 2e-6, Overhead: 0.5,
		},
	}}
	p := [][]float64{{0.7, 0.3}, {0.8, 0.2}}
	spec := plan.Spec{N: 12, P: p, K: [][]float64{{1, 0}, {1, 1}}}
	spec.Step = make([]plan.Latency, 2)
	for m := range spec.Step {
		spec.Step[m].Base, spec.Step[m].PerRow = truth.Affine(m, 100)
	}
	cfg, err := sim.Of(&spec, 5)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Step, cfg.Overhead, cfg.Latency = truth.Step, truth.Overhead, int64(truth.Latency())
	cfg.Stall = truth.Stall
	cfg.Prompt, cfg.Length, cfg.Requests = 100, sim.Exponential(3, 60), 80
	var recs []tape.Record
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		recs = append(recs, tape.Record{At: ev.At, Core: core, Kind: tape.KindEvent, Event: ev})
		for i := range cmds {
			recs = append(recs, tape.Record{At: ev.At, Core: core, Kind: tape.KindCommand, Command: &cmds[i]})
		}
	}
	s, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Run()
	found, err := foldCosts(each(recs), 2)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d stretches, %v", len(found), err)
	}
	var models []cost.Measured
	for m, own := range found[0].cores {
		models = append(models, cost.Measured{Role: truth.Rows[m].Role, Samples: own})
	}
	got, err := cost.FitProfile("got", "", "split", models, found[0].messages)
	if err != nil {
		t.Fatal(err)
	}
	if d := got.Latency() - truth.Latency(); d.Abs() > time.Microsecond {
		t.Errorf("messages take %v, the truth is %v", got.Latency(), truth.Latency())
	}
	for m := range truth.Rows {
		for i := range models[m].Samples {
			b := &models[m].Samples[i].Batch
			if want, took := truth.Step(m, b), got.Step(m, b); math.Abs(float64(took-want)) > 2e-3*float64(want) {
				t.Fatalf("model %d: %+v takes %v, the truth is %v", m, b, took, want)
			}
		}
		for _, rows := range []int{1, 4} {
			if want, took := truth.Overhead(m, rows), got.Overhead(m, rows); (took - want).Abs() > 2*time.Microsecond {
				t.Errorf("model %d: %v pass between steps of %d rows, the truth is %v", m, took, rows, want)
			}
		}
		if q := got.Rows[m].Quality; truth.Rows[m].Stalls == nil && q.All.MAPE > 1e-3 {
			t.Errorf("model %d: %+v", m, q)
		}
		sameStalls(t, truth.Rows[m].Stalls, got.Rows[m].Stalls)
		sameStalls(t, truth.Rows[m].OverheadStalls, got.Rows[m].OverheadStalls)
	}
}

func sameStalls(t *testing.T, want, got *cost.Stalls) {
	t.Helper()
	if want == nil || got == nil {
		if want != got {
			t.Errorf("stalls %+v, the truth is %+v", got, want)
		}
		return
	}
	if math.Abs(got.Share/want.Share-1) > 0.3 || math.Abs(got.Mean()/want.Mean()-1) > 0.1 || slices.Max(got.Ms) > 1.01*slices.Max(want.Ms) {
		t.Errorf("stalls %+v, the truth is %+v", got, want)
	}
}

// script builds a tape of one core, in microseconds.
type script struct{ recs []tape.Record }

func (s *script) host(h tape.Host) {
	s.recs = append(s.recs, tape.Record{Core: event.None, Kind: tape.KindHost, Host: h})
}

func (s *script) event(core event.Peer, us int64, ev event.Event) {
	ev.At = us * 1000
	s.recs = append(s.recs, tape.Record{At: ev.At, Core: core, Kind: tape.KindEvent, Event: &ev})
}

func (s *script) order(core event.Peer, us int64, c event.Command) {
	s.recs = append(s.recs, tape.Record{At: us * 1000, Core: core, Kind: tape.KindCommand, Command: &c})
}

// batch dispatches a batch of that many decode rows and ends it.
func (s *script) batch(id uint64, from, exec, to int64, rows int, fault string) {
	b := &event.Batch{ID: id}
	for range rows {
		b.Rows = append(b.Rows, event.Row{Start: 9, Tokens: []event.Token{1}, Sample: true})
	}
	s.event(0, from, event.Event{Kind: event.Dispatch})
	s.order(0, from, event.Command{Kind: event.RunBatch, Batch: b})
	s.event(0, to, event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: id, ExecNs: exec * 1000, Err: fault}})
}

func TestFoldCosts(t *testing.T) {
	var s script
	s.host(&tape.Setting{Setting: "clock", New: "live"})
	s.host(&tape.Setting{Setting: "speed", New: "1"})
	s.batch(1, 100, 40, 150, 1, "") // gap 12: 100 + 40 to 152
	s.batch(2, 152, 50, 210, 2, "") // the next one waited for a message: no gap
	s.event(0, 300, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 7, From: 1, Hop: 2}})
	s.batch(3, 301, 60, 370, 1, "broken") // a failed step has no time
	s.batch(4, 371, 70, 450, 1, "")       // the next one waited for a person
	s.host(&tape.Setting{Setting: "paused", New: "true"})
	s.host(&tape.Setting{Setting: "paused", New: "false"})
	s.batch(5, 9000, 80, 9090, 1, "") // the next one is under another clock
	s.host(&tape.Setting{Setting: "clock", Old: "live", New: "paced x"})
	s.batch(6, 9100, 90, 9200, 1, "")
	s.host(&tape.Setting{Setting: "concurrency", Old: "1", New: "2"})
	s.batch(7, 9201, 100, 9310, 1, "") // gap 11 of the one before
	s.host(&tape.Setting{Setting: "clock", Old: "paced x", New: "live"})
	s.batch(8, 9311, 110, 9430, 1, "") // the session ends
	s.order(0, 9430, event.Command{Kind: event.SendPeer, To: 1, Peer: &event.PeerReq{ID: 7, Hop: 1}})
	s.order(0, 9431, event.Command{Kind: event.SendPeer, To: 1, Peer: &event.PeerReq{ID: 8, Hop: 1}})
	s.event(1, 9442, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 7, Hop: 1}})
	s.event(1, 9443, event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: 7, Hop: 1}}) // nobody sent it twice

	found, err := foldCosts(each(s.recs), 2)
	if err != nil {
		t.Fatal(err)
	}
	sample := func(rows int, exec, gap time.Duration) cost.Sample {
		if gap >= 0 {
			gap *= time.Microsecond
		}
		return cost.Sample{Batch: cost.Decoding(rows, 9), Exec: exec * time.Microsecond, Gap: gap}
	}
	type stretch struct {
		Clock, Speed string
		Samples      []cost.Sample
		Messages     []time.Duration
	}
	var got []stretch
	for _, f := range found {
		if f.batches() > 0 {
			got = append(got, stretch{f.clock, f.speed, f.cores[0], f.messages})
		}
	}
	want := []stretch{
		{"live", "1", []cost.Sample{
			sample(1, 40, 12), sample(2, 50, cost.NoGap), sample(1, 70, cost.NoGap), sample(1, 80, cost.NoGap), sample(1, 110, cost.NoGap),
		}, []time.Duration{12 * time.Microsecond}},
		{"paced x", "1", []cost.Sample{sample(1, 90, 11), sample(1, 100, cost.NoGap)}, nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(found, func(f *costSamples) bool { return len(f.cores[1]) > 0 }) {
		t.Error("the second subserver ran no batch")
	}
}
