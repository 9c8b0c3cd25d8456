package live_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
)

// hosted is what flat describes, on the wall clock of a synctest bubble at the
// rhythm of its profile.
func hosted(t *testing.T, n int, p event.Policy) live.Config {
	cfg := flat(t, n, 0.3, p)
	cfg.Virtual, cfg.Emulated = false, true
	cfg.Pacer = paced.NewPacer().TimersOnly()
	cfg.Pacer.SetProfile(cfg.Profile)
	for i, r := range cfg.Runners {
		cfg.Runners[i] = paced.New(r, cfg.Pacer, i)
	}
	return cfg
}

// lagging makes the decode loops late: by so long at every nth row that is routed.
// The router is random.lua for all that.
func lagging(t *testing.T, cfg *live.Config, by time.Duration, nth int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lagging.lua")
	err := os.WriteFile(path, []byte(`local share = param("share", { default = 0.2, min = 0, max = 1 })
function route(r)
  local _ = r.text
  if r.model ~= "small" then return HOME end
  if r.random(0) < share() then return to("large"), DROP end
  return STAY
end
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64 // every decode loop calls
	cfg.Router = path
	cfg.TokenText = func(event.Token) string {
		if n.Add(1)%int64(nth) == 0 {
			time.Sleep(by) // virtual: inside a synctest bubble
		}
		return " x"
	}
}

// step is a batch as the tape has it.
type step struct {
	core       event.Peer
	began, end int64
}

func steps(recs []tape.Record) (out []step) {
	running := map[event.Peer]int64{}
	for i := range recs {
		switch r := &recs[i]; {
		case r.Command != nil && r.Command.Kind == event.RunBatch:
			running[r.Core] = r.At
		case r.Event != nil && r.Event.Kind == event.StepDone && r.Event.Step.Err == "":
			out = append(out, step{r.Core, running[r.Core], r.At})
		}
	}
	return out
}

// A machine that is late here and there changes no step time, lets none pass
// between steps and mixes up no two facts: the emulated clock makes the steps of
// the simulation, at the same times.
func TestLateMachineKeepsTheRhythm(t *testing.T) {
	for _, tc := range []struct {
		n int
		b []int
	}{
		{1, []int{1, 1}}, {4, []int{1, 1}}, {4, []int{1, 3}}, {4, []int{2, 4}},
	} {
		t.Run(fmt.Sprintf("%d requests, B %v", tc.n, tc.b), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepsTheRhythm(t, tc.n, event.Policy{Kind: event.Fixed, B: tc.b}) })
		})
	}
}

func keepsTheRhythm(t *testing.T, n int, policy event.Policy) {
	const horizon = 5 * time.Second
	cfg, sim := hosted(t, n, policy), flat(t, n, 0.3, policy)
	cfg.Horizon, sim.Horizon = horizon, horizon
	lagging(t, &cfg, 5*time.Millisecond, 17)
	rt, recs := runFrom(t, cfg, func(rt *live.Runtime) {
		rt.SetPaused(true) // until all have arrived, as they do at once in the simulation
		rt.Start()
		synctest.Wait()
		rt.SetPaused(false)
	})
	if st := rt.Status(); st.Clock != live.ClockEmulated || st.Profile != "a100-r2r" || st.Late != 0 {
		t.Errorf("status %+v", st)
	}
	_, want := runConfig(t, sim)
	got, exact := steps(recs), steps(want)
	inTime := func(a, b step) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.core, b.core)) }
	slices.SortFunc(got, inTime)
	slices.SortFunc(exact, inTime)
	first := got[0].began // the dry run of the router was late already
	same := 0
	for i := range got {
		s := step{got[i].core, got[i].began - first, got[i].end - first}
		if s.end > int64(horizon-100*time.Millisecond) {
			break // the last ones may be cut
		}
		if i >= len(exact) || s != exact[i] {
			t.Fatalf("step %d is %+v, in the simulation %+v", i, s, exact[min(i, len(exact)-1)])
		}
		same++
	}
	if same < 300 {
		t.Fatalf("%d steps of %d", same, len(got))
	}
}

// A machine that is too slow for good is not made up for: its clock is the wall's,
// and it says so.
func TestSlowMachineSlips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := hosted(t, 1, event.Policy{Kind: event.Eager})
		cfg.Horizon = 20 * time.Second
		lagging(t, &cfg, 300*time.Millisecond, 1)
		rt, recs := runConfig(t, cfg)
		last := int64(0)
		for _, s := range steps(recs) {
			if s.began < last {
				t.Fatalf("a step begins at %d, the one before ended at %d", s.began, last)
			}
			last = s.end
		}
		if behind := int64(cfg.Horizon) - last; behind > int64(time.Second) || rt.Status().Late == 0 {
			t.Errorf("the last step ended %v before the end of the run; %d times late", time.Duration(behind), rt.Status().Late)
		}
	})
}

// On the live clock nothing is dated back: a fact stands at the time at which its
// core heard of it.
func TestLiveClockMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := hosted(t, 1, event.Policy{Kind: event.Eager})
		cfg.Emulated = false
		cfg.Pacer.SetProfile(nil)
		for i, r := range cfg.Runners {
			cfg.Runners[i] = delayed{r, func() time.Duration { return 10 * time.Millisecond }}
		}
		lagging(t, &cfg, 5*time.Millisecond, 1)
		cfg.Horizon = time.Second
		_, recs := runConfig(t, cfg)
		all := steps(recs)
		for i := range all[:len(all)-1] {
			if all[i].end-all[i].began != 15e6 {
				t.Fatalf("step %d is %+v", i, all[i])
			}
		}
		if n := len(all); n < 60 || n > 80 {
			t.Errorf("%d steps in a second, of 10 ms and 5 ms of routing", n)
		}
	})
}

// Steps stall as the profile has it, in the simulation and on the emulated clock
// the same ones, on a late machine too.
func TestStallsOfTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := *profile(t, 2)
		p.Rows[0].Stalls = &cost.Stalls{Share: 0.1, Ms: []float64{3, 5, 40}}
		p.Rows[1].OverheadStalls = &cost.Stalls{Share: 0.25, Ms: []float64{1}}
		policy := event.Policy{Kind: event.Fixed, B: []int{1, 1}}
		var runs [2][]tape.Record
		for i := range runs {
			cfg := flat(t, 1, 0.3, policy)
			if i == 1 {
				cfg = hosted(t, 1, policy)
				cfg.Pacer.SetProfile(&p)
				lagging(t, &cfg, 5*time.Millisecond, 17)
			}
			cfg.Profile, cfg.Horizon = &p, 5*time.Second
			_, runs[i] = runConfig(t, cfg)
		}
		sim, emulated := steps(runs[0]), steps(runs[1])
		took := map[time.Duration]int{}
		first := emulated[0].began - sim[0].began // the dry run of the router was late already
		for i := range min(len(sim), len(emulated)) - 1 {
			e := step{emulated[i].core, emulated[i].began - first, emulated[i].end - first}
			if e.end > int64(4900*time.Millisecond) {
				break // the last ones may be cut
			}
			if sim[i] != e {
				t.Fatalf("step %d is %+v, in the simulation %+v", i, e, sim[i])
			}
			took[time.Duration(e.end-e.began)]++
		}
		for _, us := range []int{6000, 9000, 11_000, 46_000, 27_900, 28_900} {
			if took[time.Duration(us)*time.Microsecond] == 0 {
				t.Errorf("no step took %d us: %v", us, took)
			}
		}
		if len(took) != 6 {
			t.Errorf("steps took %v", took)
		}
	})
}

// Messages are under way for as long as the profile says, and a step is over so
// long after its execution; sim and emulated agree about both.
func TestOverheadAndLatencyOfTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := *profile(t, 2)
		p.LatencyMs = 0.5
		p.Rows[0].Overhead, p.Rows[1].Overhead, p.Rows[1].OverheadPerRow = 0.25, 1, 0.125
		policy := event.Policy{Kind: event.Fixed, B: []int{1, 1}}
		var runs [2][]tape.Record
		for i := range runs {
			cfg := flat(t, 1, 0.3, policy)
			if i == 1 {
				cfg = hosted(t, 1, policy)
				cfg.Pacer.SetProfile(&p)
			}
			cfg.Profile, cfg.Horizon = &p, 3*time.Second
			_, runs[i] = runConfig(t, cfg)
		}
		sim, emulated := steps(runs[0]), steps(runs[1])
		if len(sim) < 100 {
			t.Fatalf("%d steps", len(sim))
		}
		for i := range min(len(sim), len(emulated)) - 1 {
			if sim[i] != emulated[i] {
				t.Fatalf("step %d is %+v, in the simulation %+v", i, emulated[i], sim[i])
			}
			want := int64(6.25e6)
			if sim[i].core == 1 {
				want = 27.9e6 + 1.125e6
			}
			if sim[i].end-sim[i].began != want {
				t.Fatalf("step %d is %+v", i, sim[i])
			}
		}
	})
}
