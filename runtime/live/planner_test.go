package live_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sim"
	"tokenrouter/runtime/tape"
)

// simulated puts a run of the paper's pair with n requests on the tape, as a
// session would.
func simulated(t *testing.T, to *tape.Tape, n int) {
	t.Helper()
	simulate(t, n, func(r *tape.Record) { to.Append(*r) })
}

func simulate(t *testing.T, n int, record func(*tape.Record)) {
	t.Helper()
	simulatePair(t, n, 0.35, record)
}

// simulatePair is simulate for another share of steps that send to the large model.
func simulatePair(t *testing.T, n int, p float64, record func(*tape.Record)) {
	t.Helper()
	spec := plan.Spec{
		N: n, P: [][]float64{{1 - p, p}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
		Step: []plan.Latency{{Base: 6}, {Base: 27.9}},
	}
	cfg, err := sim.Of(&spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Until = 20e9
	s, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Record(record)
	s.Run()
}

// looked gives the plans and messages that a look puts on the tape.
func looked(rt interface{ Look() }, sub *tape.Sub) (plans []*tape.Plan, messages []string) {
	rt.Look()
	for _, r := range sub.Next(nil, 0) {
		switch h := r.Host.(type) {
		case *tape.Plan:
			plans = append(plans, h)
		case *tape.Message:
			messages = append(messages, h.Text)
		}
	}
	return plans, messages
}

// The table has a row for every number of requests that may be active, whatever
// number is at the moment: requests that come and go change neither the table in
// force nor, at once, the figures. What a person asks for is answered at once,
// and what was said is not said again.
func TestPlanAsRequestsComeAndGo(t *testing.T) {
	synctest.Test(t, planAsRequestsComeAndGo)
}

func planAsRequestsComeAndGo(t *testing.T) {
	const n = 8
	tp := tape.New()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", policy: event.Policy{Kind: event.Table}, concurrency: n,
		tasks: referenceTasks(t, 1), tape: tp,
	})
	defer closeRuntime(t, rt)
	sub := tp.Subscribe()
	if plans, _ := looked(rt, sub); len(plans) > 0 {
		t.Fatalf("a plan of nothing: %+v", plans[0])
	}
	simulated(t, tp, n)
	plans, _ := looked(rt, sub)
	if len(plans) != 1 || plans[0].N != n || plans[0].B[1] < 4 || plans[0].B[1] > 6 || plans[0].Predicted != plans[0].Best {
		t.Fatalf("%d plans: %+v", len(plans), plans)
	}
	first := rt.Status()
	if len(first.Policy.Table) != n || first.B[1] != first.Policy.Table[n-1][1] || first.B[1] < 2 {
		t.Fatalf("in force: %v, %v", first.Policy.Table, first.B)
	}
	for active := n - 1; active > 0; active-- {
		tp.Append(tape.Record{Core: event.Front, Kind: tape.KindLoad, Load: &tape.Load{Active: active}})
		if plans, messages := looked(rt, sub); len(plans)+len(messages) > 0 {
			t.Errorf("%d active: %d plans, %v", active, len(plans), messages)
		}
		if now := rt.Status(); &now.Policy.Table[0] != &first.Policy.Table[0] {
			t.Errorf("%d active: another table: %v", active, now.Policy.Table)
		}
	}
	time.Sleep(time.Minute)
	if plans, _ = looked(rt, sub); len(plans) != 1 || plans[0].N != 1 || len(plans[0].Table) != n {
		t.Fatalf("a minute later, with 1 active: %+v", plans)
	}
	tp.Append(tape.Record{Core: event.Front, Kind: tape.KindLoad, Load: &tape.Load{Active: n}})
	if err := rt.SetPolicy("fixed:1,8"); err != nil {
		t.Fatal(err)
	}
	plans, _ = looked(rt, sub)
	if len(plans) != 1 || plans[0].Policy != "fixed:1,8" || !(plans[0].Predicted < plans[0].Best) {
		t.Fatalf("after another policy: %+v", plans)
	}
	if err := rt.SetConcurrency(2 * n); err != nil {
		t.Fatal(err)
	}
	if plans, _ = looked(rt, sub); len(plans) != 1 || len(plans[0].Table) != 2*n || plans[0].N != n {
		t.Fatalf("with more outstanding than admitted: %+v", plans)
	}
	if plans, messages := looked(rt, sub); len(plans)+len(messages) > 0 {
		t.Errorf("nothing changed: %d plans, %v", len(plans), messages)
	}
	if err := rt.SetConcurrency(n / 2); err != nil {
		t.Fatal(err)
	}
	if plans, _ = looked(rt, sub); len(plans) != 1 || len(plans[0].Table) != n || plans[0].N != n {
		t.Fatalf("with more active than asked for: %+v", plans)
	}
	if err := rt.SetPolicy("fixed:1,1"); err != nil {
		t.Fatal(err)
	}
	if plans, _ = looked(rt, sub); len(plans) != 1 || plans[0].Predicted != plans[0].Eager {
		t.Fatalf("thresholds of 1 are not eager: %+v", plans)
	}
	if err := rt.SetPolicy("lock-step"); err != nil {
		t.Fatal(err)
	}
	if plans, _ = looked(rt, sub); len(plans) != 1 || plans[0].Predicted != plans[0].Lockstep || plans[0].Predicted <= 0 {
		t.Fatalf("what lock-step gives is not predicted: %+v", plans)
	}
	if b := rt.Status().B; !slices.Equal(b, []int{n / 2, 1}) {
		t.Errorf("lock-step of %d waits for %v", n/2, b)
	}
}

