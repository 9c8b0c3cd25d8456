package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/ladder"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/metrics"
)

// ablateCmd runs the baselines and the policies on one cluster, as rungs of a
// ladder.
type ablateCmd struct {
	castFlags

	Concurrency string   `short:"n" default:"1,2,4,8,16" placeholder:"N,..." help:"Requests that the closed loop keeps outstanding, one ladder for each (default: ${default})."`
	Rungs       string   `placeholder:"RUNG,..." help:"Rungs to run, of sequential, lockstep, resubmit, async, tokenrouter, lookahead (default: all)."`
	Repeat      int      `default:"5" help:"Seeds: every rung runs with each, from --seed on (default: ${default})."`
	SLO         float64  `name:"slo" default:"30" placeholder:"TOK/S" help:"Tokens/s that a user is to get at least: what each rung carries then; 0 leaves that out (default: ${default})."`
	Seconds     *float64 `placeholder:"S" help:"Length of a run in seconds of the clock's time, warm-up included (default: 70; 8 on the wall's clocks)."`
	WarmUp      *float64 `placeholder:"S" help:"Seconds from the first arrival on that the figures leave out (default: 10; 2 on the wall's clocks)."`
	Requests    *int     `placeholder:"M" help:"End a run after so many requests instead of after a time; the figures then have the end, where fewer are active, in them."`
	Keep        string   `placeholder:"FILE" help:"Write every run to a file when it is done; if the file has runs of this ladder already, they are not made again."`
	JSON        bool     `help:"Print one JSON object."`
	CSV         bool     `name:"csv" help:"Print a line for each run."`

	clockFlags
	poolFlags
	loadFlags
	Sessions string `placeholder:"DIR" help:"Where the session of --tokens is looked for (default: the user's state folder)."`
}

// Lengths of a run where none is given, in seconds. A run on the wall's clock
// takes its time, and a ladder has many.
const (
	ablateSeconds, ablateWarmUp   = 70, 10
	ablateWallSeconds, ablateWall = 8, 2
	maxRepeat                     = 1000
	defaultP                      = 0.35
)

// ablation is a ladder ready to be run.
type ablation struct {
	cmd    *ablateCmd
	grid   ladder.Grid
	limit  int
	length time.Duration // of a run, 0: until the requests are over
	warmUp time.Duration
	about  aboutJSON
	roles  []string
	cells  []ladder.Cell
	keep   *keeper
	notes  []string

	built bool          // a cluster was
	shelf *shelf        // of the models that all runs share
	drawn uint64        // answers that a recording does not have, in the runs of now
	made  int           // runs, now
	wall  time.Duration // that they took
}

func (a *ablateCmd) Run() error {
	b, err := a.prepare()
	if err != nil {
		return usage(err)
	}
	defer b.release()
	if b.keep, b.cells, err = openKeeper(a.Keep, &b.about, b.grid); err != nil {
		return usage(err)
	}
	ctx, stop := interruptible()
	defer stop()
	begin := time.Now()
	err = errors.Join(b.run(ctx, b.keep.add), b.keep.close())
	b.wall = time.Since(begin)
	if b.drawn > 0 {
		b.notes = append(b.notes, fmt.Sprintf("The session %s does not have %d of the answers that were asked for now: they were drawn from its others.", a.Tokens, b.drawn))
	}
	if len(b.cells) == 0 {
		return err
	}
	return errors.Join(b.print(os.Stdout), err)
}

// prepare reads the flags, and builds the first cluster to see that it stands.
func (a *ablateCmd) prepare() (*ablation, error) {
	b := &ablation{cmd: a}
	if err := errors.Join(b.axes(), b.window()); err != nil {
		return nil, err
	}
	a.settleRouting()
	c, err := b.build(b.grid.Order()[0])
	if err != nil {
		return nil, err
	}
	defer c.runtime.Close(context.Background())
	b.shelf = c.cast.shelf
	if c.flags.openLoop() != "" {
		return nil, fmt.Errorf("--arrivals %s: the rungs stand side by side at a number of outstanding requests, which only the closed loop has; leave it out", a.Arrivals)
	}
	for p := range c.cast.models {
		b.roles = append(b.roles, event.Role(event.Peer(p), len(c.cast.models)))
	}
	a.Tokens = c.flags.Tokens
	b.about = b.describe(c)
	b.notes = notesOf(c)
	return b, nil
}

// release gives the models back.
func (b *ablation) release() {
	if b.shelf != nil {
		b.shelf.close()
	}
}

// settleRouting lets drawn tokens be routed by chance where nobody says how. A
// recorded session has what r2r looks at.
func (a *ablateCmd) settleRouting() {
	drawn := a.Tokens == tokensDrawn || a.Tokens == "" && !a.named() && (a.virtual() || a.Clock == live.ClockEmulated)
	switch p := defaultP; {
	case !drawn || a.Router != "" || len(a.given()) > 0:
	case len(a.Param) > 0:
		a.Router = chance
	default:
		a.P = &p
	}
}

