package main

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// parsed fills a command from its arguments, as the program does under the name
// sim.
func parsed[T any](tb testing.TB, to *T, args ...string) *T {
	tb.Helper()
	parser, err := kong.New(to, words().CloneWith(kong.Vars{"clock": "sim"}))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return to
}

// How much virtual time a second of ours holds: cores, drawn tokens, Lua routers,
// planner and summary, without a recording.
func BenchmarkSim(b *testing.B) {
	for _, of := range []struct {
		name string
		args []string
	}{
		{"pair/eager/n=8", []string{"--p=0.35", "-n8", "--batch=eager"}},
		{"pair/table/n=8", []string{"--p=0.35", "-n8"}},
		{"pair/r2r/n=8", []string{"--router=r2r", "-n8"}},
		{"three/table/n=16", []string{"--profile=qwen3-h100", "--models=small,middle,large", "--weights=6,3,2", "-n16"}},
	} {
		b.Run(of.name, func(b *testing.B) {
			const virtual = 60 * time.Second
			tokens := 0
			for b.Loop() {
				run := parsed(b, &runCmd{}, append(of.args, "--no-record", "--routers="+b.TempDir())...)
				c, err := run.build(work{horizon: virtual})
				if err != nil {
					b.Fatal(err)
				}
				d, err := c.drive(b.Context(), drive{})
				if err != nil || d.reason != "done" {
					b.Fatal(d.reason, err)
				}
				tokens += d.summary.Tokens
			}
			s := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N)*virtual.Seconds()/s, "virtual-s/s")
			b.ReportMetric(float64(tokens)/s, "tokens/s")
		})
	}
}
