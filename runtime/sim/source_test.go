package sim_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/sim"
)

func TestMarkovRefuses(t *testing.T) {
	half := [][]float64{{0.5, 0.5}, {1, 0}}
	for want, sys := range map[string]plan.Spec{
		"row 1 of P":               {P: [][]float64{{0.5, 0.5}, {1}}},
		"K[0][1] is 0.5":           {P: half, K: [][]float64{{1, 0.5}, {1, 1}}},
		"K[0][0] is 0":             {P: half, K: [][]float64{{0, 0}, {1, 1}}},
		"dropped at model 0 again": {P: half, K: [][]float64{{1, 0}, {0, 1}}},
		"has no phase":             {P: half, Send: []*plan.Phases{{}, nil}},
		"300 phases":               {P: half, Send: []*plan.Phases{plan.Intervals(make300()), nil}},
	} {
		if _, err := sim.Markov(1, 0, sys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := sim.Markov(1, 0); err == nil {
		t.Error("a source of nothing")
	}
	if _, err := sim.Markov(1, 0, plan.Spec{P: half}, plan.Spec{P: half}); err == nil {
		t.Error("two systems and no time to switch")
	}
}

// make300 is a send law of exactly 300 steps.
func make300() []float64 {
	p := make([]float64, 300)
	p[299] = 1
	return p
}

// visits are the steps that requests make at a model between coming and being
// sent on, counted by how many they are.
func visits(log []entry, model event.Peer) (n []int, count int, mean, cv2 float64) {
	at := map[event.ReqID]int{}
	square := 0.0
	for _, e := range log {
		if e.core != model || e.ev.Step == nil {
			continue
		}
		for _, row := range e.ev.Step.Rows {
			at[row.Req]++
			if row.Dest == model {
				continue
			}
			k := at[row.Req]
			at[row.Req] = 0
			for len(n) <= k {
				n = append(n, 0)
			}
			n[k]++
			count++
			mean += float64(k)
			square += float64(k * k)
		}
	}
	mean /= float64(count)
	return n, count, mean, square/float64(count)/(mean*mean) - 1
}

// Steps between sends follow the law: geometric without phases, else what the
// phases say, at each model its own; destinations follow P.
func TestSendIntervals(t *testing.T) {
	spec := plan.Spec{
		N:    4,
		P:    [][]float64{{0.6, 0.1, 0.3}, {0.5, 0.5, 0}, {1, 0, 0}},
		Step: []plan.Latency{{Base: 6}, {Base: 6}, {Base: 6}},
	}
	_, log := logged(t, of(t, spec, 1, 60*second))
	_, count, mean, cv2 := visits(log, 0)
	near(t, "mean", mean, 2.5, 0.02)
	near(t, "cv2", cv2, 0.6, 0.05) // 1 - 1/mean
	_, _, mean, cv2 = visits(log, 1)
	near(t, "mean of the middle model", mean, 2, 0.05)
	near(t, "cv2 of the middle model", cv2, 0.5, 0.1)
	if count < 5000 {
		t.Errorf("%d visits", count)
	}

	// Two steps with one chance in four, else one step and then geometric ones.
	mixed := &plan.Phases{Start: []float64{0.25, 0, 0.75}, Next: [][]float64{{0, 1, 0}, {0, 0, 0}, {0, 0, 0.5}}}
	spec.Send = []*plan.Phases{mixed, plan.Intervals([]float64{0, 0, 1}), nil}
	_, log = logged(t, of(t, spec, 1, 60*second))
	n, count, _, _ := visits(log, 0)
	for k, want := range []float64{0, 0.375, 0.25 + 0.1875, 0.09375, 0.046875} {
		if got := float64(n[k]) / float64(count); math.Abs(got-want) > 0.015 {
			t.Errorf("%d steps in %v of the visits, want %v", k, got, want)
		}
	}
	n, count, _, _ = visits(log, 1)
	if n[3] != count || count < 100 {
		t.Errorf("%d of %d visits of the middle model have 3 steps", n[3], count)
	}
	to := [3]float64{}
	for _, e := range log {
		if e.core == 0 && e.ev.Step != nil {
			for _, row := range e.ev.Step.Rows {
				to[row.Dest]++
			}
		}
	}
	near(t, "large for each middle", to[2]/to[1], 3, 0.1)
}

// A routed small token is dropped and the large model writes its position; what
// it writes is committed at once.
func TestDropShape(t *testing.T) {
	_, log := logged(t, of(t, r2r(3, 0.35, 6, 27.9), 1, 20*second))
	dropped, kept := 0, 0
	for _, e := range log {
		if e.ev.Step == nil {
			continue
		}
		for _, row := range e.ev.Step.Rows {
			switch {
			case e.core == 0 && row.Dest == 1 && row.Action == event.Drop:
				dropped++
			case row.Action == event.Keep && row.Dest == 0:
				kept++
			default:
				t.Fatalf("at %d: %+v", e.core, row)
			}
		}
		for _, c := range e.cmds {
			if c.Kind == event.Note {
				t.Fatalf("%v", c)
			}
		}
	}
	near(t, "share dropped", float64(dropped)/float64(kept), 0.35, 0.05) // the large commits one for each
}

// With several systems the source switches at multiples of the time.
func TestSwitching(t *testing.T) {
	a, b := r2r(4, 0.1, 6, 6), r2r(4, 0.6, 6, 6)
	src, err := sim.Markov(1, 5*time.Second, a, b)
	if err != nil {
		t.Fatal(err)
	}
	cfg := of(t, a, 1, 54*second)
	cfg.Source = src
	var sent, all [2]float64
	_, log := logged(t, cfg)
	for _, e := range log {
		if e.core != 0 || e.ev.Step == nil {
			continue
		}
		at := e.ev.At / (5 * second) % 2
		for _, row := range e.ev.Step.Rows {
			all[at]++
			sent[at] += float64(row.Dest)
		}
	}
	near(t, "routed in even spans", sent[0]/all[0], 0.1, 0.1)
	near(t, "routed in odd spans", sent[1]/all[1], 0.6, 0.05)
}

// Lengths have their law and hang on the request alone.
func TestLengths(t *testing.T) {
	l := sim.Exponential(3, 300)
	sum, long := 0.0, 0
	const n = 20_000
	for id := range event.ReqID(n) {
		k := l(id)
		if k < 1 || k != l(id) {
			t.Fatalf("request %d has %d tokens, then %d", id, k, l(id))
		}
		sum += float64(k)
		if k > 600 {
			long++
		}
	}
	near(t, "mean", sum/n, 300.5, 0.03) // rounded up
	near(t, "share above twice the mean", float64(long)/n, math.Exp(-2), 0.06)
	if sim.Fixed(7)(3) != 7 {
		t.Error("a fixed length varies")
	}
}
