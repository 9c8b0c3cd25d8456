package sim_test

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sim"
)

// open is a run in which everything is in play: three models with slopes,
// jitter, messages that take time and requests that end.
func open(t testing.TB, seed uint64) sim.Config {
	spec := plan.Spec{
		N:    6,
		P:    [][]float64{{0.7, 0.2, 0.1}, {0.6, 0.3, 0.1}, {1, 0, 0}},
		K:    [][]float64{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}},
		Step: []plan.Latency{{Base: 6, PerRow: 0.1}, {Base: 12.3}, {Base: 27.9, PerRow: 1}},
		B:    []int{2, 2, 3},
	}
	cfg := of(t, spec, seed, 20*second)
	cfg.Policy.W = 60 * ms
	cfg.Length, cfg.Prompt = sim.Exponential(seed, 40), 9
	cfg.Jitter, cfg.Latency = 0.1, ms/5
	return cfg
}

func TestNewRefuses(t *testing.T) {
	for want, harm := range map[string]func(*sim.Config){
		"no source":        func(c *sim.Config) { c.Source = nil },
		"no step times":    func(c *sim.Config) { c.Step = nil },
		"-1 clients":       func(c *sim.Config) { c.Clients = -1 },
		"none may be":      func(c *sim.Config) { c.Latency = -1 },
		"jitter is NaN":    func(c *sim.Config) { c.Jitter = math.NaN() },
		"never end":        func(c *sim.Config) { c.Until, c.WarmUp = 0, 0 },
		"nothing to measu": func(c *sim.Config) { c.WarmUp = c.Until },
		"at least one":     func(c *sim.Config) { c.Cluster = nil },
	} {
		cfg := open(t, 1)
		harm(&cfg)
		if _, err := sim.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	spec := r2r(2, 0.3, 6, 27.9)
	spec.N = 0
	if _, err := sim.Of(&spec, 1); err == nil {
		t.Error("a system without requests")
	}
}

// The same Config gives the same events and commands, byte for byte, on one
// processor and on two (INV-1); another seed gives others.
func TestSameBytes(t *testing.T) {
	for name, make := range map[string]func(testing.TB, uint64) sim.Config{"open": open, "full": full} {
		one := func(seed uint64, procs int) (sim.Result, []byte) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			r, log := logged(t, make(t, seed))
			return r, encode(log)
		}
		ra, a := one(3, 1)
		rb, b := one(3, 2)
		if !bytes.Equal(a, b) || !reflect.DeepEqual(ra, rb) {
			t.Errorf("%s: two runs differ: %d and %d bytes", name, len(a), len(b))
		}
		if _, c := one(4, 2); bytes.Equal(a, c) {
			t.Errorf("%s: the seed changes nothing", name)
		}
		if ra.Finished < 50 || len(a) < 1e6 || ra.Failed > 0 {
			t.Errorf("%s: %d requests, %d bytes: the test has lost its sense", name, ra.Finished, len(a))
		}
		// A tap changes nothing but what is allocated.
		if r := run(t, make(t, 3)); !reflect.DeepEqual(r, ra) {
			t.Errorf("%s: without a tap %+v\nwith one %+v", name, r, ra)
		}
	}
}

// What the tap kept is what was said: nothing is changed behind its back
// (INV-15).
func TestTapMayKeep(t *testing.T) {
	var then [][]byte
	var log []entry
	cfg := open(t, 5)
	cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		e := entry{core, ev, cmds}
		log = append(log, e)
		then = append(then, encode([]entry{e}))
	}
	run(t, cfg)
	for i := range log {
		if !bytes.Equal(encode(log[i:i+1]), then[i]) {
			t.Fatalf("entry %d, %v, has changed since", i, log[i].ev)
		}
	}
}

// Whatever the policy, jitter and order of things, a request meets the same
// wishes of its models and its router: token and decision at a position are
// equal, and so is the time of a model's k-th step.
func TestPairedDraws(t *testing.T) {
	type place struct {
		req   event.ReqID
		pos   int
		model event.Peer
	}
	type step struct {
		model event.Peer
		batch uint64
	}
	draws := func(p event.Policy, until int64) (map[place]event.RowResult, map[step]int64) {
		cfg := open(t, 7)
		cfg.Policy, cfg.Until = p, until
		cfg.Step = sim.Affine([]plan.Latency{{Base: 6}, {Base: 12.3}, {Base: 27.9}}) // the batch size has no say
		_, log := logged(t, cfg)
		rows, took := map[place]event.RowResult{}, map[step]int64{}
		running := map[event.Peer]*event.Batch{}
		for _, e := range log {
			if st := e.ev.Step; st != nil {
				took[step{e.core, st.Batch}] = st.ExecNs
				for i, row := range running[e.core].Rows {
					rows[place{row.Req, row.Start + len(row.Tokens), e.core}] = st.Rows[i]
				}
			}
			for _, c := range e.cmds {
				if c.Kind == event.RunBatch {
					running[e.core] = c.Batch
				}
			}
		}
		return rows, took
	}
	a, at := draws(event.Policy{}, 20*second)
	b, bt := draws(event.Policy{Kind: event.Fixed, B: []int{1, 2, 4}, W: 300 * ms}, 30*second)
	both, other := 0, 0
	for k, x := range a {
		if y, ok := b[k]; ok {
			if both++; !reflect.DeepEqual(x, y) {
				t.Fatalf("%+v: %+v under one policy, %+v under another", k, x, y)
			}
			if x.Dest != k.model {
				other++
			}
		}
	}
	for k, x := range at {
		if y, ok := bt[k]; ok && x != y {
			t.Fatalf("step %+v takes %d ns under one policy, %d under another", k, x, y)
		}
	}
	if both < 5000 || other < 1000 {
		t.Errorf("only %d places are common, %d hand-offs; the test has lost its sense", both, other)
	}
	// Two models at one position draw apart.
	same, pairs := 0, 0
	for k, x := range a {
		if y, ok := a[place{k.req, k.pos, k.model + 1}]; ok {
			pairs++
			if x.Output.Token == y.Output.Token {
				same++
			}
		}
	}
	if pairs < 500 || same > pairs/100 {
		t.Errorf("at %d of %d positions two models write the same token", same, pairs)
	}
}

