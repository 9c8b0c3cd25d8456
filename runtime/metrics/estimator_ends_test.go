package metrics_test

import (
	"reflect"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// Rows that end a request go to the front with their token: its replacement
// starts there. Late rows and failed ones are no steps.
func TestEstimateOfEnds(t *testing.T) {
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{HalfLife: forever})
	s := newScript(e)
	id := event.ReqID(0)
	at := int64(0)
	begin := func() {
		id++
		at += 10 * ms
		s.arrive(at, id, 5)
		s.run(at, 0, event.RuleEager, event.Row{Req: id, Tokens: make([]event.Token, 5), Sample: true, Prefill: true})
	}
	toLarge := func() {
		begin()
		s.done(at, 0, ms, keep(id, 1))
		s.emit(at, 0, id, 5)
		m := &event.PeerReq{ID: id, From: 0, Status: event.New}
		s.command(at, 0, event.Command{Kind: event.SendPeer, Req: id, To: 1, Peer: m})
		s.event(at, 1, event.Event{Kind: event.PeerIn, Peer: m})
		s.run(at, 1, event.RuleEager, row(id, 6))
	}
	home := func(status event.Status) {
		m := &event.PeerReq{ID: id, From: 1, Status: status}
		s.command(at, 1, event.Command{Kind: event.SendPeer, Req: id, To: 0, Peer: m})
		s.event(at, 0, event.Event{Kind: event.PeerIn, Peer: m})
		s.finish(at, id, 7)
	}
	for range 30 {
		begin() // ends at the front, although the router says large
		s.done(at, 0, ms, keep(id, 1))
		s.emit(at, 0, id, 5)
		s.finish(at, id, 6)
		s.command(at, 0, event.Command{Kind: event.SendPeer, Req: id, To: 1, Peer: &event.PeerReq{ID: id, Status: event.Finished}})

		toLarge() // ends at the large model, although the router says stay
		s.done(at, 1, ms, keep(id, 1))
		s.emit(at, 1, id, 6)
		home(event.Finished)

		toLarge() // fails there
		s.done(at, 1, ms, keep(id, 1))
		home(event.Error)

		toLarge() // is cancelled while it runs there
		s.event(at, 0, event.Event{Kind: event.Cancel, Req: id})
		s.finish(at, id, 6)
		s.done(at, 1, ms, keep(id, 1))
		s.emit(at, 1, id, 6)

		begin() // fails at the front
		s.done(at, 0, ms, keep(id, 0))
		s.command(at, 0, event.Command{Kind: event.Finish, Req: id, N: 5, Reason: event.ReasonError})

		begin() // the runner failed
		s.event(at, 0, event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: s.batch[0], Err: "out of memory"}})
		s.command(at, 0, event.Command{Kind: event.Finish, Req: id, N: 5, Reason: event.ReasonError})
	}
	s.host(at, &tape.Closed{})
	got := e.Estimate()
	same(t, "rows of the front", got.Rows[0], 120)
	same(t, "rows of the large model", got.Rows[1], 30)
	near(t, "ends at the front", got.P[0][0], 0.25, 1e-9)
	near(t, "ends at the large model", got.P[1][0], 1, 1e-9)
	near(t, "tokens", got.K[0][0]+got.K[0][1]+got.K[1][0], 3, 1e-9)
	same(t, "sends of the large model", got.Intervals[1].N, 0)
	same(t, "sends of the front", got.Intervals[0].N, 90)
	same(t, "batches", got.Steps[0].PrefillN, 150)
}

// What a subserver appends on receiving belongs to the row that sent the request
// there.
func TestEstimateOfAppended(t *testing.T) {
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{})
	s := newScript(e)
	s.arrive(0, 1, 5)
	for i := range int64(60) {
		at := i * 40 * ms
		s.run(at, 0, event.RuleEager, row(1, 1))
		s.done(at+6*ms, 0, 6*ms, keep(1, 1))
		s.emit(at+6*ms, 0, 1, 0)
		m := &event.PeerReq{ID: 1, From: 0, Status: event.Alive}
		s.command(at+6*ms, 0, event.Command{Kind: event.SendPeer, Req: 1, To: 1, Peer: m})
		s.event(at+7*ms, 1, event.Event{Kind: event.PeerIn, Peer: m, Verdict: event.Verdict{Kind: event.Append}})
		s.emit(at+7*ms, 1, 1, 0)
		s.emit(at+7*ms, 1, 1, 0)
		s.run(at+7*ms, 1, event.RuleEager, row(1, 1))
		s.done(at+20*ms, 1, 12*ms, keep(1, 0))
		s.emit(at+20*ms, 1, 1, 0)
		back := &event.PeerReq{ID: 1, From: 1, Status: event.Alive}
		s.command(at+20*ms, 1, event.Command{Kind: event.SendPeer, Req: 1, To: 0, Peer: back})
		s.event(at+21*ms, 0, event.Event{Kind: event.PeerIn, Peer: back})
	}
	s.host(60*40*ms, &tape.Closed{})
	got := e.Estimate()
	near(t, "tokens of a hand-off", got.K[0][1], 3, 1e-9)
	near(t, "tokens of the way back", got.K[1][0], 1, 1e-9)
}

