package live_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/runner/paced"
)

// computing is hosted on the paced clock, whose models take a time of their own.
func computing(t *testing.T, n int, takes func(core, step int) time.Duration) live.Config {
	cfg := hosted(t, n, event.Policy{Kind: event.Fixed, B: []int{1, 1}})
	own := flat(t, n, 0.3, event.Policy{}).Runners
	cfg.Emulated = false
	for i, r := range own {
		step := 0
		cfg.Runners[i] = paced.New(delayed{r, func() time.Duration {
			step++
			return takes(i, step)
		}}, cfg.Pacer, i)
	}
	return cfg
}

// Models that always compute for longer than the profile allows run at their own
// rhythm: nobody waits for what they were due to say.
func TestOverdueModelsKeepTheirOwnRhythm(t *testing.T) {
	const small, large = 7, 40 // ms, where the profile has 6 and 27.9
	for _, n := range []int{1, 2, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			slow := *profile(t, 2)
			slow.Rows[0].Base, slow.Rows[1].Base = small, large
			sim := flat(t, n, 0.3, event.Policy{Kind: event.Fixed, B: []int{1, 1}})
			sim.Profile, sim.Horizon = &slow, 20*time.Second
			_, want := runConfig(t, sim)
			cfg := computing(t, n, func(core, _ int) time.Duration {
				return []time.Duration{small, large}[core] * time.Millisecond
			})
			cfg.Horizon = sim.Horizon
			rt, got := runConfig(t, cfg)
			a, b := len(steps(got)), len(steps(want))
			if d := a - b; d*d > b*b/400 { // what happens at one time comes in any order, so batches differ
				t.Errorf("%d requests: %d steps, in the simulation %d", n, a, b)
			}
			if late := rt.Status().Late; late < int64(a)-2 {
				t.Errorf("%d of %d steps were late", late, a)
			}
		})
	}
}

// Models that compute for longer now and then hold nobody up by more than that.
func TestOverdueNowAndThen(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			takes := func(core, step int) time.Duration {
				u := rng.Key{Seed: 1, Pos: step, Model: core}.Float64(0)
				if u < 0.5 {
					return time.Millisecond
				}
				return []time.Duration{6, 28}[core]*time.Millisecond + time.Duration(20e6*(u-0.5))
			}
			cfg := computing(t, n, takes)
			cfg.Horizon = 20 * time.Second
			rt, recs := runConfig(t, cfg)
			all := steps(recs)
			longest, busy := int64(0), [2]int64{}
			last := all[0].end
			for _, s := range all { // by when they ended
				longest = max(longest, s.end-last)
				last = max(last, s.end)
				busy[s.core] += s.end - s.began
			}
			// The longest step of the large takes 38 ms.
			if longest > 38e6 {
				t.Errorf("%d requests: for %v no step ended", n, time.Duration(longest))
			}
			if rt.Status().Late < int64(len(all))/3 {
				t.Errorf("%d of %d steps were late", rt.Status().Late, len(all))
			}
			t.Logf("%d requests: %d steps, the longest pause %v, busy %v and %v", n, len(all), time.Duration(longest), time.Duration(busy[0]), time.Duration(busy[1]))
		})
	}
}
