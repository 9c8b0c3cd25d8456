package sim_test

import (
	"math"
	"testing"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sim"
)

// The standard error of a rate is what runs under other seeds differ by.
func TestRateErr(t *testing.T) {
	var rates, errs []float64
	for seed := range uint64(40) {
		r := run(t, of(t, r2r(4, 0.35, 6, 27.9, 1, 3), seed, 20*second))
		rates, errs = append(rates, r.Rate), append(errs, r.RateErr)
	}
	spread := 0.0
	for _, x := range rates {
		spread += (x - mean(rates)) * (x - mean(rates)) / float64(len(rates)-1)
	}
	near(t, "mean standard error", mean(errs), math.Sqrt(spread), 0.3)
}

// A step's time is asked for with what the batch feeds: rows that decode, and
// the tokens of prompts and of suffixes beyond the first.
func TestStepTimeArguments(t *testing.T) {
	cfg := open(t, 19)
	cfg.Jitter, cfg.Until = 0, 10*second
	type call struct{ model, decode, prefill int }
	var calls []call
	affine := cfg.Step
	cfg.Step = func(model int, b *cost.Batch) time.Duration {
		calls = append(calls, call{model, b.Decode, b.Prefill})
		return affine(model, b)
	}
	_, log := logged(t, cfg)
	k, prompts, suffixes := 0, 0, 0
	took := map[event.Peer]time.Duration{}
	for _, e := range log {
		if st := e.ev.Step; st != nil && st.ExecNs != int64(took[e.core]) {
			t.Fatalf("a step of %v is said to have taken %d ns", took[e.core], st.ExecNs)
		}
		for _, c := range e.cmds {
			if c.Kind != event.RunBatch {
				continue
			}
			want := call{model: int(e.core)}
			for _, row := range c.Batch.Rows {
				want.prefill += len(row.Tokens)
				if !row.Prefill {
					want.decode++
					want.prefill--
					suffixes += len(row.Tokens) - 1
				} else {
					prompts++
				}
			}
			if calls[k] != want {
				t.Fatalf("batch %v asks for %+v, want %+v", c, calls[k], want)
			}
			took[e.core] = affine(want.model, &cost.Batch{Decode: want.decode, Prefill: want.prefill, Rows: len(c.Batch.Rows)})
			k++
		}
	}
	if k != len(calls) || prompts < 50 || suffixes < 50 {
		t.Errorf("%d batches of %d; %d prompts, %d tokens of suffixes", k, len(calls), prompts, suffixes)
	}
}

// Gaps between tokens are the steps' times: alone, a request that never is
// routed has the small step between any two tokens.
func TestGaps(t *testing.T) {
	r := run(t, of(t, r2r(1, 0, 6, 27.9), 1, 30*second))
	near(t, "median gap", r.Gap50, 6, 0.004)
	near(t, "p99 gap", r.Gap99, 6, 0.004)
	near(t, "rate", r.Rate, 1000/6.0, 1e-3)
	// Every third token or so takes both steps; at the median none, at p99 more
	// than one.
	r = run(t, of(t, r2r(1, 0.35, 6, 27.9), 1, 60*second))
	near(t, "median gap", r.Gap50, 6, 0.004)
	near(t, "p99 gap", r.Gap99, 33.9, 0.004)
}

// A run of so many requests ends when they are over, with nothing left anywhere,
// and each has as many tokens as its length says.
func TestFiniteRun(t *testing.T) {
	cfg := open(t, 11)
	cfg.Requests, cfg.Until, cfg.WarmUp = 50, 0, 0
	length := sim.Exponential(11, 40)
	cfg.Length = length
	tokens := map[event.ReqID]int{}
	cfg.Tap = func(_ event.Peer, _ *event.Event, cmds []event.Command) {
		for _, c := range cmds {
			if c.Kind == event.Emit {
				tokens[c.Req]++
			}
		}
	}
	s := begin(t, cfg)
	r := s.Run()
	if r.Sent != 50 || r.Finished != 50 || r.Stuck != 0 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
	all := 0
	for id := event.ReqID(1); id <= 50; id++ {
		if tokens[id] != length(id) {
			t.Errorf("request %d has %d tokens of %d", id, tokens[id], length(id))
		}
		all += tokens[id]
	}
	if !s.Fabric().Idle() || r.Tokens != all || r.To != r.LastEnd || r.To == 0 {
		t.Errorf("idle %v; %d tokens of %d until %d, the last request until %d", s.Fabric().Idle(), r.Tokens, all, r.To, r.LastEnd)
	}
}

