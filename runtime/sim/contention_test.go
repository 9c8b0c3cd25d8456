package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
)

// stays is a source under which every request that samples at a model goes where
// the list of its id says, step by step, and then stays where it is.
type stays map[event.ReqID][]event.Peer

func (s stays) Answer(_ int64, p event.Peer, core *sched.Core, b *event.Batch, step *event.StepResult) {
	for i := range b.Rows {
		row := &b.Rows[i]
		v, _ := core.View(row.Req)
		step.Rows[i].Dest = p
		if k := row.Start + len(row.Tokens) - v.PromptLen; k < len(s[row.Req]) {
			step.Rows[i].Dest = s[row.Req][k]
		}
	}
}

// ends runs eager models of those times for so long and returns the ends of the
// steps as "model@time/execution" in ms.
func ends(t *testing.T, until int64, base []float64, src sim.Source, requests int, change func(*sim.Config, *sim.Sim)) []string {
	t.Helper()
	var step []plan.Latency
	seats := make([]int, len(base))
	for m, ms := range base {
		step = append(step, plan.Latency{Base: ms})
		seats[m] = 8
	}
	var out []string
	cfg := sim.Config{Cluster: sim.Roomy(8, seats...), Source: src, Step: sim.Affine(step), Clients: requests, Until: until}
	cfg.Tap = func(core event.Peer, ev *event.Event, _ []event.Command) {
		if ev.Kind == event.StepDone {
			out = append(out, fmt.Sprintf("%d@%g/%g", core, float64(ev.At)/1e6, float64(ev.Step.ExecNs)/1e6))
		}
	}
	change(&cfg, nil)
	s := begin(t, cfg)
	change(&cfg, s)
	r := s.Run()
	for m, c := range r.Cores {
		if c.Busy > 1+1e-9 {
			t.Errorf("model %d is busy for %v of the time", m, c.Busy)
		}
	}
	return out
}

// What remains of a step is stretched from the moment another model begins and
// relaxed when it ends; the times are reckoned by hand.
func TestContentionByHand(t *testing.T) {
	matrix := func(m ...[]float64) func(*sim.Config, *sim.Sim) {
		return func(c *sim.Config, _ *sim.Sim) { c.Contention = m }
	}
	large := stays{2: {1}}
	for _, tc := range []struct {
		name   string
		base   []float64
		src    sim.Source
		n      int
		until  int64
		change func(*sim.Config, *sim.Sim)
		want   string
	}{
		{
			"nobody is slowed",
			[]float64{6, 27.9},
			large, 2, 34 * ms, matrix([]float64{0, 0}, []float64{1, 0}),
			"0@6/6 0@12/6 0@18/6 0@24/6 0@30/6 1@33.9/27.9",
		},
		{
			// Request 2 goes to the large model at 6 and stays. 6 x 1.8 = 10.8. The step
			// that begins at 27.6 has done 6.3 / 1.8 = 3.5 when the large one ends, and
			// the next large one begins at once: 2.5 x 1.8 = 4.5 are left.
			"the large without a break",
			[]float64{6, 27.9},
			large, 2, 40 * ms, matrix([]float64{0, 1.8}, []float64{0, 0}),
			"0@6/6 0@16.8/10.8 0@27.6/10.8 1@33.9/27.9 0@38.4/10.8",
		},
		{
			// As before, but the request comes back: the 2.5 left at 33.9 pass as they
			// are, and then both are in one step.
			"the large with a break",
			[]float64{6, 27.9},
			stays{2: {1, 0}},
			2, 43 * ms, matrix([]float64{0, 1.8}, []float64{0, 0}),
			"0@6/6 0@16.8/10.8 0@27.6/10.8 1@33.9/27.9 0@36.4/8.8 0@42.4/6",
		},
		{
			// Both ways by 2: from 6 on each has half. The small ends at 18, begins
			// again at once, ends at 30. The large has done 12 of 20 then, and at 42 18;
			// its last 2 take 4, to 46, when the small has done 2 of 6.
			"both ways",
			[]float64{6, 20},
			stays{2: {1, 0}},
			2, 51 * ms, matrix([]float64{0, 2}, []float64{2, 0}),
			"0@6/6 0@18/12 0@30/12 0@42/12 1@46/40 0@50/8",
		},
		{
			// Three that share fairly: from 4 on each has a third. The small's 4 take 12,
			// to 16 and 28. The middle's 9 are over at 31, when the small has 3 left,
			// which it gets by halves until 37; the large has done 9 of 16 at 31, 12 at
			// 37, and all at 45.
			"three models",
			[]float64{4, 9, 16},
			stays{2: {1, 0}, 3: {2, 0}},
			3, 46 * ms,
			matrix([]float64{0, 2, 2}, []float64{2, 0, 2}, []float64{2, 2, 0}),
			"0@4/4 0@16/12 0@28/12 1@31/27 0@37/9 0@45/8 2@45/41",
		},
		{
			// After the large one executed, the small is alone at once; what comes back
			// is stated 2 ms later. Each small step is stated 0.5 ms later per row.
			"overhead",
			[]float64{6, 20},
			stays{2: {1, 0}},
			2, 45 * ms,
			func(c *sim.Config, _ *sim.Sim) {
				c.Contention = [][]float64{{0, 2}, {0, 0}}
				c.Overhead = func(model, rows int) time.Duration {
					if model == 1 {
						return 2 * time.Millisecond
					}
					return time.Duration(rows) * time.Millisecond / 2
				}
			},
			// Stated at 7 (2 rows). Large 7 to 27, small 7 to 19, 19.5 on: 3.75 done at
			// 27, 2.25 left, 29.25 + 0.5; the large's is stated at 29. Both from 29.75.
			"0@7/6 0@19.5/12 1@29/20 0@29.75/9.75 0@36.75/6 0@43.75/6",
		},
		{
			// The large one is killed at 20 and the small goes on alone: 6 x 1.6 = 9.6, to
			// 15.6; 4.4 / 1.6 = 2.75 of the next step done at 20, 3.25 left.
			"a kill",
			[]float64{6, 27.9},
			large, 2, 30 * ms,
			func(c *sim.Config, s *sim.Sim) {
				c.Contention = [][]float64{{0, 1.6}, {0, 0}}
				if s != nil {
					s.At(20*ms, func() {
						if err := s.Restart(1); err != nil {
							t.Error(err)
						}
					})
				}
			},
			"0@6/6 0@15.6/9.6 0@23.25/7.65 0@29.25/6",
		},
	} {
		if got := strings.Join(ends(t, tc.until, tc.base, tc.src, tc.n, tc.change), " "); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

// Without contention, an overhead moves the end of a step as it is stated and
// leaves the execution.
func TestOverhead(t *testing.T) {
	got := ends(t, 30*ms, []float64{6, 10}, stays{2: {1, 0}}, 2, func(c *sim.Config, _ *sim.Sim) {
		c.Overhead = func(model, rows int) time.Duration { return time.Duration(1+rows) * time.Millisecond }
	})
	if want := "0@9/6 0@17/6 1@21/10 0@25/6"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	cfg := of(t, r2r(1, 0, 6, 27.9), 1, 10*second)
	cfg.Overhead = func(int, int) time.Duration { return 2 * time.Millisecond }
	r := run(t, cfg)
	near(t, "rate", r.Rate, 1000.0/8, 1e-3)
	near(t, "busy", r.Cores[0].Busy, 0.75, 1e-3)
}

// Stalls lengthen the execution of a step and what follows it, under contention as
// well; they are those of the step's number, not of the moment.
func TestStalls(t *testing.T) {
	stall := func(seed uint64, model int, step uint64) (longer, later time.Duration) {
		if model == 0 && step == 2 {
			return 3 * time.Millisecond, 0
		}
		if model == 1 {
			return -time.Second, 2 * time.Millisecond // a time below 0 is none
		}
		return 0, 0
	}
	for _, tc := range []struct {
		name   string
		change func(*sim.Config)
		want   string
	}{
		{"alone", func(*sim.Config) {}, "0@6/6 0@15/9 1@18/10 0@21/6 0@27/6"},
		{
			"contention", func(c *sim.Config) { c.Contention = [][]float64{{0, 2}, {0, 0}} },
			// Step 2 of the small needs 9 ms, and advances by 5 of them until the large
			// has executed for 10.
			"0@6/6 1@18/10 0@20/14 0@26/6",
		},
	} {
		got := ends(t, 29*ms, []float64{6, 10}, stays{2: {1, 0}}, 2, func(c *sim.Config, _ *sim.Sim) {
			c.Stall = stall
			tc.change(c)
		})
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, strings.Join(got, " "), tc.want)
		}
	}
}