// Everything due at one time is delivered before anybody dispatches, and the
// dispatches of one time go by core (ties merge).
func TestTiesMerge(t *testing.T) {
	cfg := of(t, r2r(6, 0.5, 6, 12, 1, 4), 2, 20*second)
	cfg.Policy.W = 12 * ms
	_, log := logged(t, cfg)
	merged, woken := 0, 0
	for i := 1; i < len(log); i++ {
		a, b := log[i-1], log[i]
		if a.ev.At > b.ev.At {
			t.Fatalf("entry %d: %v behind %v", i, b.ev, a.ev)
		}
		if a.ev.At != b.ev.At {
			continue
		}
		if a.ev.Kind == event.Dispatch && (b.ev.Kind != event.Dispatch || b.core <= a.core) {
			t.Fatalf("entry %d: %v at %d behind %v at %d", i, b.ev, b.core, a.ev, a.core)
		}
		if a.ev.Kind == event.StepDone && b.ev.Kind == event.StepDone {
			merged++
		}
		if b.ev.Kind == event.Wake {
			woken++
		}
	}
	if merged < 100 || woken < 20 {
		t.Errorf("steps ended together %d times, timers %d times with something else; the test has lost its sense", merged, woken)
	}
}

// Requests, news and hand-offs arrive after exactly the latency, in order.
func TestLatency(t *testing.T) {
	cfg := open(t, 9)
	_, log := logged(t, cfg)
	type link struct{ from, to event.Peer }
	sent := map[link][]int64{}
	arrived := 0
	for _, e := range log {
		from := event.Peer(event.None)
		switch e.ev.Kind {
		case event.PeerIn:
			from = e.ev.Peer.From
		case event.Active:
			from = event.Front
		}
		if from != event.None {
			l := link{from, e.core}
			if got := e.ev.At - sent[l][0]; got != cfg.Latency {
				t.Fatalf("%v was under way for %d ns", e.ev, got)
			}
			sent[l] = sent[l][1:]
			arrived++
		}
		for _, c := range e.cmds {
			switch c.Kind {
			case event.SendPeer:
				l := link{e.core, c.To}
				sent[l] = append(sent[l], e.ev.At)
			case event.TellActive:
				for to := event.Peer(1); to < 3; to++ {
					sent[link{0, to}] = append(sent[link{0, to}], e.ev.At)
				}
			}
		}
	}
	if arrived < 1000 {
		t.Errorf("%d messages; the test has lost its sense", arrived)
	}
}

// The books agree with one another in the long run: the flows of the routing
// matrix balance, a model is busy for its steps' time, and every request is
// somewhere (§2.2).
func TestBooks(t *testing.T) {
	spec := plan.Spec{
		N:    8,
		P:    [][]float64{{0.7, 0.2, 0.1}, {0.6, 0.3, 0.1}, {1, 0, 0}},
		Step: []plan.Latency{{Base: 6}, {Base: 12.3}, {Base: 27.9}},
		B:    []int{1, 2, 3},
	}
	r := run(t, of(t, spec, 1, 400*second))
	seconds := float64(r.To-r.From) / 1e9
	somewhere, steps := 0.0, 0.0
	for j, c := range r.Cores {
		in := 0.0
		for i := range spec.P {
			in += float64(r.Cores[i].Rows) * spec.P[i][j]
		}
		near(t, "flow into "+event.Role(event.Peer(j), 3), in, float64(c.Rows), 0.01)
		near(t, "busy", c.Busy, float64(c.Batches)*spec.Step[j].Base/1e3/seconds, 1e-3)
		near(t, "mean batch", c.MeanBatch, float64(c.Rows)/float64(c.Batches), 1e-12)
		somewhere += c.Waiting + c.Busy*c.MeanBatch
		steps += float64(c.Rows)
		started := 0
		for _, n := range c.Rules {
			started += n
		}
		if started < c.Batches-1 || started > c.Batches+1 || c.Rules[event.RuleB] == 0 || c.Rules[event.RuleGuard] != 0 {
			t.Errorf("batches by rule %v, %d in all", c.Rules, c.Batches)
		}
	}
	near(t, "requests somewhere", somewhere, 8, 1e-3)
	near(t, "tokens", float64(r.Tokens), steps, 1e-3) // K is 1 everywhere
	near(t, "rate", r.Rate, steps/seconds, 1e-3)
	if r.Sent != 8 || r.Finished != 0 {
		t.Errorf("%d requests sent, %d over", r.Sent, r.Finished)
	}
}
