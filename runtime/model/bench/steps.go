package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"tokenrouter/kernels/limits"
	"tokenrouter/kernels/team"
)

// Options of a measurement; the zero value is the default.
type Options struct {
	Cores   []int         // numbers of cores, nil for 1 and all of the machine
	Batches []int         // of decoding, nil for 1, 2, 4, 8, 16, 32
	Prompt  int           // tokens of a prompt, 0 for 128
	Context int           // positions behind a decoding row, 0 for 64
	Time    time.Duration // of each figure, 0 for 1 s; slow steps take longer
	// Progress, if set, is told what is measured next.
	Progress func(what string)
}

func (o *Options) complete() error {
	if o.Cores == nil {
		o.Cores = []int{1}
		if n := team.Machine(); n > 1 {
			o.Cores = append(o.Cores, n)
		}
	}
	if o.Batches == nil {
		o.Batches = []int{1, 2, 4, 8, 16, 32}
	}
	if o.Prompt == 0 {
		o.Prompt = 128
	}
	if o.Context == 0 {
		o.Context = 64
	}
	if o.Time == 0 {
		o.Time = time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, n := range o.Cores {
		if n < 1 {
			return fmt.Errorf("bench: %d cores: give 1 or more", n)
		}
	}
	for _, n := range append([]int{o.Prompt, o.Context}, o.Batches...) {
		if n < 1 {
			return fmt.Errorf("bench: a batch, a prompt or a context of %d: give 1 or more", n)
		}
	}
	if o.Time < 0 {
		return fmt.Errorf("bench: %v for each figure: give a time above 0", o.Time)
	}
	return nil
}

// Step is the figures of one kind of step.
type Step struct {
	Phase string `json:"phase"` // prefill or decode
	Cores int    `json:"cores"`
	Batch int    `json:"batch"` // sequences
	// Tokens of each sequence, and positions before them.
	Tokens  int `json:"tokens"`
	Context int `json:"context"`

	Seconds         float64 `json:"seconds"` // of the step, the median over laps
	TokensPerSecond float64 `json:"tokens_per_s"`
	BytesPerSecond  float64 `json:"bytes_per_s"`
	OpsPerSecond    float64 `json:"ops_per_s"` // a multiply-add is two
	Limit           string  `json:"limit"`     // the stricter one: read, f32, int16 or int8
	Fraction        float64 `json:"fraction"`  // of it, the median over laps

	Samples   int `json:"samples"`
	Disturbed int `json:"disturbed"` // of the samples: a thread lost its core
}

// Machine is the limits of a number of cores, the highest that were seen.
type Machine struct {
	Cores  int         `json:"cores"`
	Level  string      `json:"level"`
	Buffer int64       `json:"buffer"` // bytes that were read
	Read   limits.Rate `json:"read"`
	Float  limits.Rate `json:"f32"`
	Int16  limits.Rate `json:"int16"`
	Int8   limits.Rate `json:"int8"`
}

// probeShare is how much shorter a limit is measured than a step.
const probeShare = 16

// largestBuffer bounds the memory that is read to measure a limit.
const largestBuffer = 1 << 30

// Measure measures the model's steps and, around each, the machine's limits: a
// prompt, then decoding at every batch size, on every number of cores. Memory is
// read from a buffer of the size of the weights, so that a model that a cache
// holds is held against the cache.
func Measure(m *Model, o Options) (machines []Machine, steps []Step, err error) {
	if err := o.complete(); err != nil {
		return nil, nil, err
	}
	for _, cores := range o.Cores {
		machine, list, err := measure(m, cores, &o)
		if err != nil {
			return nil, nil, err
		}
		machines, steps = append(machines, machine), append(steps, list...)
	}
	return machines, steps, nil
}

func measure(m *Model, cores int, o *Options) (machine Machine, steps []Step, err error) {
	c := team.New(cores)
	defer c.Close()
	o.Progress(fmt.Sprintf("limits, cores: %d", cores))
	buffer := min(max(m.Weights(), 1<<20), largestBuffer)
	probe, err := limits.Open(c.Seat(), limits.Options{Buffer: buffer, Time: max(o.Time/32, 30*time.Millisecond)})
	if err != nil {
		return machine, nil, err
	}
	defer func() { err = errors.Join(err, probe.Close()) }()
	todo := []Step{{Phase: "prefill", Cores: cores, Batch: 1, Tokens: min(o.Prompt, m.Config.MaxPos)}}
	for _, batch := range o.Batches {
		todo = append(todo, Step{Phase: "decode", Cores: cores, Batch: batch, Tokens: 1, Context: min(o.Context, m.Config.MaxPos-1)})
	}
	best := probe.Measure(o.Time / probeShare)
	for _, s := range todo {
		o.Progress(fmt.Sprintf("%s, batch %d, cores: %d", s.Phase, s.Batch, cores))
		seen, err := m.measure(c, probe, &s, o.Time)
		if err != nil {
			return machine, nil, err
		}
		steps, best = append(steps, s), limits.Best(best, seen)
	}
	return Machine{
		cores, best.Level.String(), buffer, best.Read,
		best.Peak[limits.Float], best.Peak[limits.Int16], best.Peak[limits.Int8],
	}, steps, nil
}

// laps are how often a step and the limits are timed in turn. What other
// programs and machines do to memory and to the clock of the cores changes from
// second to second, so each lap of steps is held against what the machine could
// do right before and after it, whichever was more.
const laps = 8

// measure takes the time of a step and holds it against the limits, the highest of
// which it gives. It is repeated in place: its tokens are written over themselves,
// so every run does the same.
func (m *Model) measure(c *team.Cores, probe *limits.Probe, s *Step, d time.Duration) (best *limits.Limits, err error) {
	q := m.open(c, s.Batch, s.Context+s.Tokens)
	defer func() { err = errors.Join(err, q.pool.Close()) }()
	if err := q.ready(s.Context, s.Tokens); err != nil {
		return nil, err
	}
	work := m.work.step(s.Batch, s.Tokens, s.Context)
	var all []Step
	before := probe.Measure(d / probeShare / laps)
	best = before
	for range laps {
		t := limits.Time(s.Cores, d/laps, q.timed)
		if q.failed != nil {
			return nil, q.failed
		}
		after := probe.Measure(d / probeShare / laps)
		lap := Step{Seconds: t.Seconds}
		bound, by := work.bound(limits.Best(before, after))
		// What a step reads faster than the loops, memory can give.
		lap.Limit, lap.Fraction = by, min(bound/t.Seconds, 1)
		all = append(all, lap)
		s.Samples, s.Disturbed = s.Samples+t.Samples, s.Disturbed+t.Disturbed
		before, best = after, limits.Best(best, after)
	}
	slices.SortFunc(all, func(a, b Step) int { return cmp.Compare(a.Seconds, b.Seconds) })
	s.Seconds = all[laps/2].Seconds
	slices.SortFunc(all, func(a, b Step) int { return cmp.Compare(a.Fraction, b.Fraction) })
	s.Limit, s.Fraction = all[laps/2].Limit, all[laps/2].Fraction
	s.TokensPerSecond = float64(s.Batch*s.Tokens) / s.Seconds
	s.BytesPerSecond = float64(work.bytes) / s.Seconds
	s.OpsPerSecond = work.total() / s.Seconds
	return best, nil
}
