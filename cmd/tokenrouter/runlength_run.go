package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/runner/emulated"
	"tokenrouter/runtime/workload"
)

// predict plans for each number of active requests, with geometric runs and with
// those that were measured, and runs what it finds on the recorded process.
func (c *runlengthCmd) predict(ctx context.Context, r *runlengths, path, tmp string, ns []int) error {
	p, err := c.play(r, path, tmp)
	if err != nil {
		return err
	}
	bar := newLadderLine(len(ns) * 3 * c.Repeat)
	defer bar.clear()
	for _, n := range ns {
		out, err := p.one(ctx, r, n, bar)
		if err != nil {
			return fmt.Errorf("n = %d: %w", n, err)
		}
		r.Plans = append(r.Plans, *out)
	}
	r.DrawnShare = p.drawnShare()
	return nil
}

// player repeats a session's requests under one policy after the other.
type player struct {
	cmd    *runlengthCmd
	flags  clusterFlags // of all runs
	cast   *cast
	ids    []event.ReqID
	params map[string]float64
	rows   float64 // that were asked for
}

func (c *runlengthCmd) play(r *runlengths, path, tmp string) (*player, error) {
	router, err := routerOf(r.manifest, tmp)
	if err != nil {
		return nil, err
	}
	p := &player{cmd: c, ids: r.ids, params: r.manifest.Params}
	p.flags = clusterFlags{
		castFlags:   castFlags{Router: router, Routers: tmp, Param: map[string]string{}},
		clockFlags:  clockFlags{Clock: live.ClockSim, Tokens: path, Profile: c.Profile},
		poolFlags:   poolFlags{Seats: 64, KVOvercommit: 1},
		loadFlags:   loadFlags{Workload: workload.PresetLight, Arrivals: closedLoop, TopP: 1},
		recordFlags: recordFlags{NoRecord: true, SessionCap: "2GiB"},
		unseen:      true,
	}
	for k, v := range r.manifest.Params {
		p.flags.Param[k] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	f := p.flags
	f.Seed = c.Seed
	if p.cast, err = f.recorded(); err != nil {
		return nil, err
	}
	if len(p.cast.tasks) != len(p.ids) {
		return nil, fmt.Errorf("%s has %d requests of which %d arrived", filepath.Base(path), len(p.cast.tasks), len(p.ids))
	}
	return p, nil
}

// endless gives the tasks of a recording in an order, without end.
type endless struct {
	tasks []workload.Task
	order *emulated.Order
	at    int
}

// Next implements workload.Source.
func (e *endless) Next() (workload.Task, bool) {
	t := e.tasks[e.order.At(e.at)]
	e.at++
	return t, true
}

// played is one run.
type played struct {
	tokensPerS float64
	est        metrics.Estimate
}

// run repeats the requests, n at a time, in the order of a seed.
func (p *player) run(ctx context.Context, n int, seed uint64, batch string) (out played, err error) {
	f := p.flags
	f.Concurrency, f.Batch, f.Seed = n, batch, seed
	order, err := emulated.NewOrder(p.ids, seed)
	if err != nil {
		return out, err
	}
	ready := *p.cast
	again := &emulated.Again{Recording: p.cast.said, Order: order}
	ready.runners, ready.heads = nil, p.cast.heads.over(again)
	for i := range ready.models {
		ready.runners = append(ready.runners, emulated.New(again, i))
	}
	f.ready = &ready
	length := time.Duration(p.cmd.Seconds * float64(time.Second))
	c, err := f.build(work{source: &endless{tasks: ready.tasks, order: order}, horizon: length, again: true})
	if err != nil {
		return out, err
	}
	fold := metrics.NewEstimator(len(ready.models), metrics.EstimatorOptions{HalfLife: allRows})
	d, err := c.drive(ctx, drive{warmUp: length / 10, each: fold.Add})
	if d.reason == "interrupted" {
		return out, errInterrupted
	}
	if err = errors.Join(d.failure(""), err); err != nil {
		return out, err
	}
	return played{d.summary.TokensPerS, fold.Estimate()}, nil
}

// job is one run that is asked for.
type job struct {
	seed  int
	batch string
}

// all makes runs with every seed under each policy.
func (p *player) all(ctx context.Context, n int, batches []string, bar *ladderLine) (map[string][]played, error) {
	var jobs []job
	out := map[string][]played{}
	for _, b := range batches {
		if out[b] != nil {
			continue
		}
		out[b] = make([]played, p.cmd.Repeat)
		for i := range p.cmd.Repeat {
			jobs = append(jobs, job{i, b})
		}
	}
	err := inParallel(ctx, p.cmd.jobs(), jobs, func(ctx context.Context, j job) (played, error) {
		return p.run(ctx, n, p.cmd.Seed+uint64(j.seed), j.batch)
	}, func(j job, got played) error {
		out[j.batch][j.seed] = got
		for _, rows := range got.est.Rows {
			p.rows += float64(rows)
		}
		bar.one(fmt.Sprintf("n %d, %s", n, j.batch))
		return nil
	})
	if err == nil && ctx.Err() != nil {
		err = errInterrupted
	}
	return out, err
}

// drawnShare is the share of answers that the recording does not have.
func (p *player) drawnShare() float64 { return float64(p.cast.said.Missing()) / max(p.rows, 1) }

// one plans for n active requests and runs that.
func (p *player) one(ctx context.Context, r *runlengths, n int, bar *ladderLine) (*lengthPlan, error) {
	eager, err := p.all(ctx, n, []string{"eager"}, bar)
	if err != nil {
		return nil, err
	}
	// Where rows go is of the whole session, how long steps take of these runs.
	of := r.est
	of.Whole, of.Mix, of.Steps = eager["eager"][0].est.Whole, eager["eager"][0].est.Mix, eager["eager"][0].est.Steps
	geometric := of.Spec(n, p.flags.Seats)
	geometric.Send = nil
	fitted, small := geometric, geometric
	fitted.Send = r.send(func(s *runsJSON) plan.Law { return s.law })
	small.Send = r.send(func(s *runsJSON) plan.Law { return s.small })
	o := plan.Options{NoTails: true, Seed: p.cmd.Seed}
	a, err := plan.Best(&geometric, o)
	if err != nil {
		return nil, err
	}
	b, err := plan.Best(&fitted, o)
	if err != nil {
		return nil, err
	}
	out := &lengthPlan{N: n, Geometric: of.Spread(a.B), Corrected: of.Spread(b.B)}
	policies := []string{"eager", vectorFlag(out.Geometric), vectorFlag(out.Corrected)}
	var more []string
	for _, batch := range policies[1:] {
		if batch != "eager" {
			more = append(more, batch)
		}
	}
	got, err := p.all(ctx, n, more, bar)
	if err != nil {
		return nil, err
	}
	got["eager"] = eager["eager"]
	one := slices.Repeat([]int{1}, len(geometric.P))
	for i, v := range [][]int{one, a.B, b.B} {
		line := lengthLine{B: of.Spread(v), Policy: []string{"eager", "geometric B*", "corrected B*"}[i]}
		if line.ByGeometric, err = predicted(&geometric, v); err != nil {
			return nil, err
		}
		if line.BySmall, err = predicted(&small, v); err != nil {
			return nil, err
		}
		if line.ByCorrected, err = predicted(&fitted, v); err != nil {
			return nil, err
		}
		line.measured = rates(got[policies[i]])
		mean, half := metrics.MeanInterval(line.measured)
		line.Measured = measuredJSON{Mean: mean, Half: finiteOr(half)}
		out.Lines = append(out.Lines, line)
	}
	out.Gain = ratioOf(out.Lines[0].measured, out.Lines[2].measured)
	out.CorrectedOver = ratioOf(out.Lines[1].measured, out.Lines[2].measured)
	return out, nil
}

func rates(ps []played) []float64 {
	out := make([]float64, len(ps))
	for i := range ps {
		out[i] = ps[i].tokensPerS
	}
	return out
}

// exactEvents is how long the count simulator runs where the chain is too large.
const exactEvents = 1_000_000

// predicted is the throughput of a system under thresholds b.
func predicted(s *plan.Spec, b []int) (float64, error) {
	under := *s
	under.B = b
	r, err := plan.ChainWithin(&under, 20_000)
	if errors.Is(err, plan.ErrTooLarge) {
		r, err = plan.CountSim(&under, exactEvents, 1)
	}
	return r.Throughput, err
}

func finiteOr(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

func ratioOf(a, b []float64) pairJSON {
	mean, lo, hi, n := metrics.PairedRatio(a, b)
	return pairJSON{Ratio: mean, Lo: finiteOr(lo), Hi: finiteOr(hi), Pairs: n}
}
