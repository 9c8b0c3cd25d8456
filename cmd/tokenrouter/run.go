package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"tokenrouter/runtime/live"
	"tokenrouter/runtime/workload"
)

// runCmd runs requests without a terminal.
type runCmd struct {
	clusterFlags
	Requests *int    `placeholder:"M" help:"Requests to run (default: 100; with --seconds, of a trace or of a recorded session as many as come)."`
	Seconds  float64 `placeholder:"S" help:"Ends after so many seconds of the clock's time, virtual ones for sim; what is open then is cut (default: 600 for sim without --requests, a trace or a recorded session, else never)."`
	WarmUp   float64 `placeholder:"S" help:"Seconds from the first arrival on that the figures leave out."`
	Tasks    string  `placeholder:"FILE.jsonl" help:"Run the tasks of a file, {id, question, answer?} a line, instead of a workload; - is standard input."`
	JSON     bool    `help:"Print the summary as one JSON object."`
}

// simCmd does the same in virtual time.
type simCmd struct {
	runCmd `embed:""`
}

func (s *simCmd) Run() error {
	if s.Clock != live.ClockSim {
		return usage(fmt.Errorf("sim runs in virtual time; for --clock %s there is tokenrouter run", s.Clock))
	}
	if s.Seconds == 0 && s.Requests == nil && !s.ends() {
		s.Seconds = simSeconds
	}
	return s.runCmd.Run()
}

// simSeconds is how long a simulation is that nothing else ends.
const simSeconds = 600

// maxSeconds bounds a run: a year.
const maxSeconds = 365 * 24 * 3600

func (r *runCmd) Run() error {
	w, err := r.todo()
	if err != nil {
		return usage(err)
	}
	c, err := r.build(w)
	if err != nil {
		return err
	}
	return r.execute(c, w)
}

// todo is what the flags ask to be run.
func (r *runCmd) todo() (w work, err error) {
	switch {
	case !(r.Seconds >= 0 && r.Seconds <= maxSeconds):
		return w, fmt.Errorf("--seconds %g is outside 0 to %d", r.Seconds, maxSeconds)
	case !(r.WarmUp >= 0 && r.WarmUp <= maxSeconds):
		return w, fmt.Errorf("--warm-up %g is outside 0 to %d seconds", r.WarmUp, maxSeconds)
	case r.Seconds > 0 && r.WarmUp >= r.Seconds:
		return w, fmt.Errorf("--warm-up %g leaves nothing of --seconds %g", r.WarmUp, r.Seconds)
	case r.Requests != nil && *r.Requests < 1:
		return w, fmt.Errorf("--requests %d is less than 1", *r.Requests)
	case r.Requests != nil:
		w.limit = *r.Requests
	case r.Seconds == 0 && !r.ends():
		w.limit = 100
	}
	w.horizon = time.Duration(r.Seconds * float64(time.Second))
	if r.Tasks == "" {
		return w, nil
	}
	if err := r.settle(); err != nil {
		return w, err
	}
	if !r.modelled() {
		return w, fmt.Errorf("--tasks are questions, which --tokens %s cannot read; leave them out, or give --tokens models", r.Tokens)
	}
	tasks, err := readTasks(r.Tasks)
	if err != nil {
		return w, err
	}
	w.source, w.limit, w.file = workload.NewList(tasks), len(tasks), r.Tasks
	return w, nil
}

// ends tells whether there are only so many requests: a trace and a recorded
// session are run to their end unless a flag says otherwise.
func (r *runCmd) ends() bool {
	return strings.HasPrefix(r.Arrivals, "trace:") || r.Tokens != "" && r.recording()
}

// execute runs the cluster to its end, or to an interrupt, and prints the
// summary of what was done.
func (r *runCmd) execute(c *cluster, w work) error {
	ctx, stop := interruptible()
	defer stop()
	bar := newProgress(os.Stderr, w.limit, w.horizon)
	begin := time.Now()
	d, err := c.drive(ctx, drive{
		warmUp: time.Duration(r.WarmUp * float64(time.Second)),
		show:   func(seen *watch, at time.Duration) { bar.show(seen, at, time.Since(begin), r.virtual()) },
	})
	bar.clear()
	out := r.report(c, d)
	err = errors.Join(err, out.print(os.Stdout, r.JSON))
	d.seen.tell()
	of := ""
	if w.limit > 0 {
		of = fmt.Sprintf(" of %d", w.limit)
	}
	return errors.Join(d.failure(of), err)
}

func (r *runCmd) report(c *cluster, d *driven) *report {
	st := c.runtime.Status()
	params := map[string]float64{}
	for _, k := range c.runtime.Knobs() {
		params[k.Name] = k.Value
	}
	out := reportJSON{
		Concurrency: st.Concurrency, Seed: r.Seed, Router: routerLabel(st.RouterFile, st.RouterHash), Params: params,
		Models: c.names(), Session: c.path(), Clock: live.ClockText(st.Clock, st.Profile),
		Batch: st.Policy.Form(), Greedy: r.sampling().Temperature == 0,
		Temperature: float64(r.sampling().Temperature), TopK: r.TopK, TopP: r.TopP,
		MaxTokens: r.maxNew, Workload: cmp.Or(r.Tasks, r.Workload),
	}
	out.ranJSON = ranJSON{
		TokensFrom: r.Tokens, Arrivals: r.Arrivals, WarmUpS: r.WarmUp, Achieved: c.runtime.Offered().Achieved,
		Stalls: r.Clock != live.ClockLive && c.profile.Stalling(), Jitter: r.Jitter, Late: d.late, Outside: d.seen.outside,
		SessionS: d.session.Seconds(), WallS: d.wall.Seconds(), Factor: d.factor(), Unrecorded: d.drawn,
	}
	out.computed(c)
	if d.drawn > 0 {
		d.summary.Correct, d.summary.Total, d.summary.Families = 0, 0, nil // an answer that was drawn is neither right nor wrong
	}
	out.fill(&d.summary)
	if r.openLoop() == "" { // else a plan is of the moment in which it was made
		out.takePlan(d.seen.plan)
	}
	return &report{summary: d.summary, models: c.roles(), late: d.late, batches: d.seen.batches, virtual: r.virtual(), out: out}
}
