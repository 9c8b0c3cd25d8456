package live_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// A plan that is still being made while the runtime closes goes nowhere: nobody
// waits for it.
func TestPlanAfterTheEnd(t *testing.T) {
	tp := tape.New()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", policy: event.Policy{Kind: event.Table}, concurrency: 4,
		tasks: referenceTasks(t, 1), tape: tp,
	})
	sub := tp.Subscribe()
	simulated(t, tp, 4)
	closeRuntime(t, rt)
	sub.Next(nil, 0)
	if plans, messages := looked(rt, sub); len(plans)+len(messages) > 0 {
		t.Errorf("%d plans, %q", len(plans), messages)
	}
}
