package sim_test

import (
	"os"
	"regexp"
	"runtime"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
)

// pool is thousands of streams over three models: as many requests active as
// there are clients, the next sent when one ends, KV in blocks, jitter and
// messages that take time.
func pool(t testing.TB, streams int, until int64) sim.Config {
	spec := plan.Spec{
		N:    streams,
		P:    [][]float64{{0.9, 0.07, 0.03}, {0.5, 0.45, 0.05}, {1, 0, 0}},
		K:    [][]float64{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}},
		Step: []plan.Latency{{Base: 60, PerRow: 0.01}, {Base: 100, PerRow: 0.02}, {Base: 200, PerRow: 0.04}},
		B:    []int{1, 1 + streams/50, 1 + streams/50},
	}
	cfg := of(t, spec, 1, second)
	cfg.WarmUp, cfg.Until = until/6, until
	cfg.Policy.W = 500 * ms
	cfg.Jitter, cfg.Latency = 0.05, ms/5
	cfg.Length, cfg.Prompt = sim.Exponential(1, 150), 48
	seats := []int{streams/3 + 1, streams/6 + 1, streams/6 + 1}
	kv := make([]int, len(seats))
	for m := range kv {
		kv[m] = 320 * streams
	}
	for m := range cfg.Cluster {
		cfg.Cluster[m] = sched.Config{Self: event.Peer(m), Seats: seats, KVTokens: kv, Block: 64}
	}
	return cfg
}

// A pool of thousands of streams goes on and stays whole: with the tag
// invariants every core is checked as it goes, and the cluster is at the end. The
// memory printed is the most that the process ever had. The long run takes
// minutes: go test -tags "soak invariants" -timeout 30m -run Thousands -v.
func TestThousandsOfStreams(t *testing.T) {
	s := begin(t, pool(t, poolStreams, poolSeconds*second))
	r := s.Run()
	if err := s.Fabric().Check(); err != nil {
		t.Error(err)
	}
	active := s.Fabric().Core(event.Front).Load().Active
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	peak := "?"
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		if m := regexp.MustCompile(`VmHWM:\s+(\d+ kB)`).FindSubmatch(text); m != nil {
			peak = string(m[1])
		}
	}
	t.Logf("%d streams, %d active at the end, %d virtual seconds, invariants %v: %.0f tok/s, %d requests over, %d events; %d MiB from the system, most resident %s",
		poolStreams, active, poolSeconds, sched.Enabled, r.Rate, r.Finished, r.Events, mem.Sys>>20, peak)
	if active != poolStreams || r.Failed > 0 || r.Finished < poolStreams*poolSeconds/100 {
		t.Errorf("%d of %d streams active, %d requests over, %d failed", active, poolStreams, r.Finished, r.Failed)
	}
	for m, c := range r.Cores {
		t.Logf("model %d: busy %.2f, mean batch %.0f, %.0f ready and waiting", m, c.Busy, c.MeanBatch, c.Waiting)
		if c.Busy < 0.5 || c.MeanBatch < float64(poolStreams)/60 {
			t.Errorf("model %d is busy for %.2f of the time with %.0f rows; there is work for all", m, c.Busy, c.MeanBatch)
		}
	}
}
