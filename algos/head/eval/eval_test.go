package eval_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/algos/head/eval"
)

// The area is the share of pairs that are in order, ties half: by counting.
func TestAUC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "rows")
		scores, labels := make([]float64, n), make([]uint8, n)
		for i := range scores {
			scores[i] = float64(rapid.IntRange(0, 6).Draw(t, "score"))
			labels[i] = uint8(rapid.IntRange(0, 1).Draw(t, "label"))
		}
		var sum, pairs float64
		for i := range scores {
			for j := range scores {
				if labels[i] == 1 && labels[j] == 0 {
					pairs++
					switch {
					case scores[i] > scores[j]:
						sum++
					case scores[i] == scores[j]:
						sum += 0.5
					}
				}
			}
		}
		want := 0.5
		if pairs > 0 {
			want = sum / pairs
		}
		if got := eval.AUC(scores, labels); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v, by counting %v", got, want)
		}
	})
}

// Every figure by hand, ties included.
func TestByHand(t *testing.T) {
	scores := []float64{0.9, 0.8, 0.8, 0.4, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1}
	labels := []uint8{1, 1, 0, 1, 0, 0, 0, 0, 0, 1}
	problem := []int32{0, 0, 0, 1, 1, 1, 2, 2, 2, 2}
	o := eval.Options{Recalls: []float64{0.25, 0.5, 0.75, 1}, Shares: []float64{0.05, 0.3, 0.5, 0.9}, Probabilities: true, Resamples: 50, Seed: 1}
	r, err := eval.Of(scores, labels, problem, o)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	// Pairs in order: 6 + 5.5 + 4.5 + 4*0.5 of 4 * 6.
	near("AUC", r.AUC.Value, (6+5.5+4.5+2)/24)
	near("precision", r.Precision.Value, (1+2./3+3./5+4./10)/4)
	for i, want := range []float64{0.1, 0.3, 0.5, 1} {
		near("share at recall", r.Shares[i].Value, want)
	}
	for i, want := range []float64{0, 0.5, 0.75, 0.75} {
		near("recall at share", r.Recalls[i].Value, want)
	}
	near("Brier", r.Calibration.Brier.Value, (0.01+0.04+0.64+0.36+0.16+4*0.01+0.81)/10)
	near("ECE", r.Calibration.ECE.Value, (0.1+math.Abs(1.6-1)+math.Abs(0.8-1)+math.Abs(0.5-1))/10)
	if b := r.Calibration.Bins[8]; b.Rows != 2 || b.Rate != 0.5 || r.Positives != 4 || r.Problems != 3 {
		t.Errorf("%+v", r)
	}
}

// Intervals resample problems: of rows that are copies of each other within a
// problem they are as wide as those of one row a problem.
func TestIntervalsAreOfProblems(t *testing.T) {
	var one, many struct {
		scores  []float64
		labels  []uint8
		problem []int32
	}
	for p := range int32(60) {
		s, l := float64((p*37)%61)/61, uint8((p*11)%3/2)
		for k := range 8 {
			if k == 0 {
				one.scores, one.labels, one.problem = append(one.scores, s), append(one.labels, l), append(one.problem, p)
			}
			many.scores, many.labels, many.problem = append(many.scores, s), append(many.labels, l), append(many.problem, p)
		}
	}
	o := eval.Defaults()
	o.Probabilities = true
	a, err := eval.Of(one.scores, one.labels, one.problem, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := eval.Of(many.scores, many.labels, many.problem, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]eval.Figure{{a.AUC, b.AUC}, {a.Precision, b.Precision}, {a.Calibration.Brier, b.Calibration.Brier}} {
		x, y := c[0], c[1]
		if math.Abs(x.Low-y.Low) > 1e-9 || math.Abs(x.High-y.High) > 1e-9 || !(x.Low < x.Value && x.Value < x.High) {
			t.Errorf("one row a problem %+v, eight %+v", x, y)
		}
	}
}

// What cannot be judged is refused.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		scores []float64
		labels []uint8
	}{
		"nothing":        {nil, nil},
		"one label":      {[]float64{0.1, 0.2}, []uint8{1, 1}},
		"no number":      {[]float64{math.NaN(), 0.2}, []uint8{0, 1}},
		"no probability": {[]float64{1.5, 0.2}, []uint8{0, 1}},
	} {
		o := eval.Defaults()
		o.Probabilities = true
		if _, err := eval.Of(c.scores, c.labels, make([]int32, len(c.scores)), o); err == nil {
			t.Errorf("%s is judged", name)
		}
	}
}