// A router or a knob makes routing stale, clock and speed make step times stale,
// and each only its own.
func TestEstimatorRestarts(t *testing.T) {
	third := func(id event.ReqID, step int) bool {
		return rng.Key{Seed: 3, Req: uint64(id), Pos: step}.Float64(0) < 1.0/3
	}
	routing := func(e *metrics.Estimate) int { return e.Rows[0] + e.Intervals[0].N }
	steps := func(e *metrics.Estimate) int { return e.Steps[0].N + e.Whole[1].PrefillN }
	for _, c := range []struct {
		h              tape.Host
		routing, steps bool
	}{
		{&tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "bb"}, true, false},
		{&tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "aa"}, false, false},
		{&tape.Router{Phase: tape.RouterLoaded, File: "r2r.lua", Hash: "bb"}, false, false},
		{&tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 1, New: 2}, true, false},
		{&tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 1, New: 1}, false, false},
		{&tape.Knob{Router: "citer.lua", Knob: "threshold", Old: 1, New: 2}, false, false},
		{&tape.Setting{Setting: "speed", Old: "1", New: "2"}, false, true},
		{&tape.Setting{Setting: "clock", Old: "live", New: "paced"}, false, true},
		{&tape.Setting{Setting: "clock", New: "paced"}, false, false},
		{&tape.Setting{Setting: "concurrency", Old: "4", New: "8"}, false, false},
	} {
		e := metrics.NewEstimator(2, metrics.EstimatorOptions{})
		s := newScript(e)
		s.host(0, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "aa"})
		s.sends(2, 100, third)
		before := e.Estimate()
		s.host(1e10, c.h)
		after := e.Estimate()
		if got := routing(&after) == 0; got != c.routing {
			t.Errorf("%+v: routing restarted: %v", c.h, got)
		}
		if got := steps(&after) == 0; got != c.steps {
			t.Errorf("%+v: step times restarted: %v", c.h, got)
		}
		if got := after.Turns != before.Turns; got != (c.routing || c.steps) {
			t.Errorf("%+v: a turn: %v", c.h, got)
		}
		if after.Ready != (!c.routing && !c.steps) {
			t.Errorf("%+v: ready %v: %s", c.h, after.Ready, after.Why)
		}
		near(t, "P is believed on", after.P[0][1], before.P[0][1], 1e-12)
		near(t, "K is believed on", after.K[0][1], before.K[0][1], 1e-12)
		// From its twentieth row on the new router decides alone.
		s.sends(1, 25, func(event.ReqID, int) bool { return true })
		if got := e.Estimate(); c.routing && got.P[0][1] != 1 {
			t.Errorf("%+v: P is %v", c.h, got.P)
		}
	}
}

// In virtual time a step takes what it takes, however fast that is played.
func TestSpeedOfVirtualTimeMeansNothing(t *testing.T) {
	for clock, forgets := range map[string]bool{"sim a100-r2r": false, "sim": false, "simple": true, "paced a100-r2r": true} {
		e := metrics.NewEstimator(2, metrics.EstimatorOptions{})
		s := newScript(e)
		s.host(0, &tape.Setting{Setting: "clock", New: clock})
		s.sends(2, 100, func(id event.ReqID, step int) bool { return (int(id)+step)%3 == 0 })
		before := e.Estimate()
		s.host(1e10, &tape.Setting{Setting: "speed", Old: "1", New: "60"})
		if after := e.Estimate(); (after.Turns != before.Turns) != forgets || after.Ready == forgets {
			t.Errorf("%s: %d turns, %d before", clock, after.Turns, before.Turns)
		}
	}
}