// Functions given to At are called at their time before anything else, and a
// policy set there, or by Control, holds everywhere at once.
func TestPolicyMoves(t *testing.T) {
	cfg := of(t, r2r(6, 0.35, 6, 27.9), 4, 20*second)
	cfg.Latency = 3 * ms
	table := event.Policy{Kind: event.Table, Table: [][]int{{1, 4}}, W: sim.NoGuard}
	fixed := event.Policy{Kind: event.Fixed, B: []int{1, 2}, W: sim.NoGuard}
	asked := 0
	cfg.Control = func(core event.Peer, ev *event.Event) *event.Policy {
		if core == 1 && ev.At >= 8*second && asked == 0 {
			asked++
			return &fixed
		}
		return nil
	}
	var log []entry
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		log = append(log, entry{core, ev, cmds})
	}
	s := begin(t, cfg)
	s.At(5*second, func() {
		if s.Now() != 5*second {
			t.Errorf("called at %d", s.Now())
		}
		s.SetPolicy(table)
	})
	s.Run()
	if s.Now() != cfg.Until {
		t.Errorf("the run ends at %d, not at %d", s.Now(), cfg.Until)
	}
	var set []entry
	b := map[int]bool{}
	for i, e := range log {
		if e.ev.Kind == event.SetPolicy && e.ev.At > 0 {
			if i > 0 && log[i-1].ev.At == e.ev.At && log[i-1].ev.Kind == event.Dispatch {
				t.Error("a policy comes behind a dispatch of its time")
			}
			set = append(set, e)
		}
		for _, c := range e.cmds {
			if c.Kind == event.RunBatch && e.core == 1 {
				b[c.Batch.B] = true
			}
		}
	}
	if len(set) != 4 || set[0].ev.At != 5*second || set[0].ev.Policy.Kind != event.Table || set[1].core != 1 {
		t.Fatalf("%d policies set, first at %d", len(set), set[0].ev.At)
	}
	if at := set[2].ev.At; at < 8*second || set[2].ev.Policy.Kind != event.Fixed || set[3].ev.At != at {
		t.Errorf("Control's policy was set at %d and %d", at, set[3].ev.At)
	}
	if !b[1] || !b[2] || !b[4] || len(b) != 3 {
		t.Errorf("thresholds in force at the large model were %v, want 1, 4 and 2", b)
	}
}

// The cluster stays whole after every event of a run in which everything is in
// play (INV-2, INV-9).
func TestFabricStaysWhole(t *testing.T) {
	cfg := open(t, 13)
	cfg.Until = 10 * second
	var s *sim.Sim
	kinds := map[event.Kind]int{}
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		kinds[ev.Kind]++
		if err := s.Fabric().Check(); err != nil {
			t.Fatalf("after %v at %d: %v", ev, core, err)
		}
	}
	s = begin(t, cfg)
	s.Run()
	for _, k := range []event.Kind{event.Arrive, event.Dispatch, event.StepDone, event.PeerIn, event.Active, event.Wake, event.SetPolicy} {
		if kinds[k] == 0 {
			t.Errorf("no event of kind %d happened", k)
		}
	}
}

// A request that can never fit is turned away and time goes on; what fits runs.
func TestRejectedRequests(t *testing.T) {
	cfg := open(t, 21)
	cfg.Length = func(id event.ReqID) int { return int(id%2)*1_000_000 + 20 }
	for i := range cfg.Cluster {
		cfg.Cluster[i].KVTokens, cfg.Cluster[i].Block = []int{4096, 4096, 4096}, 16
	}
	cfg.WarmUp, cfg.Until = 0, 5*second
	r := run(t, cfg)
	if r.Failed < 20 || r.Finished-r.Failed < 20 || r.Tokens < 400 {
		t.Errorf("%+v", r)
	}
	cfg.Length = sim.Fixed(1 << 20)
	if r = run(t, cfg); r.Tokens != 0 || r.Failed != r.Finished || r.Failed < 6*4000 {
		t.Errorf("%d tokens, %d of %d rejected", r.Tokens, r.Failed, r.Sent)
	}
}
