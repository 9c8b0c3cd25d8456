package eval

import (
	"cmp"
	"slices"
)

// AUC is the area under the ROC curve: the probability that a row labelled 1 has a
// higher score than one labelled 0, a tie counting half (Hanley and McNeil 1982).
// It is 0.5 where a label is missing.
func AUC(scores []float64, labels []uint8) float64 {
	r := rank(scores)
	return r.auc(labels, nil)
}

// ranking is rows in the order of falling scores.
type ranking struct {
	order  []int32
	scores []float64 // by row
}

func rank(scores []float64) *ranking {
	r := &ranking{order: make([]int32, len(scores)), scores: scores}
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortFunc(r.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return r
}

// group calls each for the rows of one score after the other, with how much they
// weigh by label. weights are by row; nil is 1 each.
func (r *ranking) groups(labels []uint8, weights []float64, each func(score, zeros, ones float64)) {
	for from := 0; from < len(r.order); {
		score := r.scores[r.order[from]]
		var w [2]float64
		to := from
		for ; to < len(r.order) && r.scores[r.order[to]] == score; to++ {
			i := r.order[to]
			if weights == nil {
				w[labels[i]]++
			} else {
				w[labels[i]] += weights[i]
			}
		}
		each(score, w[0], w[1])
		from = to
	}
}

func (r *ranking) auc(labels []uint8, weights []float64) float64 {
	var zeros, ones, area float64
	r.groups(labels, weights, func(_, z, o float64) {
		area += z * (ones + o/2)
		zeros, ones = zeros+z, ones+o
	})
	if zeros == 0 || ones == 0 {
		return 0.5
	}
	return area / (zeros * ones)
}

// precision is the average precision: the precision at each score, weighted by the
// recall that it adds.
func (r *ranking) precision(labels []uint8, weights []float64) float64 {
	var zeros, ones, sum float64
	r.groups(labels, weights, func(_, z, o float64) {
		zeros, ones = zeros+z, ones+o
		if o > 0 {
			sum += o * ones / (zeros + ones)
		}
	})
	if ones == 0 {
		return 0
	}
	return sum / ones
}

// point is what a threshold at a score gives: the share of rows at or above it, and
// the share of those labelled 1 that are among them.
type point struct{ score, share, recall float64 }

// curve is the points of all scores, falling.
func (r *ranking) curve(labels []uint8, weights []float64) []point {
	var zeros, ones float64
	var out []point
	r.groups(labels, weights, func(score, z, o float64) {
		zeros, ones = zeros+z, ones+o
		out = append(out, point{score, zeros + ones, ones})
	})
	for i := range out {
		out[i].share /= zeros + ones
		if ones > 0 {
			out[i].recall /= ones
		}
	}
	return out
}

// shareAt is the smallest share whose recall is at least that; recallAt the largest
// recall within a share.
func shareAt(curve []point, recall float64) float64 {
	for _, p := range curve {
		if p.recall >= recall {
			return p.share
		}
	}
	return 1
}

func recallAt(curve []point, share float64) (out float64) {
	for _, p := range curve {
		if p.share > share {
			break
		}
		out = p.recall
	}
	return out
}
