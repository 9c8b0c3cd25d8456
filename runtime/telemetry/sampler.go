package telemetry

import (
	"time"

	"tokenrouter/kernels/team"
)

// minInterval is the shortest time that rates are taken over: the kernel
// counts processor time of the machine in steps of 10 ms.
const minInterval = 50 * time.Millisecond

// Sampler takes snapshots. It is not safe for concurrent use.
type Sampler struct {
	now  func() time.Time
	host host
	gpus gpuReader

	since counters // start of the running interval
	last  Snapshot // rates of the last interval
}

// counters are the running totals that rates are differences of.
type counters struct {
	at      time.Time
	process time.Duration // processor time of this process
	cpuOK   bool
	machine processorTime
	machOK  bool
}

// NewSampler opens what the platform offers and starts the first interval.
// It always succeeds; absent sources leave their figures absent. Close it.
func NewSampler() *Sampler { return newSampler(time.Now, openHost(), openGPUs()) }

func newSampler(now func() time.Time, h host, g gpuReader) *Sampler {
	s := &Sampler{now: now, host: h, gpus: g}
	s.since = s.count()
	return s
}

// Sample reads the machine now, on the calling goroutine. Rates need 50 ms to
// form: a call before that repeats the rates of the last interval (unknown at
// first) and lets the running one go on. On Linux it costs some 20
// microseconds, and about a millisecond for each GPU.
func (s *Sampler) Sample() Snapshot {
	now := s.count()
	if interval := now.at.Sub(s.since.at); interval >= minInterval {
		s.last.Interval = interval
		s.last.CPU = s.rates(now, interval)
		s.since = now
	}
	out := s.last
	out.CPU.Cores = team.Machine()
	out.Memory = s.host.memory()
	out.GPUs = s.gpus.read()
	out.GPUNote = s.gpus.note()
	return out
}

// Close releases what NewSampler opened. Sample must not be called after it.
func (s *Sampler) Close() {
	s.host.close()
	s.gpus.close()
}

func (s *Sampler) count() counters {
	c := counters{at: s.now()}
	c.process, c.cpuOK = processCPU()
	c.machine, c.machOK = s.host.processors()
	return c
}

func (s *Sampler) rates(now counters, interval time.Duration) CPU {
	var cpu CPU
	if now.cpuOK && s.since.cpuOK {
		cpu.Process = known(float64(now.process-s.since.process) / float64(interval))
	}
	// Totals of a machine can step back when a processor goes offline.
	if now.machOK && s.since.machOK && now.machine.total > s.since.machine.total && now.machine.busy >= s.since.machine.busy {
		busy := float64(now.machine.busy - s.since.machine.busy)
		cpu.Machine = known(min(1, busy/float64(now.machine.total-s.since.machine.total)))
	}
	return cpu
}