// What is changed and changed back within a look has taken the figures from the
// board: they come anew, though they are the same.
func TestPlanAfterThereAndBack(t *testing.T) {
	const n = 8
	live := func(hash string) tape.Host {
		return &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: hash}
	}
	speed := func(old, now string) tape.Host { return &tape.Setting{Setting: "speed", Old: old, New: now} }
	for name, there := range map[string][]tape.Host{
		"router": {live("b"), live("a")},
		"speed":  {speed("1x", "2x"), speed("2x", "1x")},
	} {
		t.Run(name, func(t *testing.T) {
			tp := tape.New()
			rt := newRuntime(t, setup{
				models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", policy: event.Policy{Kind: event.Table}, concurrency: n,
				tasks: referenceTasks(t, 1), tape: tp,
			})
			defer closeRuntime(t, rt)
			sub := tp.Subscribe()
			tp.AppendHost(0, event.None, live("a"))
			simulated(t, tp, n)
			if plans, _ := looked(rt, sub); len(plans) != 1 {
				t.Fatalf("%d plans", len(plans))
			}
			for _, h := range there {
				tp.AppendHost(0, event.None, h)
			}
			if plans, _ := looked(rt, sub); len(plans) > 0 {
				t.Errorf("a plan of nothing: %+v", plans[0])
			}
			simulated(t, tp, n)
			if plans, _ := looked(rt, sub); len(plans) != 1 {
				t.Errorf("%d plans after the change", len(plans))
			}
		})
	}
}

// Stalls take their time: figures are of steps as long as they are in the mean, and
// so are the steps that stand with them.
func TestPlanCountsStalls(t *testing.T) {
	const n = 8
	tp := tape.New()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", policy: event.Policy{Kind: event.Eager}, concurrency: n,
		tasks: referenceTasks(t, 1), tape: tp,
	})
	defer closeRuntime(t, rt)
	sub := tp.Subscribe()
	late, steps := int64(0), 0
	simulate(t, n, func(r *tape.Record) {
		if r.Kind == tape.KindEvent && r.Event.Kind == event.StepDone && r.Core == 1 {
			if steps++; steps%4 == 0 {
				late += 200e6
			}
		}
		r.At += late
		tp.Append(*r)
	})
	plans, _ := looked(rt, sub)
	if len(plans) != 1 {
		t.Fatalf("%d plans", len(plans))
	}
	p := plans[0]
	s := plan.Spec{N: p.N, P: p.P, K: p.K}
	for _, f := range p.Step {
		s.Step = append(s.Step, plan.Latency{Base: f.Base, PerRow: f.PerRow})
	}
	r, err := plan.Chain(&s)
	if err != nil {
		t.Fatal(err)
	}
	if p.Step[1].Base < 35 || math.Abs(p.Predicted/r.Throughput-1) > 0.01 {
		t.Errorf("steps %+v, predicted %.1f; such steps give %.1f", p.Step, p.Predicted, r.Throughput)
	}
}

// A table that takes long is made less often, but at once where a person changes
// something.
func TestSlowTablesAreSeldom(t *testing.T) {
	synctest.Test(t, slowTablesAreSeldom)
}

func slowTablesAreSeldom(t *testing.T) {
	const n, took = 8, time.Second
	tp := tape.New()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", policy: event.Policy{Kind: event.Table}, concurrency: n,
		tasks: referenceTasks(t, 1), tape: tp,
	})
	defer closeRuntime(t, rt)
	slow := int64(1)
	again := func() bool { // whether a look at slower steps makes a table, which takes no time here
		slow *= 2
		simulate(t, n, func(r *tape.Record) {
			r.At *= slow
			tp.Append(*r)
		})
		rt.Look()
		made := *rt.Took() == 0
		*rt.Took() = took
		return made
	}
	if !again() {
		t.Fatal("no table")
	}
	time.Sleep(19 * took)
	if again() {
		t.Error("another table after 19 times what one takes")
	}
	time.Sleep(took)
	if !again() {
		t.Error("no table after 20 times what one takes")
	}
	if err := rt.SetPolicy("eager"); err != nil {
		t.Fatal(err)
	}
	if !again() {
		t.Error("no table after a change of policy")
	}
}
