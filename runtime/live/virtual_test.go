package live_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/format"
)

// written is a tape as a session would store it.
func written(t testing.TB, recs []tape.Record) []byte {
	t.Helper()
	enc, err := format.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := enc.Append(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return enc.Seal(nil)
}

// parting says where two tapes part.
func parting(a, b []tape.Record) string {
	for i := range min(len(a), len(b)) {
		if x, y := fmt.Sprint(show(&a[i])), fmt.Sprint(show(&b[i])); x != y {
			return fmt.Sprintf("record %d of %d and %d:\n%s\n%s", i, len(a), len(b), x, y)
		}
	}
	return fmt.Sprintf("%d and %d records", len(a), len(b))
}

func show(r *tape.Record) string {
	switch {
	case r.Event != nil:
		return fmt.Sprintf("%d @%d core %d event %v", r.Seq, r.At, r.Core, r.Event)
	case r.Command != nil:
		return fmt.Sprintf("%d @%d core %d command %v", r.Seq, r.At, r.Core, r.Command)
	case r.Load != nil:
		return fmt.Sprintf("%d @%d core %d load %+v", r.Seq, r.At, r.Core, *r.Load)
	}
	return fmt.Sprintf("%d @%d core %d %s %+v", r.Seq, r.At, r.Core, r.Host.Name(), r.Host)
}

// Knobs that flags set are recorded in one order, not in that of a map.
func TestKnobsOfFlagsInOrder(t *testing.T) {
	cfg := flat(t, 1, 0, event.Policy{})
	cfg.Router, cfg.Horizon = "chance", time.Millisecond
	cfg.Params = map[string]float64{"small_middle": 0.1, "small_large": 0.2, "replace": 0, "middle_small": 0.3, "middle_large": 0.4, "large_small": 0.5}
	_, recs := runConfig(t, cfg)
	var set []string
	for i := range recs {
		if k, ok := recs[i].Host.(*tape.Knob); ok && k.Source == "flag" {
			set = append(set, k.Knob)
		}
	}
	if len(set) != len(cfg.Params) || !slices.IsSorted(set) {
		t.Errorf("recorded are %v", set)
	}
}

// The same seed and flags give the same tape, byte for byte, on one processor and
// on two, with a table of thresholds that the planner makes on the way.
func TestVirtualTapeIsTheSame(t *testing.T) {
	for _, p := range []event.Policy{{Kind: event.Eager}, {Kind: event.Table}, {Kind: event.LookAhead}} {
		t.Run(p.Kind.String(), func(t *testing.T) {
			s := setup{
				models: loopModels, router: "r2r", params: map[string]float64{"threshold": 0.05}, policy: p,
				tasks: referenceTasks(t, virtualTasks), concurrency: 8, virtual: true,
				sampling: event.Sampling{Temperature: 0.8, Seed: 3},
			}
			_, first := run(t, s)
			checkTape(t, s, first)
			plans := 0
			for i := range first {
				switch h := first[i].Host.(type) {
				case *tape.Telemetry:
					t.Errorf("record %d tells of this machine", i)
				case *tape.Plan:
					plans++
					if h.SolveNs != 0 {
						t.Errorf("a plan took %d ns", h.SolveNs)
					}
				}
				if ev := first[i].Event; ev != nil && ev.Kind == event.StepDone && ev.Step.RouteNs != 0 {
					t.Errorf("record %d: routing took %d ns", i, ev.Step.RouteNs)
				}
			}
			if plans == 0 {
				t.Error("nothing was planned; the test has lost its sense")
			}
			for _, procs := range []int{1, 2} {
				was := runtime.GOMAXPROCS(procs)
				_, again := run(t, s)
				runtime.GOMAXPROCS(was)
				if !bytes.Equal(written(t, first), written(t, again)) {
					t.Fatalf("on %d processors the tape is another: %s", procs, parting(first, again))
				}
			}
		})
	}
}

// Virtual time changes no token and no writer.
func TestVirtualAnswersAreThoseOfTheLiveClock(t *testing.T) {
	for _, ms := range [][]string{{"tiny-37k", "tiny-114k"}, {"tiny-37k", "tiny-114k", "tiny-842k"}} {
		for _, r := range []string{"r2r", "rstitch", "me", "random"} {
			t.Run(fmt.Sprintf("%s/%d", r, len(ms)), func(t *testing.T) {
				s := setup{
					models: ms, router: r, tasks: referenceTasks(t, virtualTasks/2), concurrency: 4,
					sampling: event.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7},
				}
				want, _ := run(t, s)
				s.virtual = true
				got, recs := run(t, s)
				sameAnswers(t, "virtual", want, got)
				checkTape(t, s, recs)
			})
		}
	}
}