func TestContentionRefuses(t *testing.T) {
	for want, m := range map[string][][]float64{
		"1 rows for 3":        {{0}},
		"2 entries for 3":     {{0, 0, 0}, {0, 0}, {0, 0, 0}},
		"a factor of 0.5":     {{0, 0.5, 0}, {0, 0, 0}, {0, 0, 0}},
		"of 2 while 1 runs":   {{0, 0, 0}, {0, 2, 0}, {0, 0, 0}},
		"a factor of NaN":     {{0, 0, 0}, {0, 0, nan}, {0, 0, 0}},
		"of 5000 while 2 run": {{0, 0, 5000}, {0, 0, 0}, {0, 0, 0}},
	} {
		cfg := open(t, 1)
		cfg.Contention = m
		if _, err := sim.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The paper's ladder from a model of costs: with the small model slowed by 1.8
// while the large one runs, N = 8, lock-step, eager and the best thresholds. The
// published ladder is 230.79, 296.86, 372.48; N and the factor were chosen to fit
// it. A simulation written apart made 242.3, 303.7, 378.7 (§7.3). Its last
// figure is 2 % below ours: how a slowed step goes on when the large model ends
// counts there. With a factor fixed when the step begins ours would be 2.4 % lower
// where a large step that begins at the same time counts, and 5 % where not.
func TestPublishedLadder(t *testing.T) {
	const n = 8
	rate := func(b0, b1 int) sim.Result {
		cfg := of(t, r2r(n, 0.35, 6, 27.9, b0, b1), 1, systemSeconds*second)
		cfg.Contention = [][]float64{{0, 1.8}, {0, 0}}
		return run(t, cfg)
	}
	lock, eager := rate(n, 1), rate(1, 1)
	best, at := sim.Result{}, 0
	for b := 1; b <= n; b++ {
		if r := rate(1, b); r.Rate > best.Rate {
			best, at = r, b
		}
	}
	for _, x := range []struct {
		name       string
		got        sim.Result
		apart, off float64
	}{
		{"lock-step", lock, 242.3, curveError},
		{"eager", eager, 303.7, curveError},
		{fmt.Sprintf("B1 = %d", at), best, 378.7, 0.02 + curveError},
	} {
		t.Logf("%s: %.2f ± %.2f tok/s (apart: %.1f)", x.name, x.got.Rate, x.got.RateErr, x.apart)
		near(t, x.name, x.got.Rate, x.apart, x.off)
	}
}
