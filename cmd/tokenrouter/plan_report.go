package main

import (
	"errors"
	"fmt"
	"slices"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/plan"
)

// Up to exactTable the rows of B*(n) are searched like B* itself; beyond, by the
// cheap sweep that a running system uses, with more events.
const (
	exactTable  = 16
	tableEvents = 20_000
	p99Tokens   = 100_000
)

// planReport is the stable form of --json; docs/cli.md describes each key.
type planReport struct {
	Algo      string        `json:"algo"`
	N         int           `json:"n"`
	Models    []string      `json:"models"`
	Routing   [][]float64   `json:"routing"`
	Commit    string        `json:"commit"`
	Committed [][]float64   `json:"committed"`
	LatencyMS []specLatency `json:"latency_ms"`
	QuantumMS float64       `json:"quantum_ms"`
	BatchCap  []int         `json:"batch_cap"`

	Method  plan.Method `json:"method"`
	Exact   bool        `json:"exact"`
	States  int         `json:"states"`
	Classes int         `json:"classes"`

	Best         []int     `json:"B_star"`
	TokensPerS   float64   `json:"tokens_per_s"`
	StdErr       float64   `json:"stderr"`
	GainEager    float64   `json:"gain_over_eager"`
	GainLockstep float64   `json:"gain_over_lockstep"`
	P99          float64   `json:"itl_p99_ms"`
	StepsPerS    []float64 `json:"decode_steps_per_s"`
	BusyFraction []float64 `json:"busy_fraction"`
	MeanBatch    []float64 `json:"mean_batch"`
	Band         planBand  `json:"band"`
	Rule         int       `json:"rule_of_thumb"`
	MaxP99       float64   `json:"max_p99_ms"`

	Eager    planPoint   `json:"eager"`
	Lockstep planPoint   `json:"lockstep"`
	Curve    []planPoint `json:"curve"`
	Table    []planRow   `json:"table"`
	Warnings []string    `json:"warnings"`

	flat bool // the curve runs along one threshold
}

// planBand is how B* stands step times that are 2 % off.
type planBand struct {
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Flips  bool    `json:"flips"`
	Regret float64 `json:"regret"`
}

// planPoint is the throughput of a vector.
type planPoint struct {
	B          []int   `json:"B"`
	TokensPerS float64 `json:"tokens_per_s"`
	StdErr     float64 `json:"stderr"`
	P99        float64 `json:"itl_p99_ms,omitempty"`
}

// planRow is B* of one number of active requests. The figures of an interpolated
// row are 0.
type planRow struct {
	N            int     `json:"n"`
	Best         []int   `json:"B_star"`
	TokensPerS   float64 `json:"tokens_per_s"`
	Eager        float64 `json:"eager_tokens_per_s"`
	Lockstep     float64 `json:"lockstep_tokens_per_s"`
	Interpolated bool    `json:"interpolated"`
	OverBound    bool    `json:"over_bound"`
}

// report plans the system.
func (c *planCmd) report(s *system) (*planReport, error) {
	o := plan.Options{Method: plan.Method(c.Method), MaxP99: c.bound(), FreeB0: c.FreeB0, Seed: c.Seed}
	for _, role := range roles(len(s.P)) {
		o.Names = append(o.Names, "the "+role)
	}
	a, err := plan.Best(&s.Spec, o)
	if err != nil {
		return nil, err
	}
	r := &planReport{
		Algo: s.Algo, N: s.N, Models: roles(len(s.P)), Routing: s.P, Commit: s.Commit, Committed: s.K,
		QuantumMS: s.Quantum, BatchCap: s.Cap,
		Method: a.Method, Exact: a.States > 0, States: a.States, Classes: a.Classes,
		Best: a.B, TokensPerS: a.Throughput, StdErr: a.Error, GainEager: a.Gain(), GainLockstep: a.GainOverLockstep(), P99: a.P99,
		StepsPerS: a.Steps, BusyFraction: a.Busy, MeanBatch: a.MeanBatch,
		Band: planBand{a.Low, a.High, a.Flips, a.Regret},
		Rule: plan.Explain(&s.Spec), MaxP99: c.bound(),
		Eager:    point(ones(len(s.P)), &a.Eager),
		Lockstep: point(lockstep(s.N, len(s.P)), &a.Lockstep),
		Warnings: append([]string{}, a.Warnings...),
		flat:     len(s.P) == 2 && !c.FreeB0,
	}
	for _, l := range s.Step {
		r.LatencyMS = append(r.LatencyMS, specLatency{l.Base, l.PerRow})
	}
	if err := c.points(r, s, &a); err != nil {
		return nil, err
	}
	r.Table, err = c.table(s, o, &a)
	return r, err
}

