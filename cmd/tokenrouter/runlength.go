package main

import (
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
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/metrics"
	"tokenrouter/sessions/store"
)

// runlengthCmd measures for how many steps requests stay where they are, and what
// the plan makes of it.
type runlengthCmd struct {
	Session string `arg:"" optional:"" help:"A session: a folder, the name of one, the beginning of a name, or latest (default: the router runs on the models first, in virtual time)."`
	castFlags
	loadFlags
	Requests    int     `default:"300" placeholder:"M" help:"Requests that are run where no session is named (default: ${default})."`
	Concurrency string  `short:"n" default:"4,8" placeholder:"N,..." help:"Active requests that are planned for and run (default: ${default})."`
	Repeat      int     `default:"5" help:"Seeds: the requests come again in orders of their own (default: ${default})."`
	Seconds     float64 `default:"220" placeholder:"S" help:"Length of a run in virtual seconds, of which the first tenth is warm-up (default: ${default}). 0: only measure, plan nothing."`
	Profile     string  `default:"a100-r2r" help:"Cost profile: a built-in name, or a JSON file of one (default: ${default})."`
	Jobs        int     `default:"0" placeholder:"N" help:"Runs at a time; 0 = one for each CPU. What comes out does not depend on it."`
	Write       string  `placeholder:"FILE.lua" help:"Write a router that decides by chance with the measured run lengths, for --process of grid or --router."`
	Sessions    string  `placeholder:"DIR" help:"Where sessions are looked for (default: the user's state folder)."`
	JSON        bool    `help:"Print one JSON object."`
	ASCII       bool    `help:"Draw with ASCII characters only."`
	Theme       string  `default:"auto" enum:"auto,dark,light" help:"Colours for a dark (also auto) or a light background."`
	Palette     string  `default:"default" enum:"default,deuteranopia" help:"default, or deuteranopia: colours that are told apart without red and green."`
}

