// Package paced runs another runner at the rhythm of a cost profile: real
// tokens, the step times of a machine that is not here.
//
// The invariant that matters: pacing changes when a step ends, never what it
// yields. With no profile set the runner below is called as it is (the live
// clock).
//
// Read Pacer for the settings that all runners of a session share, and Runner
// for what happens to one step.
package paced

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
)

// Pacer is the clock that the runners of a session obey. Its setters may be
// called while steps run; a step keeps the setting it began with.
type Pacer struct {
	profile atomic.Pointer[cost.Profile] // nil on the live clock
	speed   atomic.Uint64                // math.Float64bits
	late    atomic.Int64
	hurry   chan struct{} // closed by Hurry
	once    sync.Once
	nap     func(until time.Time) // waits the last of a step precisely; nil leaves it to the timer
}

// NewPacer returns a pacer on the live clock at speed 1.
func NewPacer() *Pacer {
	p := &Pacer{hurry: make(chan struct{}), nap: nap}
	p.SetSpeed(1)
	return p
}

// SetProfile sets the step times; nil is the live clock.
func (p *Pacer) SetProfile(c *cost.Profile) { p.profile.Store(c) }

// Profile returns the step times in force, nil on the live clock.
func (p *Pacer) Profile() *cost.Profile { return p.profile.Load() }

// SetSpeed sets the factor on the profile's speed.
func (p *Pacer) SetSpeed(f float64) { p.speed.Store(math.Float64bits(f)) }

// Speed returns the factor on the profile's speed.
func (p *Pacer) Speed() float64 { return math.Float64frombits(p.speed.Load()) }

// Hurry ends the waits under way and all later ones: a session that closes has
// no rhythm to keep.
func (p *Pacer) Hurry() { p.once.Do(func() { close(p.hurry) }) }

// Late counts the steps that computed for longer than their profile allows: as
// far as they go, this machine is slower than the one it imitates.
func (p *Pacer) Late() int64 { return p.late.Load() }

// Step returns how long a step takes under the setting in force, 0 on the live
// clock.
func (p *Pacer) Step(model int, b *cost.Batch) time.Duration {
	c := p.profile.Load()
	if c == nil {
		return 0
	}
	return time.Duration(float64(c.Step(model, b)) / p.Speed())
}

// napFor is how much of a step is left to a nap. Timers wake through a poll of
// whole milliseconds, so a step that ends with one is up to a millisecond late,
// some 0.4 ms in the mean: a fifteenth of a step of 6.0 ms.
const napFor = 2 * time.Millisecond

// Runner paces one model's runner.
type Runner struct {
	runner.Runner
	pacer *Pacer
	model int // index among the session's models, small first
}

// New paces run, the runner of model number model.
func New(run runner.Runner, pacer *Pacer, model int) *Runner {
	return &Runner{Runner: run, pacer: pacer, model: model}
}

// Run executes the batch and waits for the rest of its step time.
func (r *Runner) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	sums := cost.Of(b)
	step := r.pacer.Step(r.model, &sums)
	begin := time.Now()
	out, err := r.Runner.Run(ctx, b, out)
	if err != nil || step == 0 {
		return out, err
	}
	end := begin.Add(step)
	rest := time.Until(end)
	if rest < 0 {
		r.pacer.late.Add(1)
		return out, nil
	}
	if r.pacer.nap != nil {
		rest -= napFor
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		if r.pacer.nap != nil {
			r.pacer.nap(end)
		}
		return out, nil
	case <-r.pacer.hurry:
		return out, nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}
