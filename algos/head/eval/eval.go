package eval

import (
	"errors"
	"math"
	"slices"

	"tokenrouter/runtime/rng"
)

// Figure is a number with its 95 % interval by resampling problems.
type Figure struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// At is a figure at a level of something else.
type At struct {
	At float64 `json:"at"`
	Figure
}

// Bin is the rows of a range of scores.
type Bin struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Rows  int     `json:"rows"`
	Score float64 `json:"score"` // mean of the scores
	Rate  float64 `json:"rate"`  // share of the rows labelled 1
}

// Report is how good scores are.
type Report struct {
	Rows      int    `json:"rows"`
	Positives int    `json:"positives"`
	Problems  int    `json:"problems"`
	AUC       Figure `json:"auc"`               // of ROC
	Precision Figure `json:"average_precision"` // its value by chance is the share of positives
	Shares    []At   `json:"share_at_recall"`
	Recalls   []At   `json:"recall_at_share"`
	// Of scores that are probabilities; nil for others.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Calibration is how far probabilities are from rates.
type Calibration struct {
	Brier Figure `json:"brier"` // mean squared distance from the label
	ECE   Figure `json:"ece"`   // mean distance of score and rate over the bins
	Bins  []Bin  `json:"bins"`
}

// Options say what is reported.
type Options struct {
	Recalls []float64 // at which the share of rows is reported
	Shares  []float64 // at which the recall is
	// Probabilities says that scores are such, between 0 and 1.
	Probabilities bool
	Resamples     int
	Seed          uint64
}

// Defaults are the levels in use.
func Defaults() Options {
	return Options{Recalls: []float64{0.5, 0.8, 0.9, 0.95, 0.99}, Shares: []float64{0.01, 0.02, 0.05, 0.1, 0.2}, Resamples: 400, Seed: 1}
}

// bins is the number of ranges of equal width of a reliability diagram.
const bins = 10

// Of reports on scores. problem is the number of each row's problem, from 0 on.
func Of(scores []float64, labels []uint8, problem []int32, o Options) (*Report, error) {
	if len(scores) == 0 || len(labels) != len(scores) || len(problem) != len(scores) {
		return nil, errors.New("there are no rows to judge, or not one score, label and problem for each")
	}
	for _, s := range scores {
		if math.IsNaN(s) || o.Probabilities && (s < 0 || s > 1) {
			return nil, errors.New("a score is no number, or no probability where they are said to be such")
		}
	}
	out := &Report{Rows: len(scores), Problems: int(slices.Max(problem)) + 1}
	for _, l := range labels {
		out.Positives += int(l)
	}
	if out.Positives == 0 || out.Positives == out.Rows {
		return nil, errors.New("all rows are labelled alike: there is nothing to tell apart; collect from more problems")
	}
	r := rank(scores)
	figures := func(weights []float64) (f []float64) {
		curve := r.curve(labels, weights)
		f = append(f, r.auc(labels, weights), r.precision(labels, weights))
		for _, at := range o.Recalls {
			f = append(f, shareAt(curve, at))
		}
		for _, at := range o.Shares {
			f = append(f, recallAt(curve, at))
		}
		if o.Probabilities {
			f = append(f, brier(scores, labels, weights), ece(reliability(scores, labels, weights)))
		}
		return f
	}
	values := figures(nil)
	samples := make([][]float64, len(values))
	for k := range o.Resamples {
		for i, v := range figures(resample(problem, out.Problems, o.Seed, k)) {
			samples[i] = append(samples[i], v)
		}
	}
	next := 0
	take := func() Figure {
		f := Figure{Value: values[next], Low: math.NaN(), High: math.NaN()}
		f.Low, f.High = middle(samples[next], f.Value)
		next++
		return f
	}
	out.AUC, out.Precision = take(), take()
	for _, at := range o.Recalls {
		out.Shares = append(out.Shares, At{at, take()})
	}
	for _, at := range o.Shares {
		out.Recalls = append(out.Recalls, At{at, take()})
	}
	if o.Probabilities {
		out.Calibration = &Calibration{Brier: take(), ECE: take()}
		for i, b := range reliability(scores, labels, nil) {
			out.Calibration.Bins = append(out.Calibration.Bins, b.shown(i))
		}
	}
	return out, nil
}

// resample draws as many problems as there are, with replacement, and says how often
// each row is in.
func resample(problem []int32, problems int, seed uint64, k int) []float64 {
	key := rng.Key{Seed: seed, Req: uint64(k), Purpose: rng.Resample}
	times := make([]float64, problems)
	for i := range problems {
		times[int(key.Float64(i)*float64(problems))]++
	}
	weights := make([]float64, len(problem))
	for i, p := range problem {
		weights[i] = times[p]
	}
	return weights
}

// middle is what 95 % of the resamples lie in; the value alone without any.
func middle(samples []float64, value float64) (low, high float64) {
	if len(samples) == 0 {
		return value, value
	}
	slices.Sort(samples)
	at := func(q float64) float64 { return samples[int(q*float64(len(samples)-1)+0.5)] }
	return at(0.025), at(0.975)
}

func brier(scores []float64, labels []uint8, weights []float64) float64 {
	var sum, all float64
	for i, s := range scores {
		w := weight(weights, i)
		d := s - float64(labels[i])
		sum += w * d * d
		all += w
	}
	return sum / all
}

func weight(weights []float64, i int) float64 {
	if weights == nil {
		return 1
	}
	return weights[i]
}

// bin is the rows of a range of scores, summed up.
type bin struct{ rows, scores, ones float64 }

func reliability(scores []float64, labels []uint8, weights []float64) (out [bins]bin) {
	for i, s := range scores {
		b, w := &out[min(int(s*bins), bins-1)], weight(weights, i)
		b.rows += w
		b.scores += w * s
		b.ones += w * float64(labels[i])
	}
	return out
}

// ece is the expected calibration error (Naeini et al. 2015).
func ece(of [bins]bin) float64 {
	var sum, all float64
	for _, b := range of {
		sum += math.Abs(b.scores - b.ones)
		all += b.rows
	}
	return sum / all
}

func (b *bin) shown(i int) Bin {
	out := Bin{From: float64(i) / bins, To: float64(i+1) / bins, Rows: int(b.rows)}
	if b.rows > 0 {
		out.Score, out.Rate = b.scores/b.rows, b.ones/b.rows
	}
	return out
}
