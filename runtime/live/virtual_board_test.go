package live_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

// watched is a simulation at the pace of a wall clock, which is that of a
// synctest bubble.
type watched struct {
	*testing.T
	rt   *live.Runtime
	sub  *tape.Sub
	recs []tape.Record
}

func watch(t *testing.T, speed float64, change func(*live.Config)) *watched {
	t.Helper()
	cfg := flat(t, 4, 0.3, event.Policy{Kind: event.Eager})
	cfg.Pacer = paced.NewPacer()
	cfg.Pacer.SetSpeed(speed)
	if change != nil {
		change(&cfg)
	}
	rt, err := live.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{T: t, rt: rt, sub: cfg.Tape.Subscribe()}
	rt.Start()
	return w
}

// after lets so much time pass on the wall and gives what came meanwhile.
func (w *watched) after(d time.Duration) []tape.Record {
	time.Sleep(d)
	synctest.Wait()
	n := len(w.recs)
	w.recs = w.sub.Next(w.recs, 0)
	return w.recs[n:]
}

// is fails unless the session's time is as said, or a frame before it.
func (w *watched) is(want time.Duration, what string) {
	w.Helper()
	if now := time.Duration(w.rt.Now()); now > want || now < want-200*time.Millisecond {
		w.Errorf("%s it is %v, want %v", what, now, want)
	}
}

func count(recs []tape.Record, ok func(*tape.Record) bool) (n int) {
	for i := range recs {
		if ok(&recs[i]) {
			n++
		}
	}
	return n
}

// A simulation is watched at any speed, stands still while it is paused, and
// ends in order at any time.
func TestVirtualPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 2, nil)
		busy := w.after(time.Second)
		w.is(2*time.Second, "after a second at speed 2")
		w.rt.SetPaused(true)
		w.after(time.Millisecond)
		stood := w.rt.Now()
		if recs := w.after(time.Hour); len(recs) > 0 || w.rt.Now() != stood {
			t.Errorf("%d records while paused, from %d to %d", len(recs), stood, w.rt.Now())
		}
		w.rt.SetPaused(false)
		if err := w.rt.SetSpeed(0.25); err != nil {
			t.Fatal(err)
		}
		slow := w.after(4 * time.Second)
		w.is(3*time.Second, "after four more seconds at speed 0.25")
		many, few := count(busy, isCommand(event.Emit)), count(slow, isCommand(event.Emit))
		if many < 280 || many > 420 || few < 140 || few > 210 {
			t.Errorf("%d and %d tokens in 2 and 1 seconds", many, few)
		}
		if err := w.rt.SetSpeed(64); err != nil {
			t.Fatal(err)
		}
		w.after(time.Second)
		w.is(67*time.Second, "after a second at speed 64")
		closeRuntime(t, w.rt)
		checkTape(t, setup{models: loopModels, kvTokens: 4 << 13}, w.all())
	})
}

func (w *watched) all() []tape.Record {
	w.recs = w.sub.Next(w.recs, 0)
	return w.recs
}

// Where the machine is too slow the virtual time falls behind the wall's; it does
// not hurry after it later.
func TestVirtualTimeSlips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := 0
		w := watch(t, 1, func(c *live.Config) {
			c.Runners[0] = delayed{c.Runners[0], func() time.Duration {
				if steps++; steps <= 10 {
					return time.Minute
				}
				return 0
			}}
		})
		w.after(10*time.Minute + time.Second)
		w.is(1100*time.Millisecond, "after ten steps of a minute and a second")
		w.after(time.Second)
		w.is(2100*time.Millisecond, "and another one")
		closeRuntime(t, w.rt)
	})
}

type delayed struct {
	runner.Runner
	by func() time.Duration
}

func (d delayed) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	time.Sleep(d.by()) // virtual: inside a synctest bubble
	return d.Runner.Run(ctx, b, out)
}

