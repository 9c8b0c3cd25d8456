package live_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"tokenrouter/algos"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting/library"
)

// instant answers every row at once with the same output: what is left is the
// runtime itself.
type instant struct {
	runner.Runner
	out event.Output
}

func (r *instant) Run(_ context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	for range b.Rows {
		out = append(out, r.out)
	}
	return out, nil
}
func (*instant) Free(event.ReqID) {}
func (*instant) Close() error     { return nil }

// endless gives tasks without end.
type endless struct{ n int }

func (e *endless) Next() (workload.Task, bool) {
	e.n++
	return workload.Task{ID: strconv.Itoa(e.n), Question: "q"}, true
}

// BenchmarkOverhead is what the runtime costs per decode row without the model:
// core step, route in Lua, records on the tape with one reader, text stage. An
// operation is one row. In "hand-off" every row ends in a hand-over.
func BenchmarkOverhead(b *testing.B) {
	for _, bc := range []struct {
		name, router string
		entropy      float32
	}{
		{"stay", "r2r", 0.1},
		{"hand-off", "r2r", 2},
	} {
		for _, n := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/concurrency=%d", bc.name, n), func(b *testing.B) {
				benchOverhead(b, bc.router, bc.entropy, n)
			})
		}
	}
}

func benchOverhead(b *testing.B, router string, entropy float32, n int) {
	out := event.Output{Token: 17, Entropy: entropy, EntropyNorm: entropy / 6, Top1: 0.9, Top2: 0.05, TopK: make([]event.TokenProb, 5)}
	rec := tape.New()
	sub := rec.Subscribe()
	rt, err := live.New(live.Config{
		Runners: []runner.Runner{&instant{out: out}, &instant{out: out}},
		Pacer:   paced.NewPacer(), Vocab: 424,
		Prompt:     func(string) ([]event.Token, error) { return []event.Token{1, 2, 3, 4}, nil },
		TokenBytes: func(event.Token) ([]byte, bool) { return []byte(" x"), false },
		TokenText:  func(event.Token) string { return " x" },
		Context:    512, Seats: 32, KVTokens: 1 << 15, MaxTokens: 160,
		Concurrency: n, Source: &endless{},
		Library: library.Library{Dir: b.TempDir(), Embedded: algos.Routers()}, Router: router,
		Tape: rec, Guard: guard.New(""),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	rt.Start()
	var buf []tape.Record
	for rows := 0; rows < b.N; {
		<-sub.Ready()
		buf = sub.Next(buf[:0], 0)
		for i := range buf {
			if ev := buf[i].Event; ev != nil && ev.Kind == event.StepDone {
				rows += len(ev.Step.Rows)
			}
		}
	}
	b.StopTimer()
	closeRuntime(b, rt)
}