func point(b []int, r *plan.Result) planPoint {
	return planPoint{B: b, TokensPerS: r.Throughput, StdErr: r.Error, P99: r.P99}
}

func ones(models int) []int { return slices.Repeat([]int{1}, models) }

// lockstep is the vector under which the small model waits for everyone.
func lockstep(n, models int) []int {
	b := ones(models)
	b[0] = n
	return b
}

// points is the curve. What the answer has better figures of takes those.
func (c *planCmd) points(r *planReport, s *system, a *plan.Answer) error {
	known := []planPoint{point(a.B, &a.Result), r.Eager, r.Lockstep}
	for _, p := range a.Curve {
		x := planPoint{B: p.B, TokensPerS: p.Throughput, StdErr: p.Error}
		for _, k := range known {
			if slices.Equal(k.B, p.B) {
				x = k
			}
		}
		r.Curve = append(r.Curve, x)
	}
	if !c.P99 && c.bound() == 0 {
		return nil
	}
	for i := range r.Curve {
		x := &r.Curve[i]
		if x.P99 > 0 {
			continue
		}
		under := s.Spec
		under.B = x.B
		f, err := plan.Follow(&under, max(p99Tokens, 20*s.N), c.Seed)
		if err != nil {
			return err
		}
		x.P99 = f.P99
	}
	return nil
}

// table is B*(n) for each n asked for.
func (c *planCmd) table(s *system, o plan.Options, a *plan.Answer) ([]planRow, error) {
	var swept plan.Table
	if s.N > exactTable || o.MaxP99 > 0 {
		wide := o
		wide.Events = tableEvents
		var err error
		if swept, err = plan.Tabulate(&s.Spec, s.N, wide); err != nil {
			return nil, err
		}
	}
	var out []planRow
	for n := s.Low; n <= s.N; n++ {
		row, err := c.row(s, o, a, swept.Rows, n)
		if err != nil {
			return nil, fmt.Errorf("n = %d: %w", n, err)
		}
		out = append(out, row)
	}
	return out, nil
}

func (c *planCmd) row(s *system, o plan.Options, a *plan.Answer, swept []plan.Row, n int) (planRow, error) {
	of := s.Spec
	of.N = n
	if n <= exactTable && n < s.N {
		o.NoTails = true
		b, err := plan.Best(&of, o)
		if err == nil {
			return rowOf(n, &b), nil
		}
		if !errors.Is(err, plan.ErrBound) {
			return planRow{}, err
		}
	}
	if n == s.N {
		return rowOf(n, a), nil
	}
	r := &swept[n-1]
	row := planRow{N: n, Best: r.B, TokensPerS: r.Throughput, Eager: r.Eager, Interpolated: !r.Solved, OverBound: r.Over}
	if r.Solved {
		of.B = lockstep(n, len(of.P))
		l, err := plan.CountSim(&of, tableEvents, c.Seed)
		if err != nil {
			return planRow{}, err
		}
		row.Lockstep = l.Throughput
	}
	return row, nil
}

func rowOf(n int, a *plan.Answer) planRow {
	return planRow{N: n, Best: a.B, TokensPerS: a.Throughput, Eager: a.Eager.Throughput, Lockstep: a.Lockstep.Throughput}
}

// roles names models as the board does, by number where there are more.
func roles(models int) []string {
	switch models {
	case 1:
		return []string{cost.Small}
	case 2:
		return []string{cost.Small, cost.Large}
	case 3:
		return []string{cost.Small, cost.Middle, cost.Large}
	}
	out := make([]string, models)
	for i := range out {
		out[i] = fmt.Sprintf("model %d", i)
	}
	return out
}
