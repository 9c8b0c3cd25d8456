package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"tokenrouter/kernels/team"
	"tokenrouter/runtime/frontier"
	"tokenrouter/runtime/workload"
)

// sweepCmd runs routers at many settings of their knobs over the same problems.
type sweepCmd struct {
	castFlags

	Point     []string `sep:"none" placeholder:"'router=NAME KNOB=VALUES'" help:"One more router with its values, such as 'router=r2r threshold=0.05:1.5:8'; may be repeated, beside --router or in its place."`
	Baselines string   `default:"all" placeholder:"NAME,..." help:"What points are held against: small_only and large_only, which are always run, oracle, and random at the large shares of the points; all, or none for the two ends alone (default: ${default})."`
	Out       string   `short:"o" default:"sweep.jsonl" placeholder:"FILE" help:"Write every point to this file when it is done; what the file has already is not run again (default: ${default})."`
	Requests  *int     `placeholder:"M" help:"Problems that every point answers (default: 300; all of --tasks)."`
	Tasks     string   `placeholder:"FILE.jsonl" help:"Problems from a file, {id, question, answer} a line, instead of a workload."`
	Jobs      int      `default:"0" placeholder:"N" help:"Points at a time in virtual time; 0 = one for each CPU, but one with models from disk. What comes out does not depend on it."`

	Concurrency int    `short:"n" default:"8" help:"Requests that the closed loop keeps outstanding (default: ${default})."`
	Batch       string `default:"table" placeholder:"POLICY" help:"When a subserver starts a batch, as for run (default: ${default})."`
	Resubmit    bool   `help:"Every switch is a new request, as for run."`
	MaxActive   int    `placeholder:"N" help:"Most requests admitted at a time; 0 = no bound."`

	clockFlags
	poolFlags
	loadFlags
	tableFlags
}

// sweepRequests are as many problems as there are where nobody says.
const sweepRequests = 300

// sweep is points ready to be run.
type sweep struct {
	cmd     *sweepCmd
	plan    []sweepPoint
	limit   int
	tasks   []workload.Task // of a file
	about   sweepAbout
	shelf   *shelf
	keep    *keeper
	runs    map[string]frontier.Run // by key
	made    int
	wall    time.Duration
	baseRnd bool // random at the shares of the points
}

func (c *sweepCmd) Run() error {
	s, err := c.prepare()
	if err != nil {
		return usage(err)
	}
	defer s.shelf.close()
	if err := s.open(); err != nil {
		return usage(err)
	}
	ctx, stop := interruptible()
	defer stop()
	begin := time.Now()
	err = errors.Join(s.run(ctx), s.keep.close())
	s.wall = time.Since(begin)
	return errors.Join(s.print(os.Stdout), err)
}

// prepare reads the flags, and builds the first cluster to see that it stands.
func (c *sweepCmd) prepare() (*sweep, error) {
	s := &sweep{cmd: c, runs: map[string]frontier.Run{}}
	if c.Tokens == "" {
		c.Tokens = tokensModels
	}
	switch {
	case c.Tokens != tokensModels:
		return nil, fmt.Errorf("--tokens %s: a sweep counts right answers, which only models give; leave it out (tokenrouter ablate and sim take drawn tokens)", c.Tokens)
	case len(c.given()) > 0:
		return nil, fmt.Errorf("%s sets knobs of the router chance for one run; a sweep takes them as --router chance --param small_large=0.1:0.5:5", c.given()[0])
	case c.Out == "":
		return nil, errors.New("-o names no file; points are kept in one as they are made")
	case c.Requests != nil && *c.Requests < 1:
		return nil, fmt.Errorf("--requests %d is less than 1", *c.Requests)
	case c.Jobs < 0:
		return nil, fmt.Errorf("--jobs %d is negative; give 0 for one for each CPU", c.Jobs)
	case c.Jobs > 1 && !c.virtual():
		return nil, fmt.Errorf("--jobs %d: on the clock %s points that run together take each other's time; give --clock sim, or leave it out", c.Jobs, c.Clock)
	}
	if err := c.tableFlags.check(); err != nil {
		return nil, err
	}
	s.limit = sweepRequests
	if c.Tasks != "" {
		var err error
		if s.tasks, err = readTasks(c.Tasks); err != nil {
			return nil, err
		}
		s.limit = len(s.tasks)
	}
	if c.Requests != nil {
		s.limit = *c.Requests
	}
	if s.tasks != nil {
		s.limit = min(s.limit, len(s.tasks))
		judged := func(t workload.Task) bool { return t.HasAnswer }
		if c.Check == "" && !slices.ContainsFunc(s.tasks[:s.limit], judged) {
			return nil, fmt.Errorf("--tasks: no task of %s says which answer is right, and a sweep counts right answers; give answer, answers, regex or number, or judge with --check", c.Tasks)
		}
	}
	if err := s.points(); err != nil {
		return nil, err
	}
	cl, err := s.flags(&s.plan[0], nil).build(s.work(false))
	if err != nil {
		return nil, err
	}
	defer cl.runtime.Close(context.Background())
	s.shelf = cl.cast.shelf
	if s.about, err = s.describe(cl); err != nil {
		s.shelf.close()
	}
	return s, err
}

