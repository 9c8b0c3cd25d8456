// Package paced runs another runner at the rhythm of a cost profile: real
// tokens, the step times of a machine that is not here.
//
// The invariant that matters: pacing changes when a step ends, never what it
// yields. With no profile set the runner below is called as it is (the live
// clock).
//
// Under a profile a step ends so long after the moment that it was due to begin at,
// however late this machine got round to it: whoever times the next step from that
// end keeps the profile's rhythm over any number of steps.
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
	emulate bool
	seed    uint64
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

// TimersOnly lets a pacer wait by timers alone: they follow a clock that is not the
// system's, such as that of a testing/synctest bubble, of which the system's sleep
// knows nothing. It is called before the first step.
func (p *Pacer) TimersOnly() *Pacer {
	p.nap = nil
	return p
}

// Emulate says that the runners below answer at once: where one takes longer than
// the profile allows, the machine was kept from it, and that is made up for like
// any other delay. It is called before the first step.
func (p *Pacer) Emulate() { p.emulate = true }

// Seed is that of the profile's stalls, 0 unless told. It is called before the first
// step.
func (p *Pacer) Seed(seed uint64) { p.seed = seed }

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

// Late counts the times that this machine was too slow for the profile: steps that
// computed for longer than it allows, and delays given up by Slip.
func (p *Pacer) Late() int64 { return p.late.Load() }

// Slip counts a delay that is not made up for any more.
func (p *Pacer) Slip() { p.late.Add(1) }

// Step returns how long a step takes under the setting in force if nothing stalls, 0
// on the live clock.
func (p *Pacer) Step(model int, b *cost.Batch) time.Duration {
	c := p.profile.Load()
	if c == nil {
		return 0
	}
	return scaled(c.Step(model, b), p.Speed())
}

// Takes returns how long a batch executes under the setting in force, and how long
// after that its step is over, each with its stall; 0 on the live clock.
func (p *Pacer) Takes(model int, b *event.Batch) (exec, over time.Duration) {
	c := p.profile.Load()
	if c == nil {
		return 0, 0
	}
	sums := cost.Of(b)
	longer, later := c.Stall(p.seed, model, b.ID)
	speed := p.Speed()
	return scaled(c.Step(model, &sums)+longer, speed), scaled(c.Overhead(model, len(b.Rows))+later, speed)
}

// Latency returns how long a message between two subservers is under way.
func (p *Pacer) Latency() time.Duration {
	c := p.profile.Load()
	if c == nil {
		return 0
	}
	return scaled(c.Latency(), p.Speed())
}

func scaled(d time.Duration, speed float64) time.Duration {
	return time.Duration(float64(d) / speed)
}

// Wait waits until a moment as precisely as the system can. It returns early when
// there is no rhythm to keep any more, or with the context's error.
func (p *Pacer) Wait(ctx context.Context, until time.Time) error {
	rest := time.Until(until)
	if p.nap != nil {
		rest -= napFor
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		if p.nap != nil {
			p.nap(until)
		}
		return nil
	case <-p.hurry:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

	overdue atomic.Pointer[time.Time]
}

// Overdue is the moment from which on the batch that computes now is late, and
// thus over when it has computed and not before; zero where none computes that can
// be late.
func (r *Runner) Overdue() time.Time {
	if t := r.overdue.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// New paces run, the runner of model number model.
func New(run runner.Runner, pacer *Pacer, model int) *Runner {
	return &Runner{Runner: run, pacer: pacer, model: model}
}

// Unwrap is the runner that is paced.
func (r *Runner) Unwrap() runner.Runner { return r.Runner }

// Timing says how long a step executed and when it was over, as the profile has
// it.
type Timing struct {
	Exec time.Duration
	End  time.Time
}

// Run executes the batch and waits for the rest of its step time.
func (r *Runner) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	out, _, err := r.RunFrom(ctx, time.Now(), b, out)
	return out, err
}

// RunFrom is Run for a step that was due to begin at a moment, which may be a
// little in the past. It returns not before the end of the step by that, and by
// more only as far as this machine is late; a step that computes for longer than
// the profile allows is over when it has.
func (r *Runner) RunFrom(ctx context.Context, begin time.Time, b *event.Batch, out []event.Output) ([]event.Output, Timing, error) {
	step, over := r.pacer.Takes(r.model, b)
	called := time.Now()
	if step > 0 && !r.pacer.emulate {
		end := called.Add(step)
		r.overdue.Store(&end)
	}
	out, err := r.Runner.Run(ctx, b, out)
	r.overdue.Store(nil)
	now := time.Now()
	took := Timing{Exec: now.Sub(called), End: now}
	if err != nil || step == 0 {
		return out, took, err
	}
	if took.Exec > step && !r.pacer.emulate {
		r.pacer.late.Add(1)
		return out, took, nil
	}
	end := begin.Add(step + over)
	if now.Before(end) {
		if err := r.pacer.Wait(ctx, end); err != nil {
			return out, took, err
		}
		if now = time.Now(); now.Before(end) { // hurried
			return out, Timing{now.Sub(begin), now}, nil
		}
	}
	return out, Timing{step, end}, nil
}
