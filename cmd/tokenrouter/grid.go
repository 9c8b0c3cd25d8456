package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/ladder"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/workload"
)

// gridCmd runs algorithms by workloads by baselines in virtual time.
type gridCmd struct {
	Algos       string            `placeholder:"NAME,..." help:"Algorithms, of r2r, citer, collm, rstitch, me (default: all). Each is run as the process of its routing; --json says with which probabilities, and where they come from."`
	Workloads   string            `default:"light,heavy,multi-turn" placeholder:"NAME,..." help:"Workloads (default: ${default})."`
	Concurrency string            `short:"n" default:"1,4,16" placeholder:"N,..." help:"Requests that the closed loop keeps outstanding (default: ${default})."`
	Rungs       string            `placeholder:"RUNG,..." help:"Rungs to run, of sequential, lockstep, resubmit, async, tokenrouter, lookahead, beside the one that official code of an algorithm stands on (default: all)."`
	Repeat      int               `default:"3" help:"Seeds: everything runs with each, from --seed on (default: ${default})."`
	Seed        uint64            `default:"1" help:"First seed of requests and draws."`
	Profile     string            `default:"a100-r2r" help:"Cost profile: a built-in name, or a JSON file of one (default: ${default})."`
	Process     map[string]string `placeholder:"ALGO=FILE" help:"Route an algorithm by a Lua file instead of by its probabilities, such as one with measured run lengths that runlength writes; may be repeated."`
	Param       map[string]string `placeholder:"ALGO.KNOB=V" help:"Set a knob of an algorithm's process, such as citer.small_large=0.1; may be repeated."`
	Length      float64           `default:"1" placeholder:"F" help:"Factor on the length of all runs and their warm-up (default: ${default})."`
	Jobs        int               `default:"0" placeholder:"N" help:"Runs at a time; 0 = one for each CPU. What comes out does not depend on it."`
	Keep        string            `placeholder:"FILE" help:"Write every run to a file when it is done; if the file has runs of this grid already, they are not made again."`
	Routers     string            `default:"routers" placeholder:"DIR" help:"Folder of your own routers (default: ${default})."`
	JSON        bool              `help:"Print one JSON object."`
	CSV         bool              `name:"csv" help:"Print a line for each run."`
}

// gridRun is a grid ready to be run.
type gridRun struct {
	cmd   *gridCmd
	algos []ladder.Algorithm
	grids []ladder.Grid // a ladder for each algorithm and workload
	about gridAbout
	cells []ladder.Cell
	made  int
	wall  time.Duration
}

func (c *gridCmd) Run() error {
	g, err := c.prepare()
	if err != nil {
		return usage(err)
	}
	keep, cells, err := openKept(c.Keep, "grid", &g.about, wantedByAny(g.grids))
	if err != nil {
		return usage(err)
	}
	g.cells = cells
	ctx, stop := interruptible()
	defer stop()
	begin := time.Now()
	err = errors.Join(g.run(ctx, keep.add), keep.close())
	g.wall = time.Since(begin)
	if len(g.cells) == 0 {
		return err
	}
	return errors.Join(g.print(os.Stdout), err)
}