// axes reads what is crossed with what.
func (b *ablation) axes() error {
	a := b.cmd
	var err error
	if b.grid.Rungs, err = ladder.ParseRungs(a.Rungs); err != nil {
		return fmt.Errorf("--rungs: %w", err)
	}
	for text := range strings.SplitSeq(a.Concurrency, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > live.MaxConcurrency {
			return fmt.Errorf("--concurrency %q: %q is not a number of requests from 1 to %d", a.Concurrency, text, live.MaxConcurrency)
		}
		b.grid.Concurrency = append(b.grid.Concurrency, n)
	}
	if a.Repeat < 1 || a.Repeat > maxRepeat {
		return fmt.Errorf("--repeat %d is outside 1 to %d", a.Repeat, maxRepeat)
	}
	for i := range a.Repeat {
		b.grid.Seeds = append(b.grid.Seeds, a.Seed+uint64(i))
	}
	b.grid.Rotate = !a.virtual()
	if !(a.SLO >= 0 && a.SLO < 1e9) {
		return fmt.Errorf("--slo %g is no number of tokens/s", a.SLO)
	}
	if a.JSON && a.CSV {
		return errors.New("--json and --csv exclude each other")
	}
	return b.grid.Check()
}

// window says how long a run is and which part of it is measured.
func (b *ablation) window() error {
	a := b.cmd
	seconds, warmUp := float64(ablateSeconds), float64(ablateWarmUp)
	if !a.virtual() {
		seconds, warmUp = ablateWallSeconds, ablateWall
	}
	if a.Requests != nil {
		seconds, warmUp = 0, 0
		b.limit = *a.Requests
	}
	if a.Seconds != nil {
		seconds = *a.Seconds
	}
	if a.WarmUp != nil {
		warmUp = *a.WarmUp
	}
	switch {
	case a.Requests != nil && *a.Requests < 1:
		return fmt.Errorf("--requests %d is less than 1", *a.Requests)
	case !(seconds >= 0 && seconds <= maxSeconds) || seconds == 0 && a.Requests == nil:
		return fmt.Errorf("--seconds %g is outside 0 to %d", seconds, maxSeconds)
	case !(warmUp >= 0 && warmUp <= maxSeconds):
		return fmt.Errorf("--warm-up %g is outside 0 to %d seconds", warmUp, maxSeconds)
	case seconds > 0 && warmUp >= seconds:
		return fmt.Errorf("--warm-up %g leaves nothing of runs of %g seconds", warmUp, seconds)
	}
	b.length = time.Duration(seconds * float64(time.Second))
	b.warmUp = time.Duration(warmUp * float64(time.Second))
	return nil
}

// build is the cluster of one setting.
func (b *ablation) build(s ladder.Setting) (*cluster, error) {
	a := b.cmd
	f := &clusterFlags{
		castFlags: a.castFlags, clockFlags: a.clockFlags, poolFlags: a.poolFlags, loadFlags: a.loadFlags,
		recordFlags: recordFlags{NoRecord: true, Sessions: a.Sessions, SessionCap: "2GiB"},
		Concurrency: s.N, Batch: s.Rung.Policy, Resubmit: s.Rung.Resubmit, MaxActive: s.Rung.MaxActive,
	}
	f.Seed, f.shelf = s.Seed, b.shelf
	again := b.built
	b.built = true
	return f.build(work{limit: b.limit, horizon: b.length, again: again})
}

// errInterrupted ends a ladder that is not done.
var errInterrupted = errors.New("interrupted")

// run makes the runs that are missing, and shows each to done.
func (b *ablation) run(ctx context.Context, done func(*ladder.Cell) error) error {
	missing := b.grid.Missing(b.cells)
	bar := newLadderBar(os.Stderr, len(missing))
	defer bar.clear()
	if b.length > 0 && !b.cmd.virtual() && len(missing) > 0 {
		takes := b.length * time.Duration(len(missing))
		bar.say(fmt.Sprintf("%d runs of %v on the clock %s: about %v", len(missing), b.length, b.cmd.Clock, takes))
	}
	var err error
	b.cells, err = b.grid.Run(b.cells, func(s ladder.Setting) (metrics.Summary, error) {
		return b.one(ctx, s, bar)
	}, done)
	if errors.Is(err, errInterrupted) {
		all := len(b.grid.Order())
		return &exitError{exitInterrupted, fmt.Errorf("interrupted after %d of %d runs", all-len(b.grid.Missing(b.cells)), all)}
	}
	return err
}

// one makes one run.
func (b *ablation) one(ctx context.Context, s ladder.Setting, bar *ladderBar) (metrics.Summary, error) {
	bar.begin(s)
	if ctx.Err() != nil {
		return metrics.Summary{}, errInterrupted
	}
	c, err := b.build(s)
	if err != nil {
		return metrics.Summary{}, err
	}
	d, err := c.drive(ctx, drive{warmUp: b.warmUp, show: func(_ *watch, at time.Duration) { bar.show(at, b.length) }})
	if err != nil {
		b.shelf = nil // a step may still be reading weights
	}
	if d.reason == "interrupted" {
		return d.summary, errInterrupted
	}
	if err = errors.Join(d.failure(""), err); err != nil {
		return d.summary, err
	}
	if d.summary.TokensPerS == 0 {
		return d.summary, fmt.Errorf("no token was written between %v and %v; give more --seconds or less --warm-up", b.warmUp, d.session.Round(time.Millisecond))
	}
	b.made++
	b.drawn += d.drawn
	return d.summary, nil
}

// notesOf says what the figures of a cluster cannot show.
func notesOf(c *cluster) (notes []string) {
	var one, many cost.Batch
	one.Add(1, 100, false)
	many.Add(65, 36, false)
	charged := false
	for i := range c.profile.Rows {
		charged = charged || c.profile.Step(i, &many) > c.profile.Step(i, &one)
	}
	if c.flags.Clock != live.ClockLive && !charged {
		notes = append(notes, fmt.Sprintf("The cost profile %s takes no time for tokens that are fed: what resubmit feeds again costs nothing here, nor does a prompt.", c.profile.Name))
	}
	return notes
}
