package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// drive says how a cluster is run to its end without a screen.
type drive struct {
	warmUp time.Duration                   // of session time that the figures leave out
	each   func(*tape.Record)              // shown every record; may be nil
	show   func(w *watch, c time.Duration) // several times a second, with the session time; may be nil
}

// driven is what a cluster came to.
type driven struct {
	summary metrics.Summary
	seen    watch
	reason  string        // done, interrupted, crashed
	session time.Duration // session time: virtual on the clock sim
	wall    time.Duration
	late    int64
	drawn   uint64 // answers that a recording does not have
	crash   guard.Crash
}

// factor is by how much session time went faster than the wall's.
func (d *driven) factor() float64 { return d.session.Seconds() / max(d.wall.Seconds(), 1e-9) }

// lookEvery is how often the progress of a run is shown.
const lookEvery = 200 * time.Millisecond

// drive starts a cluster, takes its tape until it is done or ctx ends, and
// closes it. The error is that of closing; what a run came to is told in any
// case.
func (c *cluster) drive(ctx context.Context, o drive) (*driven, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c.guard.AddHook(func(crash guard.Crash) { fail(crash) })
	sub := c.runtime.Tape().Subscribe()
	fold := metrics.NewRun(len(c.cast.models))
	fold.Measure(metrics.Span{From: o.warmUp})
	d := &driven{reason: "done"}
	if c.flags.openLoop() == "" {
		d.seen.concurrency = c.flags.Concurrency
	}
	if c.flags.Clock != live.ClockLive {
		d.seen.profile = &c.profile
	}
	var recs []tape.Record
	take := func() {
		for {
			if recs = sub.Next(recs[:0], 4096); len(recs) == 0 {
				return
			}
			for i := range recs {
				fold.Add(&recs[i])
				if o.each != nil {
					o.each(&recs[i])
				}
				d.seen.add(&recs[i])
			}
			clear(recs)
		}
	}
	begin := time.Now()
	c.runtime.Start()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
wait:
	for {
		select {
		case <-c.runtime.Done():
			break wait
		case <-ctx.Done():
			d.reason = "interrupted"
			break wait
		case <-sub.Ready():
			take()
		case <-tick.C:
			if o.show != nil {
				o.show(&d.seen, time.Duration(c.runtime.Now()))
			}
		}
	}
	if crash, crashed := c.guard.First(); crashed {
		d.reason, d.crash = "crashed", crash
	}
	d.session, d.wall = time.Duration(c.runtime.Now()), time.Since(begin)
	within := c.timeout()
	if c.flags.virtual() {
		within = drainTimeout
	}
	ended := make(chan error, 1)
	c.guard.Go("close", nil, func() { ended <- c.closeWithin(context.Background(), within, d.reason) })
	var err error
	for closing := true; closing; {
		select {
		case err = <-ended:
			closing = false
		case <-sub.Ready():
			take()
		}
	}
	take()
	sub.Close()
	d.summary = fold.Summary(c.runtime.Now())
	d.late = c.runtime.Status().Late
	if c.cast.said != nil {
		d.drawn = c.cast.said.Missing()
	}
	return d, err
}

// interruptible is a context that ends with the first signal to end.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), endSignals()...)
}

// failure is how a run that came to d ends: nil where it is done and no request
// failed. of says of how many requests it was, "" for an unknown number.
func (d *driven) failure(of string) error {
	switch w := &d.seen; {
	case d.reason == "crashed":
		return crashError(d.crash)
	case d.reason == "interrupted":
		return &exitError{exitInterrupted, fmt.Errorf("interrupted after %d%s requests; the rest were ended as aborted", w.done, of)}
	case w.failed > 0:
		return fmt.Errorf("%d%s requests ended with an error, the first: %s", w.failed, of, w.failure)
	}
	return nil
}

// watch keeps what the progress bar and the exit code need.
type watch struct {
	done, right, checked, failed, tokens int
	batches, outside                     int           // of these, how many leave the validity box of the profile
	profile                              *cost.Profile // nil where steps take what they take
	failure                              string
	messages                             []string
	concurrency                          int
	plan                                 *tape.Plan // the newest for that many active; 0: for any number
	faults                               faults
}

func (w *watch) add(rec *tape.Record) {
	if cmd := rec.Command; rec.Kind == tape.KindCommand {
		switch {
		case cmd.Kind == event.Emit:
			w.tokens++
		case cmd.Kind == event.RunBatch && w.profile != nil && cmd.Batch != nil:
			w.batches++
			if b := cost.Of(cmd.Batch); w.profile.Outside(int(rec.Core), &b) {
				w.outside++
			}
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
		if w.concurrency == 0 || h.N == w.concurrency {
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

// tell says on standard error what a run had to say.
func (w *watch) tell() {
	for _, m := range w.messages {
		fmt.Fprintln(os.Stderr, "tokenrouter:", m)
	}
	w.faults.print(os.Stderr)
}
