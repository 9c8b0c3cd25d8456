package plan

import (
	"math"
	"testing"
)

// A plan is made anew when a share, a step time, what is committed or the law of
// sends leaves its bounds, and not for the noise of a measurement.
func TestMoved(t *testing.T) {
	base := func() *Spec {
		return &Spec{
			N: 4, P: [][]float64{{0.65, 0.35}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
			Step: []Latency{{Base: 6}, {Base: 20, PerRow: 2}}, Send: []*Phases{nil, nil},
		}
	}
	for name, c := range map[string]struct {
		change func(s *Spec)
		moved  bool
	}{
		"nothing":             {func(*Spec) {}, false},
		"a share within":      {func(s *Spec) { s.P[0] = []float64{0.635, 0.365} }, false},
		"a share":             {func(s *Spec) { s.P[0] = []float64{0.62, 0.38} }, true},
		"a step time within":  {func(s *Spec) { s.Step[0].Base = 6.1 }, false},
		"a step time":         {func(s *Spec) { s.Step[0].Base = 6.3 }, true},
		"a slope":             {func(s *Spec) { s.Step[1].PerRow = 2.5 }, true},
		"what is committed":   {func(s *Spec) { s.K[0][1] = 1 }, true},
		"the active requests": {func(s *Spec) { s.N = 5 }, true},
		"a law":               {func(s *Spec) { s.Send[0] = Intervals([]float64{0, 0, 1}) }, true},
		"without a K":         {func(s *Spec) { s.K = nil }, true},
		"without laws":        {func(s *Spec) { s.Send = nil }, false},
	} {
		s := base()
		c.change(s)
		if got := s.Moved(base()); got != c.moved {
			t.Errorf("%s: moved %v, want %v", name, got, c.moved)
		}
	}
	third, half := Intervals([]float64{0, 0, 1}), Intervals([]float64{0.5, 0, 0.5})
	if x, y := third.moments(), half.moments(); x != (moments{mean: 3}) || math.Abs(y.mean-2) > 1e-12 || math.Abs(y.cv2-0.25) > 1e-12 {
		t.Errorf("%+v and %+v, want means of 3 and 2, CV^2 of 0 and 1/4", x, y)
	}
	if !third.moved(half) || third.moved(Intervals([]float64{0, 0.01, 0.99})) {
		t.Error("laws are told apart by their means")
	}
}