// What a person changes takes effect at the present virtual time.
func TestVirtualControls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 1, nil)
		w.after(time.Second)
		first := w.rt.Status()
		if first.Clock != live.ClockSim || first.Profile != "a100-r2r" || first.Speed != 1 {
			t.Errorf("status %+v", first)
		}
		for _, err := range []error{
			w.rt.SetKnob("share", 1), w.rt.SetPolicy("fixed:1,3"), w.rt.SetB(event.Front, 2), w.rt.SetConcurrency(7),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		w.rt.Cancel(2)
		w.rt.Cancel(99)
		recs := w.after(2 * time.Second)
		aborted := count(recs, func(r *tape.Record) bool {
			h, ok := r.Host.(*tape.Result)
			return ok && h.Req == 2 && h.Reason == "aborted"
		})
		started := count(recs, func(r *tape.Record) bool { _, ok := r.Host.(*tape.Request); return ok })
		if aborted != 1 || started != 4 {
			t.Errorf("%d ends of the cancelled request, %d were started; want 1 and 4", aborted, started)
		}
		full := count(recs, func(r *tape.Record) bool {
			return r.Command != nil && r.Command.Kind == event.RunBatch && r.Core == 1 && r.Command.Batch.Rule == event.RuleB && r.Command.Batch.B == 3
		})
		if full == 0 {
			t.Error("no batch of the large model waited for 3")
		}
		// With share 1 every token is the large model's.
		w.after(time.Second)
		if small := count(w.after(time.Second), func(r *tape.Record) bool { return isCommand(event.Emit)(r) && r.Core == 0 }); small > 0 {
			t.Errorf("the small model wrote %d tokens", small)
		}
		if err := w.rt.SetRouter("small_only"); err != nil {
			t.Fatal(err)
		}
		recs = w.after(time.Second)
		now := w.rt.Status()
		if now.RouterHash == first.RouterHash || count(recs, func(r *tape.Record) bool { return decidedBy(r, now.RouterHash) }) == 0 {
			t.Errorf("the router %s decided nothing", now.RouterFile)
		}
		swapped, came := 0, 0
		for i := range recs {
			if h, ok := recs[i].Host.(*tape.Router); ok {
				switch h.Phase {
				case tape.RouterSwapped:
					swapped++
				case tape.RouterLive:
					came = swapped
				}
			}
		}
		if came != 2 {
			t.Errorf("the router was live when %d subservers had swapped", came)
		}
		closeRuntime(t, w.rt)
		checkTape(t, setup{models: loopModels, kvTokens: 4 << 13}, w.all())
	})
}

// Time that stands still, in a pause or behind the last request, keeps nobody from
// hearing what a person does: on the wall clock neither.
func TestStandstillIsNotDeaf(t *testing.T) {
	for name, config := range map[string]func(*testing.T) live.Config{
		"sim": func(t *testing.T) live.Config {
			cfg := flat(t, 2, 0.3, event.Policy{Kind: event.Eager})
			cfg.Pacer = paced.NewPacer()
			return cfg
		},
		"emulated": func(t *testing.T) live.Config { return hosted(t, 2, event.Policy{Kind: event.Eager}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config(t)
				cfg.Limit = 2
				rt, err := live.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				w := &watched{T: t, rt: rt, sub: cfg.Tape.Subscribe()}
				told := func() int {
					if err := rt.SetPolicy("fixed:1,2"); err != nil {
						t.Error(err)
					}
					return count(w.after(time.Second), func(r *tape.Record) bool { return r.Event != nil && r.Event.Kind == event.SetPolicy })
				}
				rt.Start()
				w.after(time.Second)
				rt.SetPaused(true)
				w.after(time.Second)
				rt.Cancel(1)
				ended := count(w.after(time.Second), func(r *tape.Record) bool { _, ok := r.Host.(*tape.Result); return ok })
				if n := told(); ended != 1 || n != 2 {
					t.Errorf("while paused %d requests ended and %d cores heard of a policy, want 1 and 2", ended, n)
				}
				rt.SetPaused(false)
				rt.Cancel(2)
				<-rt.Done()
				w.after(time.Second)
				if n := told(); n != 2 {
					t.Errorf("at the end %d cores heard of a policy, want 2", n)
				}
				closeRuntime(t, rt)
				checkTape(t, setup{models: loopModels, kvTokens: 2 << 13}, w.all())
			})
		})
	}
}

