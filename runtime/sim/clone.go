package sim

import (
	"errors"
	"fmt"
	"slices"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
)

// Clone returns a simulation that continues exactly as this one would, and apart
// from it, without a Tap (see [Sim.SetTap]). Both ask the same Source, Receive,
// Step, Overhead, Stall and Length, which must therefore answer by what they are
// asked alone.
// It may be called between two events: not in Tap or Source, and not while
// functions given to At are outstanding or with a Control, as what those keep
// cannot be doubled.
func (s *Sim) Clone() (*Sim, error) {
	switch {
	case s.busy:
		return nil, errors.New("an event is being handled; clone the simulation before or after it")
	case s.acts.fns > 0:
		return nil, fmt.Errorf("%d functions are still to be called in this simulation, and a clone would call them too; clone it behind them", s.acts.fns)
	case s.cfg.Control != nil:
		return nil, errors.New("a control of the simulation decides by what it keeps, of which there is one; clone a simulation without Control")
	}
	c := *s
	c.cfg.Tap = nil
	c.fab = s.fab.Clone()
	c.queue.heap = slices.Clone(s.queue.heap)
	c.cores = slices.Clone(s.cores)
	c.acts.list, c.acts.free = slices.Clone(s.acts.list), slices.Clone(s.acts.free)
	c.books = s.books.clone()
	c.cmds, c.rows, c.step, c.sums = nil, nil, event.StepResult{}, cost.Batch{}
	c.kept = kept{}
	return &c, nil
}

// SetTap replaces Config.Tap from the next event on.
func (s *Sim) SetTap(tap func(core event.Peer, ev *event.Event, cmds []event.Command)) {
	s.cfg.Tap = tap
}

func (b *books) clone() books {
	c := *b
	c.last = slices.Clone(b.last)
	c.gaps.buckets = slices.Clone(b.gaps.buckets)
	c.cores = slices.Clone(b.cores)
	return c
}

// Outcome is what a policy brings from some moment on.
type Outcome struct {
	Tokens int     // committed within the span
	Regret float64 // part of the best outcome's tokens that it misses, 0 to 1
}

// WhatIf tries policies from now on, each for span ns in a clone of its own, and
// says what each would bring. As every draw is keyed, all meet the same requests
// and the same wishes of the router: what they differ by is theirs, and with the
// policy in force among them its Regret is the true one at this moment, not an
// estimate. The simulation itself stays where it is. See [Sim.Clone].
func (s *Sim) WhatIf(span int64, policies ...event.Policy) ([]Outcome, error) {
	out := make([]Outcome, len(policies))
	best := 0
	for i, p := range policies {
		c, err := s.Clone()
		if err != nil {
			return nil, err
		}
		c.SetPolicy(p)
		c.Advance(s.now + span)
		out[i].Tokens = c.books.all - s.books.all
		best = max(best, out[i].Tokens)
	}
	for i := range out {
		if best > 0 {
			out[i].Regret = 1 - float64(out[i].Tokens)/float64(best)
		}
	}
	return out, nil
}