// prepare reads the flags, and builds the first cluster of each algorithm to see
// that it stands.
func (c *gridCmd) prepare() (*gridRun, error) {
	g := &gridRun{cmd: c}
	var err error
	if g.algos, err = ladder.ParseAlgorithms(c.Algos); err != nil {
		return nil, fmt.Errorf("--algos: %w", err)
	}
	if err := cmp.Or(g.axes(), g.processes()); err != nil {
		return nil, err
	}
	for i := range g.algos {
		k := slices.IndexFunc(g.grids, func(of ladder.Grid) bool { return of.Case.Algo == g.algos[i].Name })
		cl, _, err := g.build(g.grids[k].Order()[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.algos[i].Name, err)
		}
		g.describe(&g.algos[i], cl)
		if err := cl.runtime.Close(context.Background()); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// axes reads what is crossed with what.
func (g *gridRun) axes() error {
	c := g.cmd
	rungs, err := ladder.ParseRungs(c.Rungs)
	if err != nil {
		return fmt.Errorf("--rungs: %w", err)
	}
	one := ladder.Grid{}
	for text := range strings.SplitSeq(c.Concurrency, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > live.MaxConcurrency {
			return fmt.Errorf("--concurrency %q: %q is not a number of requests from 1 to %d", c.Concurrency, text, live.MaxConcurrency)
		}
		one.Concurrency = append(one.Concurrency, n)
	}
	switch {
	case c.Repeat < 1 || c.Repeat > maxRepeat:
		return fmt.Errorf("--repeat %d is outside 1 to %d", c.Repeat, maxRepeat)
	case !(c.Length > 0 && c.Length <= 1000):
		return fmt.Errorf("--length %g is outside 0 to 1000", c.Length)
	case c.Jobs < 0 || c.Jobs > maxThreads:
		return fmt.Errorf("--jobs %d is outside 0 to %d; 0 is one for each CPU", c.Jobs, maxThreads)
	case c.JSON && c.CSV:
		return errors.New("--json and --csv exclude each other")
	}
	for i := range c.Repeat {
		one.Seeds = append(one.Seeds, c.Seed+uint64(i))
	}
	var works []string
	for work := range strings.SplitSeq(c.Workloads, ",") {
		work = strings.TrimSpace(work)
		if _, err := workload.ShapeOf(work); err != nil {
			return fmt.Errorf("--workloads: %w", err)
		}
		if slices.Contains(works, work) {
			return fmt.Errorf("--workloads: %s is named twice", work)
		}
		works = append(works, work)
	}
	for i := range g.algos {
		for _, work := range works {
			of := one
			of.Case = ladder.Case{Algo: g.algos[i].Name, Workload: work}
			of.Rungs = g.algos[i].Rungs(rungs)
			if err := of.Check(); err != nil {
				return err
			}
			g.grids = append(g.grids, of)
		}
	}
	return nil
}

// processes takes what flags say of how an algorithm routes.
func (g *gridRun) processes() error {
	of := func(flag, name string) (*ladder.Algorithm, error) {
		if i := slices.IndexFunc(g.algos, func(a ladder.Algorithm) bool { return a.Name == name }); i >= 0 {
			return &g.algos[i], nil
		}
		return nil, fmt.Errorf("%s: %q is no algorithm of this grid", flag, name)
	}
	for name, file := range g.cmd.Process {
		a, err := of("--process", name)
		if err != nil {
			return err
		}
		a.Router, a.Params, a.P, a.From = file, nil, nil, "the router "+filepath.Base(file)
	}
	for key, text := range g.cmd.Param {
		name, knob, ok := strings.Cut(key, ".")
		x, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			return fmt.Errorf("--param %s=%s is not of the form citer.small_large=0.1", key, text)
		}
		a, err := of("--param", name)
		if err != nil {
			return err
		}
		a.Set(knob, x)
	}
	return nil
}

// span is how much of a run is measured, and after what warm-up. A run with fewer
// requests at a time takes longer, so that each sees a like number of tokens. Where
// requests are served one after the other, the first of them did not wait for a
// full queue: their warm-up is that of as many as are outstanding.
func (g *gridRun) span(s ladder.Setting) (warmUp, window time.Duration) {
	warm, long := 25.0, 40.0 // s; the longest answer of light takes some 45 at the speeds of a100-r2r
	switch s.Case.Workload {
	case workload.PresetHeavy:
		warm, long = 90, 80
	case workload.PresetMultiTurn:
		warm, long = 12, 40
	}
	const busy = 16
	if s.Rung.MaxActive == 1 {
		warm, long = warm*max(1, float64(s.N)/2), long*busy
	} else {
		long *= max(1, busy/float64(s.N))
	}
	of := func(x float64) time.Duration { return time.Duration(x * g.cmd.Length * float64(time.Second)) }
	return of(warm), of(long)
}

// gridKV is a pool that holds the longest request of heavy 100 times, where the
// profile has none of its own.
const gridKV = 1 << 20

// build is the cluster of one setting.
func (g *gridRun) build(s ladder.Setting) (c *cluster, warmUp time.Duration, err error) {
	a := &g.algos[slices.IndexFunc(g.algos, func(a ladder.Algorithm) bool { return a.Name == s.Case.Algo })]
	f := &clusterFlags{
		castFlags:  castFlags{Router: a.Router, Routers: g.cmd.Routers, Param: map[string]string{}},
		clockFlags: clockFlags{Clock: live.ClockSim, Tokens: tokensDrawn, Profile: g.cmd.Profile},
		poolFlags:  poolFlags{Seats: max(s.N, 1), KVOvercommit: 1},
		loadFlags:  loadFlags{Seed: s.Seed, Workload: s.Case.Workload, Arrivals: closedLoop, TopP: 1},
		recordFlags: recordFlags{
			NoRecord: true, SessionCap: "2GiB",
		},
		Concurrency: s.N, Batch: s.Rung.Policy, Resubmit: s.Rung.Resubmit, MaxActive: s.Rung.MaxActive,
		unseen: true,
	}
	for k, v := range a.Params {
		f.Param[k] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	switch s.Rung.Stateless {
	case ladder.StatelessLarge:
		f.stateless = []bool{false, true}
	case ladder.StatelessAll:
		f.stateless = []bool{true, true}
	}
	p, err := readProfile(g.cmd.Profile)
	if err != nil {
		return nil, 0, fmt.Errorf("--profile: %w", err)
	}
	if kv := gridKV; !slices.ContainsFunc(p.Rows, hasPool) {
		f.KVTokens = &kv
	}
	warmUp, window := g.span(s)
	c, err = f.build(work{horizon: warmUp + window, again: true})
	return c, warmUp, err
}

// run makes the runs that are missing, several at a time, and shows each to done.
func (g *gridRun) run(ctx context.Context, done func(*ladder.Cell) error) error {
	var missing []ladder.Setting
	all := 0
	for i := range g.grids {
		all += len(g.grids[i].Order())
		missing = append(missing, g.grids[i].Missing(g.cells)...)
	}
	// What takes longest begins first, so that no worker is left with it at the end.
	slices.SortStableFunc(missing, func(x, y ladder.Setting) int { return y.N - x.N })
	jobs := g.cmd.Jobs
	if jobs == 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	bar := newLadderBar(os.Stderr, len(missing))
	defer bar.clear()
	bar.done = 0
	err := inParallel(ctx, jobs, missing, g.one, func(s ladder.Setting, sum metrics.Summary) error {
		g.cells = append(g.cells, ladder.NewCell(s, sum))
		g.made++
		bar.begin(s)
		return done(&g.cells[len(g.cells)-1])
	})
	if errors.Is(err, errInterrupted) || ctx.Err() != nil && err == nil {
		left := 0
		for i := range g.grids {
			left += len(g.grids[i].Missing(g.cells))
		}
		return &exitError{exitInterrupted, fmt.Errorf("interrupted after %d of %d runs", all-left, all)}
	}
	return err
}

// one makes one run.
func (g *gridRun) one(ctx context.Context, s ladder.Setting) (metrics.Summary, error) {
	c, warmUp, err := g.build(s)
	if err != nil {
		return metrics.Summary{}, fmt.Errorf("%v: %w", s, err)
	}
	d, err := c.drive(ctx, drive{warmUp: warmUp})
	if d.reason == "interrupted" {
		return d.summary, errInterrupted
	}
	if err = errors.Join(d.failure(""), err); err == nil && d.summary.TokensPerS == 0 {
		err = fmt.Errorf("no token was written after the first %v; give more --length", warmUp)
	}
	if err != nil {
		return d.summary, fmt.Errorf("%v: %w", s, err)
	}
	return d.summary, nil
}

// wantedByAny says whether a cell is one of those grids'.
func wantedByAny(grids []ladder.Grid) func(*ladder.Cell) bool {
	wanted := map[string]bool{}
	for i := range grids {
		for _, s := range grids[i].Order() {
			wanted[s.String()] = true
		}
	}
	return func(c *ladder.Cell) bool { return wanted[c.Setting().String()] }
}

// gridRoles are those of the pair that all algorithms run on.
func gridRoles() []string {
	return []string{event.Role(0, 2), event.Role(1, 2)}
}
