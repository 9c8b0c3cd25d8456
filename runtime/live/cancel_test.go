package live_test

import (
	"context"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/tape"
)

// gate lets a test hold a step open: Run says that it began and waits for leave.
type gate struct {
	runner.Runner
	began chan *event.Batch
	leave chan struct{}
}

func (g *gate) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	g.began <- b
	<-g.leave
	return g.Runner.Run(ctx, b, out)
}

// await reads the tape until a record satisfies ok.
func await(sub *tape.Sub, ok func(*tape.Record) bool) {
	for {
		recs := sub.Next(nil, 1)
		if len(recs) == 0 {
			<-sub.Ready()
		}
		for i := range recs {
			if ok(&recs[i]) {
				return
			}
		}
	}
}

// kv follows the KV that each core holds, from the loads on the tape.
type kv map[event.Peer]int

func (k kv) add(r *tape.Record) {
	if r.Kind == tape.KindLoad {
		k[r.Core] = r.Load.KVUsed
	}
}

func (k kv) free() bool {
	for _, used := range k {
		if used > 0 {
			return false
		}
	}
	return true
}

// TestCancelFreesKV cancels a request in each state it can be in; within a step
// its KV is free on both subservers (case C1), and cancelling again or a request
// that never was changes nothing (case C4).
func TestCancelFreesKV(t *testing.T) {
	// Each state names the steps that are let go before the cancel, small and
	// large in turn as the router makes them, and whether the next step is
	// under way when it comes.
	states := []struct {
		name  string
		steps int
	}{
		{"running prefill at the front", 0},
		{"pending at the front, prefill at the peer", 1},
		{"running at the front after a hand-off", 2},
		{"pending at the front, running at the peer", 3},
	}
	for _, st := range states {
		t.Run(st.name, func(t *testing.T) {
			began, leave := make(chan *event.Batch), make(chan struct{})
			rec := tape.New()
			sub := rec.Subscribe()
			rt := newRuntime(t, setup{
				models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", params: map[string]float64{"threshold": 0},
				tasks: referenceTasks(t, 1), concurrency: 1, tape: rec,
				wrap: func(r runner.Runner) runner.Runner { return &gate{r, began, leave} },
			})
			rt.Start()
			for range st.steps {
				<-began
				leave <- struct{}{}
			}
			<-began
			rt.Cancel(99)
			rt.Cancel(1)
			rt.Cancel(1)
			held := kv{}
			await(sub, func(r *tape.Record) bool {
				held.add(r)
				res, ok := r.Host.(*tape.Result)
				return ok && res.Reason == "aborted"
			})
			leave <- struct{}{} // the step under way ends
			await(sub, func(r *tape.Record) bool {
				held.add(r)
				return held.free()
			})
			<-rt.Done()
			closeRuntime(t, rt)
			for _, r := range sub.Next(nil, 0) {
				held.add(&r)
			}
			if !held.free() {
				t.Errorf("KV is still held: %v", held)
			}
		})
	}
}

// TestQuitFreesEverything ends a runtime in the middle of its work: every
// request has a result and no core holds KV.
func TestQuitFreesEverything(t *testing.T) {
	rec := tape.New()
	sub := rec.Subscribe()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", params: map[string]float64{"threshold": 0.05},
		tasks: referenceTasks(t, 40), concurrency: 8, tape: rec,
	})
	rt.Start()
	seen := rec.Subscribe()
	await(seen, func(r *tape.Record) bool { return r.Kind == tape.KindHost && r.Host.Name() == "result" })
	closeRuntime(t, rt)
	held, open := kv{}, map[event.ReqID]bool{}
	for _, r := range sub.Next(nil, 0) {
		held.add(&r)
		switch h := r.Host.(type) {
		case *tape.Request:
			open[h.Req] = true
		case *tape.Result:
			delete(open, h.Req)
		}
	}
	if !held.free() || len(open) > 0 {
		t.Errorf("after the end KV is held (%v) and requests have no result (%v)", held, open)
	}
}
