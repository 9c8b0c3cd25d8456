//go:build unix

package sim_test

import (
	"syscall"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sim"
)

// cpu is the processor time that this process has used, in seconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkPair is committed tokens per second of processor time, garbage
// collection included, for two models and 16 requests.
func BenchmarkPair(b *testing.B) {
	spec := r2r(16, 0.35, 6, 27.9, 1, 10)
	for _, bc := range []struct {
		name   string
		change func(*sim.Config)
	}{
		{"B=1,10", func(*sim.Config) {}},
		{"eager", func(c *sim.Config) { c.Policy = event.Policy{} }},
		{"jitter+latency", func(c *sim.Config) { c.Jitter, c.Latency = 0.03, ms/5 }},
		{"look-ahead", func(c *sim.Config) {
			c.Jitter, c.Latency = 0.03, ms/5
			c.Policy = event.Policy{Kind: event.LookAhead, Forecast: forecast(spec, ms/5), W: 60 * ms}
		}},
		{"lengths", func(c *sim.Config) { c.Length = sim.Exponential(1, 300) }},
		{"tap", func(c *sim.Config) { c.Tap = func(event.Peer, *event.Event, []event.Command) {} }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			tokens, events, begin := 0, 0, cpu(b)
			for b.Loop() {
				cfg := of(b, spec, 1, 200*second)
				cfg.WarmUp = 0
				bc.change(&cfg)
				r := run(b, cfg)
				tokens += r.Tokens
				events += r.Events
			}
			b.ReportMetric(float64(tokens)/(cpu(b)-begin), "tokens/cpu-s")
			b.ReportMetric(float64(events)/float64(tokens), "events/token")
		})
	}
}
