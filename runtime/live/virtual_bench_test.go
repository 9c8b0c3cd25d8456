package live_test

import (
	"fmt"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/emulated"
	"tokenrouter/runtime/tape"
)

// BenchmarkVirtual is a simulation with drawn tokens, a router in Lua and a tape
// that is read: "tokens/s" are committed tokens in a second of the machine,
// "x-real" is virtual time over that. An operation is one committed token.
func BenchmarkVirtual(b *testing.B) {
	for _, n := range []int{4, 16, 64} {
		b.Run(fmt.Sprintf("concurrency=%d", n), func(b *testing.B) { benchVirtual(b, n) })
	}
}

func benchVirtual(b *testing.B, n int) {
	cfg := flat(b, n, 0.35, event.Policy{Kind: event.Table})
	law, err := emulated.NewLaw(1, emulated.Vocab{Rows: 424, Tokens: []event.Token{17, 18, 19, 20, 21, 22}}, 2)
	if err != nil {
		b.Fatal(err)
	}
	cfg.Runners = []runner.Runner{emulated.New(law, 0), emulated.New(law, 1)}
	cfg.Seats = n
	sub := cfg.Tape.Subscribe()
	rt, err := live.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	var buf []tape.Record
	b.ReportAllocs()
	b.ResetTimer()
	begin := time.Now()
	rt.Start()
	tokens := 0
	for tokens < b.N {
		<-sub.Ready()
		buf = sub.Next(buf[:0], 0)
		for i := range buf {
			if c := buf[i].Command; c != nil && c.Kind == event.Emit {
				tokens++
			}
		}
	}
	took := time.Since(begin).Seconds()
	b.StopTimer()
	b.ReportMetric(float64(tokens)/took, "tokens/s")
	b.ReportMetric(time.Duration(rt.Now()).Seconds()/took, "x-real")
	sub.Close()
	closeRuntime(b, rt)
}
