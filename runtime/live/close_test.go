package live_test

import (
	"context"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/tape"
)

// pair is a small cluster that hands over often.
func pair(t *testing.T, tasks int) setup {
	return setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", params: map[string]float64{"threshold": 0.05},
		tasks: referenceTasks(t, tasks), concurrency: 8, tape: tape.New(),
	}
}

func isCommand(k event.CmdKind) func(*tape.Record) bool {
	return func(r *tape.Record) bool { return r.Command != nil && r.Command.Kind == k }
}

// TestCloseAtOddTimes: whatever the runtime is doing, Close ends it in order:
// every request that began has its result and no KV is held. A second Close
// changes nothing, and a router that comes too late is told so.
func TestCloseAtOddTimes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		speed float64 // 0: live clock
		begin func(*live.Runtime, *tape.Sub)
	}{
		{"before Start", 0, func(*live.Runtime, *tape.Sub) {}},
		{"right after Start", 0, func(rt *live.Runtime, _ *tape.Sub) { rt.Start() }},
		{"while paused", 0, func(rt *live.Runtime, sub *tape.Sub) {
			rt.Start()
			await(sub, isCommand(event.Emit))
			rt.SetPaused(true)
		}},
		{"paused from the start", 0, func(rt *live.Runtime, _ *tape.Sub) {
			rt.SetPaused(true)
			rt.Start()
		}},
		{"within a paced step of an hour", 1e-6, func(rt *live.Runtime, sub *tape.Sub) {
			rt.Start()
			await(sub, isCommand(event.RunBatch))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := pair(t, 40)
			if tc.speed > 0 {
				s.pacer = pacedAt(t, tc.speed)
			}
			sub, all := s.tape.Subscribe(), s.tape.Subscribe()
			rt := newRuntime(t, s)
			tc.begin(rt, sub)
			closeRuntime(t, rt)
			closeRuntime(t, rt)
			if err := rt.SetRouter("me"); err == nil || !strings.Contains(err.Error(), "the run has ended") {
				t.Errorf("a router after the end: %v", err)
			}
			checkTape(t, s, all.Next(nil, 0))
		})
	}
}

// TestCloseGivesUp: a step that does not end keeps Close no longer than it was
// given, and Close says so.
func TestCloseGivesUp(t *testing.T) {
	began, leave := make(chan *event.Batch), make(chan struct{})
	s := pair(t, 2)
	s.wrap = func(r runner.Runner) runner.Runner { return &gate{r, began, leave} }
	sub := s.tape.Subscribe()
	rt := newRuntime(t, s)
	rt.Start()
	<-began
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		await(sub, func(r *tape.Record) bool { return r.Host != nil && r.Host.Name() == "result" })
		cancel()
	}()
	err := rt.Close(ctx)
	if err == nil || !strings.Contains(err.Error(), "a step was still computing") {
		t.Errorf("Close within a step that does not end: %v", err)
	}
	leave <- struct{}{}
}
