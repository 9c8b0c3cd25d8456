package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

// runCmd runs requests without a terminal.
type runCmd struct {
	clusterFlags
	Clock    string `default:"live" enum:"live,paced" help:"live (as fast as the machine can) or paced (at the rhythm of --profile)."`
	Requests int    `default:"100" help:"Generated problems to run."`
	Tasks    string `placeholder:"FILE.jsonl" help:"Run the tasks of a file, {id, question, answer?} a line, instead of generated problems; - is standard input."`
	JSON     bool   `help:"Print the summary as one JSON object."`
}

func (r *runCmd) Run() error {
	w := work{limit: r.Requests, name: "problems", clock: r.Clock}
	if r.Requests < 1 {
		return usage(fmt.Errorf("--requests %d is less than 1", r.Requests))
	}
	var err error
	if r.Tasks == "" {
		w.source, err = r.problems()
	} else {
		var tasks []workload.Task
		if tasks, err = readTasks(r.Tasks); err == nil {
			w.source, w.limit, w.name, w.file = workload.NewList(tasks), len(tasks), "tasks", r.Tasks
		}
	}
	if err != nil {
		return usage(err)
	}
	c, err := r.build(w)
	if err != nil {
		return err
	}
	return r.execute(c, w.limit)
}

// execute runs the cluster to its end, or to an interrupt, and prints the
// summary of what was done.
func (r *runCmd) execute(c *cluster, total int) error {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c.guard.AddHook(func(crash guard.Crash) { fail(crash) })
	sub := c.runtime.Tape().Subscribe()
	fold := metrics.NewRun(len(c.models))
	seen := watch{concurrency: r.Concurrency}
	take := func() {
		for _, rec := range sub.Next(nil, 0) {
			fold.Add(&rec)
			seen.add(&rec)
		}
	}
	bar := newProgress(os.Stderr, total)
	begin := time.Now()
	c.runtime.Start()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	interrupted := false
wait:
	for {
		select {
		case <-c.runtime.Done():
			break wait
		case <-ctx.Done():
			interrupted = true
			break wait
		case <-tick.C:
			take()
			s := time.Since(begin)
			bar.show(seen.done, seen.right, seen.checked, float64(seen.tokens)/s.Seconds(), s)
		}
	}
	reason := "done"
	if interrupted {
		reason = "interrupted"
	}
	crash, crashed := c.guard.First()
	if crashed {
		reason = "crashed"
	}
	closeErr := c.close(context.Background(), reason)
	take()
	sub.Close()
	bar.clear()
	out := r.report(c, fold.Summary(c.runtime.Now()), seen.plan)
	closeErr = errors.Join(closeErr, out.print(os.Stdout, r.JSON))
	for _, m := range seen.messages {
		fmt.Fprintln(os.Stderr, "tokenrouter:", m)
	}
	seen.faults.print(os.Stderr)
	switch {
	case crashed:
		return crashError(crash)
	case interrupted:
		return errors.Join(&exitError{exitInterrupted, fmt.Errorf("interrupted after %d of %d requests; the rest were ended as aborted", seen.done, total)}, closeErr)
	case seen.failed > 0:
		return errors.Join(closeErr, fmt.Errorf("%d of %d requests ended with an error, the first: %s", seen.failed, total, seen.failure))
	}
	return closeErr
}

// watch keeps what the progress bar and the exit code need.
type watch struct {
	done, right, checked, failed, tokens int
	failure                              string
	messages                             []string
	concurrency                          int
	plan                                 *tape.Plan // the newest for that many active
	faults                               faults
}

func (w *watch) add(rec *tape.Record) {
	if cmd := rec.Command; rec.Kind == tape.KindCommand {
		switch {
		case cmd.Kind == event.Emit:
			w.tokens++
		case cmd.Kind == event.Note && cmd.Note == event.NoteFault:
			w.faults.add(cmd.Text)
		}
	}
	switch h := rec.Host.(type) {
	case *tape.Result:
		switch h.Reason {
		case event.ReasonAborted.String():
			return
		case event.ReasonError.String():
			if w.failed == 0 {
				w.failure = fmt.Sprintf("task %s: %s", h.Task, h.Text)
			}
			w.failed++
		}
		w.done++
		if h.Checked {
			w.checked++
		}
		if h.Correct {
			w.right++
		}
	case *tape.Plan:
		if h.N == w.concurrency {
			w.plan = h
		}
	case *tape.Message:
		switch h.Level {
		case tape.Print:
			fmt.Fprintln(os.Stderr, h.Text)
		case tape.Warn, tape.Error:
			w.messages = append(w.messages, h.Text)
		}
	}
}

func (r *runCmd) report(c *cluster, s metrics.Summary, p *tape.Plan) *report {
	st := c.runtime.Status()
	params := map[string]float64{}
	for _, k := range c.runtime.Knobs() {
		params[k.Name] = k.Value
	}
	out := reportJSON{
		Concurrency: st.Concurrency, Seed: r.Seed, Router: routerLabel(st.RouterFile, st.RouterHash), Params: params,
		Models: modelList(c.models), Session: c.path(), Clock: live.ClockText(st.Clock, st.Profile),
		Batch: st.Policy.Form(), Greedy: r.sampling().Temperature == 0,
		Temperature: float64(r.sampling().Temperature), TopK: r.TopK, TopP: r.TopP,
		MaxTokens: r.MaxTokens, Workload: r.workload(),
	}
	out.fill(&s)
	out.takePlan(p)
	return &report{summary: s, models: joinModels(c.models), late: st.Late, out: out}
}

// workload says where the requests came from, as flags name it.
func (r *runCmd) workload() string {
	if r.Tasks != "" {
		return r.Tasks
	}
	return r.Workload
}
