package live_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettersRefuse: a value that cannot be meant is refused with a sentence that
// names it and what there is, and changes nothing (case B9).
func TestSettersRefuse(t *testing.T) {
	s := pair(t, 1)
	s.pacer = pacedAt(t, 2)
	sub := s.tape.Subscribe()
	rt := newRuntime(t, s)
	before := rt.Status()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{rt.SetSpeed(math.NaN()), "speed NaN is outside 1/64 to 64"},
		{rt.SetSpeed(math.Inf(1)), "speed +Inf is outside 1/64 to 64"},
		{rt.SetSpeed(0), "speed 0 is outside 1/64 to 64"},
		{rt.SetConcurrency(0), "concurrency 0 is outside 1 to 256"},
		{rt.SetConcurrency(257), "concurrency 257 is outside 1 to 256"},
		{rt.SetClock("wall"), `no clock "wall"; there are live and paced, and emulated and sim when a run begins`},
		{rt.SetClock("sim"), "the clock sim is chosen when a run begins"},
		{rt.SetClock("emulated"), "the clock emulated is chosen when a run begins"},
		{rt.SetB(-1, 1), "no subserver -1; there are 2"},
		{rt.SetB(2, 1), "no subserver 2; there are 2"},
		{rt.SetB(0, 0), "threshold B 0 is outside 1 to 32"},
		{rt.SetB(1, 33), "threshold B 33 is outside 1 to 32"},
		{rt.SetPolicy("lazy"), `batch policy "lazy" is none of`},
		{rt.SetPolicy("fixed:1"), `batch policy "fixed:1" gives 1 thresholds for 2 models`},
		{rt.SetPolicy("fixed:1,33"), "threshold B 33 of the large is above 32, the seats of a batch"},
		{rt.SetKnob("tau", 1), `r2r.lua has no knob "tau"; knobs: threshold`},
		{rt.SetKnob("threshold", math.NaN()), `knob "threshold" cannot be NaN: it ranges from 0 to 4`},
		{rt.SetRouter("r3r"), `no router "r3r"`},
	} {
		if tc.err == nil || !strings.HasPrefix(tc.err.Error(), tc.want) {
			t.Errorf("%v, want %s", tc.err, tc.want)
		}
	}
	if diff := cmp.Diff(before, rt.Status()); diff != "" {
		t.Errorf("what was refused changed something:\n%s", diff)
	}
	if recs := sub.Next(nil, 0); len(recs) > 0 {
		t.Errorf("%d records of what was refused", len(recs))
	}
	closeRuntime(t, rt)
}
