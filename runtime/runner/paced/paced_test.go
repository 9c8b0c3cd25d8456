package paced_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/paced"
)

// scripted takes a given time for each step and answers its rows.
type scripted struct {
	runner.Runner
	takes time.Duration
}

func (s *scripted) Run(_ context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	<-time.After(s.takes) // virtual: inside a synctest bubble
	for i := range b.Rows {
		out = append(out, event.Output{Token: event.Token(b.Rows[i].Req)})
	}
	return out, nil
}

func profile(t *testing.T) *cost.Profile {
	t.Helper()
	p, err := cost.Lookup("a100-r2r")
	if err == nil {
		p, err = p.For(2)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

var batch = &event.Batch{ID: 1, Rows: []event.Row{
	{Req: 4, Tokens: []event.Token{1}, Sample: true}, {Req: 9, Tokens: []event.Token{1}, Sample: true},
}}

// A step takes the profile's time, scaled by the speed, whatever it computes;
// one that computes for longer is late and counted.
func TestStepTimes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		model int
		speed float64
		live  bool
		takes time.Duration
		want  time.Duration
		late  int64
	}{
		{"small", 0, 1, false, time.Millisecond, 6 * time.Millisecond, 0},
		{"large", 1, 1, false, 5 * time.Millisecond, 27900 * time.Microsecond, 0},
		{"half speed", 0, 0.5, false, time.Millisecond, 12 * time.Millisecond, 0},
		{"late", 0, 1, false, 9 * time.Millisecond, 9 * time.Millisecond, 1},
		{"live", 1, 1, true, 2 * time.Millisecond, 2 * time.Millisecond, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pacer := paced.NewPacer().TimersOnly()
				pacer.SetSpeed(tc.speed)
				if !tc.live {
					pacer.SetProfile(profile(t))
				}
				r := paced.New(&scripted{takes: tc.takes}, pacer, tc.model)
				begin := time.Now()
				out, err := r.Run(t.Context(), batch, nil)
				if err != nil || len(out) != 2 || out[0].Token != 4 || out[1].Token != 9 {
					t.Errorf("outputs %v, %v; want the inner runner's", out, err)
				}
				if took := time.Since(begin); took != tc.want {
					t.Errorf("took %v, want %v", took, tc.want)
				}
				if pacer.Late() != tc.late {
					t.Errorf("%d late steps, want %d", pacer.Late(), tc.late)
				}
			})
		})
	}
}

// A cancelled context cuts the wait, not the computation.
func TestCancelCutsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := paced.NewPacer().TimersOnly()
		pacer.SetProfile(profile(t))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := paced.New(&scripted{takes: time.Millisecond}, pacer, 1).Run(ctx, batch, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 10*time.Millisecond {
			t.Errorf("%v after %v, want the context's error after 10ms", err, time.Since(begin))
		}
	})
}

// Hurry ends the wait under way and takes the rhythm from all later steps; what
// they yield stays.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := paced.NewPacer().TimersOnly()
		pacer.SetProfile(profile(t))
		r := paced.New(&scripted{takes: time.Millisecond}, pacer, 1)
		begin := time.Now()
		time.AfterFunc(10*time.Millisecond, pacer.Hurry)
		for _, want := range []time.Duration{10 * time.Millisecond, 11 * time.Millisecond} {
			out, err := r.Run(t.Context(), batch, nil)
			if err != nil || len(out) != 2 || time.Since(begin) != want {
				t.Errorf("%d outputs, %v after %v, want 2 after %v", len(out), err, time.Since(begin), want)
			}
		}
		pacer.Hurry()
	})
}

// The last of a step never ends before its time, and not where the end has
// passed already.
func TestNapEndsNoSooner(t *testing.T) {
	pacer := paced.NewPacer()
	pacer.SetProfile(profile(t))
	pacer.SetSpeed(4) // steps of 1.5 ms, all of them a nap
	r := paced.New(&scripted{}, pacer, 0)
	for range 20 {
		begin := time.Now()
		if _, err := r.Run(t.Context(), batch, nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 1500*time.Microsecond {
			t.Fatalf("a step of 1.5 ms took %v", took)
		}
	}
}