func (c *runlengthCmd) Run() error {
	ns, err := c.check()
	if err != nil {
		return usage(err)
	}
	ctx, stop := interruptible()
	defer stop()
	tmp, err := os.MkdirTemp("", "tokenrouter-runlength-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	path, err := c.path(ctx, tmp)
	if err != nil {
		return err
	}
	r, err := c.measure(path)
	if err != nil {
		return err
	}
	if c.Write != "" {
		if err := c.write(r); err != nil {
			return err
		}
	}
	if c.Seconds > 0 {
		if err := c.predict(ctx, r, path, tmp, ns); err != nil {
			return err
		}
	}
	p := planCmd{JSON: c.JSON, ASCII: c.ASCII, Theme: c.Theme, Palette: c.Palette}
	return p.print(os.Stdout, r, r.text)
}

// check reads the flags.
func (c *runlengthCmd) check() (ns []int, err error) {
	for text := range strings.SplitSeq(c.Concurrency, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > live.MaxConcurrency {
			return nil, fmt.Errorf("--concurrency %q: %q is not a number of requests from 1 to %d", c.Concurrency, text, live.MaxConcurrency)
		}
		ns = append(ns, n)
	}
	switch {
	case c.Requests < 1:
		return nil, fmt.Errorf("--requests %d is less than 1", c.Requests)
	case c.Repeat < 1 || c.Repeat > maxRepeat:
		return nil, fmt.Errorf("--repeat %d is outside 1 to %d", c.Repeat, maxRepeat)
	case !(c.Seconds >= 0 && c.Seconds <= maxSeconds):
		return nil, fmt.Errorf("--seconds %g is outside 0 to %d", c.Seconds, maxSeconds)
	case c.Jobs < 0 || c.Jobs > maxThreads:
		return nil, fmt.Errorf("--jobs %d is outside 0 to %d; 0 is one for each CPU", c.Jobs, maxThreads)
	case c.Write != "" && hasFolder(c.Write) != nil:
		return nil, fmt.Errorf("--write: %w", hasFolder(c.Write))
	case c.openLoop() != "":
		return nil, fmt.Errorf("--arrivals %s: a plan is of a number of active requests, which only the closed loop has; leave it out", c.Arrivals)
	case c.Session != "" && (c.Router != "" || c.Models != "" || c.named() || len(c.given()) > 0):
		return nil, errors.New("the session says which router and models; leave --router, --models and the like out, or the session")
	}
	return ns, nil
}

// path finds the session, or makes one in tmp.
func (c *runlengthCmd) path(ctx context.Context, tmp string) (string, error) {
	if c.Session != "" {
		return findSession(c.Sessions, c.Session)
	}
	const together = 4 // requests at a time: what a model says does not depend on it
	f := &clusterFlags{
		castFlags: c.castFlags, loadFlags: c.loadFlags, poolFlags: poolFlags{Seats: 32, KVOvercommit: 1},
		clockFlags:  clockFlags{Clock: live.ClockSim, Tokens: tokensModels, Profile: c.Profile},
		recordFlags: recordFlags{Sessions: tmp, SessionCap: "2GiB"}, Concurrency: together, Batch: "eager",
	}
	cl, err := f.build(work{limit: c.Requests})
	if err != nil {
		return "", err
	}
	bar := newProgress(os.Stderr, c.Requests, 0)
	begin := time.Now()
	d, err := cl.drive(ctx, drive{show: func(seen *watch, at time.Duration) { bar.show(seen, at, time.Since(begin), true) }})
	bar.clear()
	d.seen.tell()
	return cl.path(), errors.Join(d.failure(fmt.Sprintf(" of %d", c.Requests)), err)
}

// allRows is a half-life in rows that counts all rows of a session alike.
const allRows = 1e12

// measure folds the session.
func (c *runlengthCmd) measure(path string) (*runlengths, error) {
	s, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	m := &s.Manifest
	e := metrics.NewEstimator(len(m.Models), metrics.EstimatorOptions{HalfLife: allRows, Whole: true})
	r := &runlengths{manifest: m}
	for rec, err := range s.Records() {
		if err != nil {
			return nil, err
		}
		e.Add(&rec)
		if rec.Event != nil && rec.Event.Kind == event.Arrive {
			r.ids = append(r.ids, rec.Event.Req)
		}
	}
	r.est = e.Estimate()
	r.fill(path)
	for p := range m.Models {
		if err := r.subserver(event.Peer(p), e.Lengths(event.Peer(p))); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// jobs is how many runs are made at a time.
func (c *runlengthCmd) jobs() int {
	if c.Jobs > 0 {
		return c.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// routerOf puts the router of a session where a run finds it.
func routerOf(m *store.Manifest, tmp string) (string, error) {
	name := filepath.Base(m.Router.File)
	if !strings.HasSuffix(name, ".lua") {
		name += ".lua"
	}
	path := filepath.Join(tmp, name)
	return path, os.WriteFile(path, []byte(m.Router.Text), 0o600)
}

// write writes the routing process with the measured run lengths.
func (c *runlengthCmd) write(r *runlengths) error {
	if len(r.Subservers) != 2 {
		return fmt.Errorf("--write: a process is written for two models, this session has %d", len(r.Subservers))
	}
	if err := os.WriteFile(c.Write, []byte(r.process()), 0o644); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	return nil
}

// process is a router that sends a request on after its k-th step at a model with
// the measured share of k-th steps that were sent on.
func (r *runlengths) process() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Routes by chance, with the run lengths that %s had on %s:\n-- the share of k-th steps at a model, counted from a request's coming, after which it was sent on.\n\n", r.Router, strings.Join(r.Models, " + "))
	for _, s := range r.Subservers {
		shares := make([]string, len(s.hazards))
		for i, h := range s.hazards {
			shares[i] = strconv.FormatFloat(h, 'f', 5, 64)
		}
		fmt.Fprintf(&b, "local %s = { %s }\n", s.Role, strings.Join(shares, ", "))
	}
	// A step that sends to the large model commits nothing if the candidate is dropped.
	drop := ""
	if r.Committed[0][1] < 0.5 {
		drop = ", DROP"
	}
	fmt.Fprintf(&b, `
function route(r)
  local s = r.state
  if s.at ~= r.model then s.at, s.k = r.model, 0 end   -- it has just come
  s.k = s.k + 1
  local law = r.model == "small" and small or large
  if r.random(0) >= law[math.min(s.k, #law)] then return STAY end
  if r.model == "small" then return to("large")%s end
  return HOME
end
`, drop)
	return b.String()
}

// vectorFlag is a vector as --batch takes it.
func vectorFlag(b []int) string {
	if !slices.ContainsFunc(b, func(x int) bool { return x > 1 }) {
		return "eager"
	}
	return "fixed:" + numbers(b, ",")
}