// TestVirtualRefuses: the clock of a run in virtual time is its own.
func TestVirtualRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, 1, nil)
		for _, tc := range []struct {
			err  error
			want string
		}{
			{w.rt.SetClock("live"), "this run is a simulation in virtual time"},
			{w.rt.SetClock("emulated"), "the clock emulated is chosen when a run begins"},
			{w.rt.SetSpeed(-1), "speed -1 is outside 1/64 to 1000000"},
			{w.rt.SetSpeed(1e7), "speed 1e+07 is outside 1/64 to 1000000"},
		} {
			if tc.err == nil || !strings.HasPrefix(tc.err.Error(), tc.want) {
				t.Errorf("%v, want %s", tc.err, tc.want)
			}
		}
		if err := w.rt.SetClock("sim"); err != nil {
			t.Error(err)
		}
		closeRuntime(t, w.rt)
	})
}

// Close ends a simulation in order whatever it is doing.
func TestVirtualCloseAtOddTimes(t *testing.T) {
	for name, begin := range map[string]func(w *watched){
		"at once": func(*watched) {},
		"paused from the start": func(w *watched) {
			w.rt.SetPaused(true)
			w.after(time.Second)
		},
		"within a step":   func(w *watched) { w.after(3 * time.Millisecond) },
		"while paused":    func(w *watched) { w.after(time.Second); w.rt.SetPaused(true); w.after(time.Second) },
		"slow":            func(w *watched) { _ = w.rt.SetSpeed(1.0 / 64); w.after(time.Second) },
		"before a change": func(w *watched) { w.after(time.Second); _ = w.rt.SetPolicy("fixed:2,4") },
		"after its limit": func(w *watched) { _ = w.rt.SetSpeed(0); <-w.rt.Done() },
		"after cancels":   func(w *watched) { w.after(time.Second); w.rt.Cancel(1); w.rt.Cancel(2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, 1, func(c *live.Config) { c.Limit = 4 })
				begin(w)
				closeRuntime(t, w.rt)
				closeRuntime(t, w.rt)
				if err := w.rt.SetRouter("me"); err == nil || !strings.Contains(err.Error(), "the run has ended") {
					t.Errorf("a router after the end: %v", err)
				}
				checkTape(t, setup{models: loopModels, kvTokens: 4 << 13}, w.all())
			})
		})
	}
}

// In the open loop requests arrive at the moments that the process names, not one
// later.
func TestVirtualArrivals(t *testing.T) {
	arrivals := func() workload.Arrivals {
		a, err := workload.ParseArrivals("poisson:20", 3)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	cfg := flat(t, 32, 0.1, event.Policy{Kind: event.Eager})
	cfg.Arrivals, cfg.MaxTokens, cfg.Horizon = arrivals(), 8, 10*time.Second
	rt, recs := runConfig(t, cfg)
	want := arrivals()
	n := 0
	for i := range recs {
		if ev := recs[i].Event; ev != nil && ev.Kind == event.Arrive {
			n++
			if at, _ := want.Next(); recs[i].At != int64(at) {
				t.Fatalf("request %d arrives at %d, want %d", ev.Req, recs[i].At, at)
			}
		}
	}
	if n < 150 || n > 250 {
		t.Errorf("%d arrivals in 10 seconds at 20 a second", n)
	}
	if next, _ := want.Next(); next <= cfg.Horizon {
		t.Errorf("an arrival at %v is missing", next)
	}
	if err := rt.SetConcurrency(3); err == nil || !strings.Contains(err.Error(), "poisson:20") {
		t.Errorf("a number of requests in the open loop: %v", err)
	}
}
