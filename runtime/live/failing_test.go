package live_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/tape"
)

// failing fails every 150th step in one of three ways: with an error before
// the step, with one after it, and by answering too little.
type failing struct {
	runner.Runner
	steps int
}

func (f *failing) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	f.steps++
	if f.steps%150 != 0 {
		return f.Runner.Run(ctx, b, out)
	}
	switch f.steps / 150 % 3 {
	case 0:
		return out, errors.New("the device is gone")
	case 1:
		out, err := f.Runner.Run(ctx, b, out)
		return out, errors.Join(err, errors.New("the device is gone"))
	default:
		out, err := f.Runner.Run(ctx, b, out)
		return out[:len(out)-1], err
	}
}

// TestStepsThatFail: a step that fails ends the requests of its batch with an
// error that says why, and no others; all KV is freed and the run goes on.
func TestStepsThatFail(t *testing.T) {
	s := pair(t, 60)
	s.wrap = func(r runner.Runner) runner.Runner { return &failing{Runner: r} }
	s.concurrency = 3
	got, recs := run(t, s)
	checkTape(t, s, recs)
	failed := map[event.ReqID]string{}
	rows := map[event.Peer]*event.Batch{}
	for i := range recs {
		switch r := &recs[i]; {
		case r.Command != nil && r.Command.Kind == event.RunBatch:
			rows[r.Core] = r.Command.Batch
		case r.Kind == tape.KindEvent && r.Event.Kind == event.StepDone && r.Event.Step.Err != "":
			for _, row := range rows[r.Core].Rows {
				failed[row.Req] = r.Event.Step.Err
			}
		}
	}
	said := ""
	for id, a := range got {
		why, fails := failed[id]
		if fails != (a.reason == "error") || a.result.Text != why {
			t.Errorf("request %d ended with %s (%q), its batch failed: %v (%q)", id, a.reason, a.result.Text, fails, why)
		}
		said += a.result.Text + "\n"
	}
	if !strings.Contains(said, "the device is gone") || !strings.Contains(said, "the runner answered ") || len(failed) == len(got) {
		t.Errorf("%d of %d requests failed: %s", len(failed), len(got), said)
	}
}