// A batch that runs while the speed changes has neither speed.
func TestSpeedChangesWhileABatchRuns(t *testing.T) {
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{})
	s := newScript(e)
	s.arrive(0, 1, 5)
	s.run(0, 0, event.RuleEager, row(1, 1))
	s.host(3*ms, &tape.Setting{Setting: "speed", Old: "1", New: "10"})
	s.done(4*ms, 0, 4*ms, keep(1, 0))
	s.run(4*ms, 0, event.RuleEager, row(1, 1))
	s.done(5*ms, 0, ms/2, keep(1, 0))
	got := e.Estimate()
	same(t, "batches", got.Steps[0].N, 1)
	near(t, "step", got.Steps[0].Base, 0.5, 1e-9)
}

// Why says what is missing, and a subserver that nobody goes to does not count.
func TestEstimateReady(t *testing.T) {
	e := metrics.NewEstimator(3, metrics.EstimatorOptions{})
	s := newScript(e)
	expect := func(why string) {
		t.Helper()
		got := e.Estimate()
		if got.Why != why || got.Ready != (why == "") {
			t.Errorf("ready %v: %q, want %q", got.Ready, got.Why, why)
		}
		for i, p := range got.P {
			sum := 0.0
			for _, x := range p {
				sum += x
			}
			near(t, "sum of a row of P", sum, 1, 1e-12)
			if got.Known[i] != (got.Rows[i] >= 20) {
				t.Errorf("%+v", got)
			}
		}
	}
	expect("small: 0 of 20 rows")
	s.sends(1, 3, func(event.ReqID, int) bool { return false })
	expect("small: 3 of 20 rows")
	s.sends(1, 30, func(event.ReqID, int) bool { return false })
	expect("small keeps every row: there is nobody to wait for")
	s.sends(1, 3, func(event.ReqID, int) bool { return true })
	expect("middle: 3 of 20 rows")
	s.sends(1, 17, func(event.ReqID, int) bool { return true })
	expect("")
	if got := e.Estimate(); !reflect.DeepEqual(got.Used, []bool{true, true, false}) || got.P[0][2] != 0 || got.P[1][2] != 0 || got.P[0][1] == 0 {
		t.Errorf("%+v", got)
	}
	alone := metrics.NewEstimator(1, metrics.EstimatorOptions{}).Estimate()
	if alone.Ready || !strings.Contains(alone.Why, "one subserver") || alone.P[0][0] != 1 {
		t.Errorf("%+v", alone)
	}
}

// Estimates make a plan that is true: the exact chain, given what was estimated,
// predicts the tokens per second of the real cores. Messages take 0.04 ms there
// and nothing in the chain, so it is up to 1 % above.
func TestEstimatePredictsTheCores(t *testing.T) {
	for _, n := range []int{1, 4} {
		recs := coresTape(t, tapetest.Config{Requests: 40 * n, Concurrency: n, MaxTokens: 100, Seed: 5, Large: 0.25})
		e := estimate(recs, 2, metrics.EstimatorOptions{HalfLife: forever, StepHalfLife: 300})
		tokens := 0
		for _, r := range recs {
			if r.Kind == tape.KindCommand && r.Command.Kind == event.Emit {
				tokens++
			}
		}
		spec := plan.Spec{N: n, P: e.P, K: e.K}
		for i := range e.Peers {
			base, perRow := e.Step(i)
			spec.Step = append(spec.Step, plan.Latency{Base: base, PerRow: perRow})
		}
		got, err := plan.Chain(&spec)
		if err != nil {
			t.Fatal(err)
		}
		measured := float64(tokens) / (float64(recs[len(recs)-1].At) / 1e9)
		near(t, "predicted tokens/s by those measured", got.Throughput/measured, 1.005, 0.015)
	}
}

// A part of a prefill that samples nothing is no decode row: steps are counted as
// a cost profile is asked.
func TestPartsOfAPrefillDecodeNothing(t *testing.T) {
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{})
	s := newScript(e)
	part := row(1, 8)
	part.Start, part.Sample, part.PromptLen = 8, false, 40
	for i := range int64(6) {
		s.run(i*20*ms, 0, event.RuleEager, part)
		s.done((i*20+12)*ms, 0, 12*ms)
	}
	got := e.Estimate()
	same(t, "decode batches", got.Steps[0].N, 0)
	same(t, "batches with prefill tokens", got.Steps[0].PrefillN, 6)
	near(t, "decode rows", got.Mix[0].Decode, 0, 0)
	near(t, "prefill tokens of a row", got.Mix[0].Tokens, 8, 1e-9)
}