// flags are those of a run of one point. Points share the models of a shelf.
func (s *sweep) flags(p *sweepPoint, on *shelf) *clusterFlags {
	c := s.cmd
	f := &clusterFlags{
		castFlags: c.castFlags, clockFlags: c.clockFlags, poolFlags: c.poolFlags, loadFlags: c.loadFlags,
		recordFlags: recordFlags{NoRecord: true, SessionCap: "2GiB"},
		Concurrency: c.Concurrency, Batch: c.Batch, Resubmit: c.Resubmit, MaxActive: c.MaxActive,
	}
	f.Router, f.Param, f.shelf, f.unseen = p.file, p.flags(), on, true
	return f
}

func (s *sweep) work(again bool) work {
	w := work{limit: s.limit, again: again}
	if s.tasks != nil {
		w.source, w.file = workload.NewList(s.tasks), s.cmd.Tasks
	}
	return w
}

// open takes what the file has.
func (s *sweep) open() (err error) {
	var had []frontier.Run
	s.keep, had, err = openKept(s.cmd.Out, sweepKind, &s.about, func(*frontier.Run) bool { return true })
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	if s.keep.torn > 0 {
		fmt.Fprintf(os.Stderr, "tokenrouter: the last line of %s was cut short; its point is run again\n", s.cmd.Out)
	}
	for i := range had {
		s.runs[had[i].Key()] = had[i]
	}
	for i := range s.plan {
		if err := s.same(&s.plan[i]); err != nil {
			return errors.Join(fmt.Errorf("-o: %w; name another file", err), s.keep.close())
		}
	}
	return nil
}

// same refuses a point that was run with another router or head than there is now.
func (s *sweep) same(p *sweepPoint) error {
	r, ok := s.runs[p.key()]
	if !ok {
		return nil
	}
	if r.Router != p.router {
		return fmt.Errorf("%s has the point %q of the router %s, which is %s now", s.cmd.Out, p.key(), r.Router, p.router)
	}
	if len(r.Heads) == 0 {
		return nil
	}
	lib, err := s.cmd.library()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Heads)) {
		h, err := lib.Get(name)
		if err != nil {
			return err
		}
		if h.Hash() != r.Heads[name] {
			return fmt.Errorf("%s has the point %q by a head %s of the hash %.12s, which is %.12s now", s.cmd.Out, p.key(), name, r.Heads[name], h.Hash())
		}
	}
	for _, d := range p.byHead {
		if had, now := r.Params[d.Name], d.Settled(checkScorer{lib}).Default; had != now {
			return fmt.Errorf("%s has the point %q at a %s of %v, which the head %s puts at %v now", s.cmd.Out, p.key(), d.Name, had, d.Head, now)
		}
	}
	return nil
}

// run makes the points that are missing: first those that are asked for, then random
// at their shares.
func (s *sweep) run(ctx context.Context) error {
	if err := s.all(ctx, s.plan); err != nil || !s.baseRnd {
		return err
	}
	random, err := s.random()
	if err != nil {
		return err
	}
	s.plan = append(s.plan, random...)
	return s.all(ctx, random)
}

