package metrics

import (
	"math"
	"reflect"
	"testing"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
)

// three is an estimate of three subservers of which the middle one is not in use.
func three() Estimate {
	flat := func(ms, row float64) cost.Fit { return cost.Fit{Base: ms, PerRow: row, N: 50} }
	return Estimate{
		Peers: 3, Used: []bool{true, false, true},
		P:     [][]float64{{0.6, 0, 0.4}, {1. / 3, 1. / 3, 1. / 3}, {1, 0, 0}},
		K:     [][]float64{{1, 1, 0}, {1, 1, 1}, {1, 1, 1}},
		Whole: []cost.Fit{flat(6, 0.5), flat(0, 0), {Base: 20, PerRow: 1, PerToken: 0.25, N: 50}},
		Mix:   []Mix{{Decode: 1}, {Decode: 1}, {Decode: 0.9, Tokens: 2}},
		Drift: make([]Drift, 3), Intervals: make([]Interval, 3), Effective: make([]float64, 3),
	}
}

func TestSpecOfAnEstimate(t *testing.T) {
	e := three()
	got := e.Spec(4, 8)
	want := plan.Spec{
		N: 4, P: [][]float64{{0.6, 0.4}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
		Step: []plan.Latency{{Base: 6, PerRow: 0.5}, {Base: 20, PerRow: 1.4}},
		Cap:  []int{8, 8}, Send: []*plan.Phases{nil, nil}, Quantum: 0.1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if got := e.Spread([]int{1, 3}); !reflect.DeepEqual(got, []int{1, 1, 3}) {
		t.Errorf("spread over all: %v", got)
	}
	f := e.Forecast(70)
	if want := (&event.Forecast{
		Step:    []event.StepTime{{Base: 6e6, PerRow: 5e5}, {}, {Base: 20e6, PerRow: 1.4e6}},
		Share:   [][]int{{600_000, 0, 400_000}, {0, 0, 0}, {1_000_000, 0, 0}},
		Latency: 70,
	}); !reflect.DeepEqual(f, want) {
		t.Errorf("%+v\nwant %+v", f, want)
	}
}

// Steps as the live clock has them, 0.03 ms beside 20, can be planned for, and as
// well as the same steps a thousand times as long.
func TestSpecOfFastSteps(t *testing.T) {
	best := func(scale float64) plan.Answer {
		e := three()
		e.Whole[0] = cost.Fit{Base: 0.03 * scale, PerRow: 0.004 * scale, N: 50}
		e.Whole[2] = cost.Fit{Base: 0.17 * scale, N: 50}
		s := e.Spec(4, 8)
		a, err := plan.Best(&s, plan.Options{})
		if err != nil {
			t.Fatalf("step times times %g: %v", scale, err)
		}
		return a
	}
	fast, slow := best(1), best(1000)
	if !reflect.DeepEqual(fast.B, slow.B) || math.Abs(fast.Throughput/slow.Throughput/1000-1) > 0.02 {
		t.Errorf("B* %v, %.1f tok/s; steps a thousand times as long have %v, %.4f", fast.B, fast.Throughput, slow.B, slow.Throughput)
	}
}

// Every third step sends, and nothing else does: the plan follows that law, unless
// the share drifts, when the test says nothing about it.
func TestSpecFollowsTheHistogram(t *testing.T) {
	e := three()
	e.P[0], e.Effective = []float64{2. / 3, 0, 1. / 3}, []float64{1000, 0, 1000}
	e.Intervals[0] = Interval{
		N: 100, Steps: 300, Far: true, Mean: 3,
		Bins: []StepBin{{From: 1, To: 1, Made: 100}, {From: 2, To: 2, Made: 100}, {From: 3, To: 3, Made: 100, Sent: 100}},
	}
	s := e.Spec(4, 8)
	law := s.Send[0]
	if law == nil || s.Send[1] != nil {
		t.Fatalf("laws %v", s.Send)
	}
	if want := [][]float64{{0, 1, 0}, {0, 0, 1}, {0, 0, 0}}; !reflect.DeepEqual(law.Next, want) || law.Start[0] != 1 {
		t.Errorf("%v from %v, want %v", law.Next, law.Start, want)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	e.Drift[0].Z = 5
	if s := e.Spec(4, 8); s.Send[0] != nil {
		t.Error("a drift was taken for a law")
	}
	// The share has changed and rests since; the histogram is still of both.
	e.Drift[0].Z, e.P[0] = 0, []float64{0.6, 0, 0.4}
	if s := e.Spec(4, 8); s.Send[0] != nil {
		t.Error("a histogram of another share was taken for a law")
	}
}

// A visit longer than any that was sent on does not last for ever.
func TestPhasesLeaveNobodyBehind(t *testing.T) {
	v := Interval{N: 10, Steps: 100, Bins: []StepBin{{From: 1, To: 1, Made: 50, Sent: 10}, {From: 2, To: 9, Made: 50}}}
	p := v.Phases()
	last := len(p.Start) - 1
	if stay := p.Next[last][last]; math.Abs(stay-0.9) > 1e-12 {
		t.Errorf("the last phase stays with %v, want 0.9, the share of all steps", stay)
	}
	if none := (&Interval{Steps: 5, Bins: []StepBin{{From: 1, To: 1, Made: 5}}}).Phases(); none != nil {
		t.Errorf("nothing was sent and has the law %v", none)
	}
}
