package main

import (
	"cmp"
	"errors"
	"slices"

	"tokenrouter/runtime/plan"
)

// Up to so many vectors --spec looks at all of them by the chain, if none has
// more states than this: a few seconds at most. Beyond, [plan.Best] searches,
// and what is too large for the chain is counted for so many events.
const (
	specVectors = 150
	specStates  = 50_000
	specEvents  = 1_000_000
)

// found is a vector and its throughput.
type found struct {
	b          []int
	tokensPerS float64
}

// better says that x has more throughput, or as much with smaller thresholds.
func (x found) better(y found) bool {
	const same = 1e-9
	if d := x.tokensPerS - y.tokensPerS; y.b == nil || max(d, -d) > same*y.tokensPerS {
		return y.b == nil || d > 0
	}
	return cmp.Or(cmp.Compare(sum(x.b), sum(y.b)), slices.Compare(x.b, y.b)) < 0
}

func sum(xs []int) int {
	total := 0
	for _, x := range xs {
		total += x
	}
	return total
}

// reply solves s under its own thresholds and finds the best ones.
func (c *planCmd) reply(s *plan.Spec) (*specReply, error) {
	here, err := c.solve(s, s.B)
	if err != nil {
		return nil, err
	}
	eager, err := c.solve(s, nil)
	if err != nil {
		return nil, err
	}
	all, front, err := c.searchAll(s)
	looked := "all feasible vectors by the chain"
	if errors.Is(err, plan.ErrTooLarge) {
		looked = "a search"
		all, front, err = c.search(s)
	}
	if err != nil {
		return nil, err
	}
	return &specReply{
		Throughput: sig6(here.Throughput), FourDigits: fourDigits(here.Throughput),
		Best: all.b, AtBest: sig6(all.tokensPerS),
		BestFront: front.b, AtBestFront: sig6(front.tokensPerS),
		Eager:     sig6(eager.Throughput),
		StepsPerS: sixes(here.Steps), BusyFraction: sixes(here.Busy), MeanBatch: sixes(here.MeanBatch),
		input: s, looked: looked, stderr: max(here.Error, eager.Error),
	}, nil
}

// solve is the result of s under thresholds b.
func (c *planCmd) solve(s *plan.Spec, b []int) (plan.Result, error) {
	under := *s
	under.B = b
	switch plan.Method(c.Method) {
	case plan.ByCountSim:
		return plan.CountSim(&under, specEvents, c.Seed)
	case plan.ByFluid:
		return plan.Fluid(&under)
	case plan.ByChain:
		return plan.Chain(&under)
	}
	r, err := plan.ChainWithin(&under, specStates)
	if errors.Is(err, plan.ErrTooLarge) {
		return plan.CountSim(&under, specEvents, c.Seed)
	}
	return r, err
}

// searchAll looks at every feasible vector by the chain: the best of all, and
// the best with B[0] = 1. Where that takes too long it is [plan.ErrTooLarge].
func (c *planCmd) searchAll(s *plan.Spec) (all, front found, err error) {
	vectors := feasible(s.N, len(s.P), specVectors)
	if m := plan.Method(c.Method); vectors == nil || (m != plan.Auto && m != plan.ByChain) {
		return all, front, plan.ErrTooLarge
	}
	for _, b := range vectors {
		under := *s
		under.B = b
		r, err := plan.ChainWithin(&under, specStates)
		if err != nil {
			return all, front, err
		}
		x := found{b, r.Throughput}
		if x.better(all) {
			all = x
		}
		if b[0] == 1 && x.better(front) {
			front = x
		}
	}
	return all, front, nil
}

// search lets the plan look for the best vectors.
func (c *planCmd) search(s *plan.Spec) (all, front found, err error) {
	o := plan.Options{Method: plan.Method(c.Method), Seed: c.Seed, NoTails: true}
	a, err := plan.Best(s, o)
	if err != nil {
		return all, front, err
	}
	front = found{a.B, a.Throughput}
	o.FreeB0 = true
	a, err = plan.Best(s, o)
	return found{a.B, a.Throughput}, front, err
}

// feasible lists the vectors whose sum of B-1 is below n, nil if there are more
// than most.
func feasible(n, models, most int) [][]int {
	var out [][]int
	b := ones(models)
	var fill func(m, spare int) bool
	fill = func(m, spare int) bool {
		if m == models {
			out = append(out, slices.Clone(b))
			return len(out) <= most
		}
		for b[m] = 1; b[m] <= 1+spare; b[m]++ {
			if !fill(m+1, spare-(b[m]-1)) {
				return false
			}
		}
		return true
	}
	if !fill(0, n-1) {
		return nil
	}
	return out
}