// missing are those of the points that were not run, in order.
func (s *sweep) missing(points []sweepPoint) (out []sweepPoint) {
	for i := range points {
		if _, ok := s.runs[points[i].key()]; !ok {
			out = append(out, points[i])
		}
	}
	return out
}

// jobs is how many points are run at a time.
func (s *sweep) jobs() int {
	switch {
	case !s.cmd.virtual():
		return 1
	case s.cmd.Jobs > 0:
		return s.cmd.Jobs
	case s.shelf.own(): // each would have KV pools of its own, and all threads compute for one
		return 1
	}
	return team.Machine()
}

// numbered is a point with its place among those that are run.
type numbered struct {
	sweepPoint
	at int
}

// all runs points that are missing. They are kept in their order whatever order they
// end in, so that a file that was interrupted and gone on with is the file of one go.
func (s *sweep) all(ctx context.Context, points []sweepPoint) error {
	todo := s.missing(points)
	if len(todo) == 0 {
		return nil
	}
	work := make([]numbered, len(todo))
	for i := range todo {
		work[i] = numbered{todo[i], i}
	}
	bar := newSweepBar(os.Stderr, len(todo), s.limit)
	defer bar.clear()
	ended := map[int]frontier.Run{}
	next, jobs := 0, min(s.jobs(), len(todo))
	err := inParallel(ctx, jobs, work, func(ctx context.Context, n numbered) (frontier.Run, error) {
		bar.begin(n.at, n.key())
		return s.one(ctx, &n.sweepPoint, jobs, func(done int) { bar.at(n.at, done) })
	}, func(n numbered, r frontier.Run) error {
		bar.ended(n.at)
		ended[n.at] = r
		for ; ; next++ {
			r, ok := ended[next]
			if !ok {
				return nil
			}
			if err := s.keep.append(&r); err != nil {
				return fmt.Errorf("-o: %w", err)
			}
			delete(ended, next)
			s.runs[r.Key()] = r
			s.made++
		}
	})
	if left := len(s.missing(points)); left > 0 && (errors.Is(err, errInterrupted) || err == nil) {
		return &exitError{exitInterrupted, fmt.Errorf("interrupted with %d of %d points to do; the same command goes on there", left, len(s.plan))}
	}
	return err
}

// one runs one point.
func (s *sweep) one(ctx context.Context, p *sweepPoint, jobs int, done func(int)) (frontier.Run, error) {
	var none frontier.Run
	shelf := *s.shelf
	if jobs > 1 { // each point has one core
		shelf.cores = team.New(1)
		defer shelf.cores.Close()
	}
	c, err := s.flags(p, &shelf).build(s.work(true))
	if err != nil {
		return none, fmt.Errorf("%s: %w", p.key(), err)
	}
	fold := frontier.NewFold(len(c.cast.models))
	d, err := c.drive(ctx, drive{each: fold.Add, show: func(w *watch, _ time.Duration) { done(w.done) }})
	if d.reason == "interrupted" {
		return none, errInterrupted
	}
	if err = cmp.Or(d.failure(fmt.Sprintf(" of %d", s.limit)), err); err != nil {
		return none, fmt.Errorf("%s: %w", p.key(), err)
	}
	if d.summary.Faults > 0 { // the table says so as well: these rows went the default way
		fmt.Fprintf(os.Stderr, "tokenrouter: %s:\n", p.key())
		d.seen.faults.print(os.Stderr)
	}
	r := frontier.Run{
		Series: p.series, Router: p.router, Knobs: p.knobs, Params: map[string]float64{},
		Summary: d.summary, Problems: fold.Outcomes(),
	}
	for _, k := range c.runtime.Knobs() {
		r.Params[k.Name] = k.Value
	}
	for _, h := range c.usedHeads() {
		if r.Heads == nil {
			r.Heads = map[string]string{}
		}
		r.Heads[h.Name] = h.Hash
	}
	return r, nil
}
