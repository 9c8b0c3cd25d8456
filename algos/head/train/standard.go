package train

import (
	"math"
	"strings"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
)

// standard brings features to mean 0 and variance 1, so that one learning rate fits
// hidden states, logits and signals. It is folded into the layers that read
// features when training is over: a head on disk reads them as they are.
type standard struct{ mean, scale []float64 }

// newStandard measures features on the rows that are trained on. A head without
// bias has nowhere to keep a mean, so there features are only scaled.
func newStandard(r *dataset.Rows, spec *head.Spec, train []int32, center bool) *standard {
	k := spec.Inputs()
	s := &standard{make([]float64, k), make([]float64, k)}
	var x []float32
	for _, i := range train {
		x = features(x[:0], r, spec, int(i))
		for j, v := range x {
			s.mean[j] += float64(v)
		}
	}
	for j := range s.mean {
		s.mean[j] /= float64(max(len(train), 1))
	}
	for _, i := range train {
		x = features(x[:0], r, spec, int(i))
		for j, v := range x {
			d := float64(v) - s.mean[j]
			s.scale[j] += d * d
		}
	}
	for j, sum := range s.scale {
		if s.scale[j] = math.Sqrt(sum / float64(max(len(train), 1))); s.scale[j] < 1e-6 {
			s.scale[j] = 1 // it is always the same
		}
	}
	if !center {
		clear(s.mean)
	}
	return s
}

// features appends the features of row i in the order of the spec.
func features(x []float32, r *dataset.Rows, spec *head.Spec, i int) []float32 {
	for _, f := range spec.Features {
		switch name, _, _ := strings.Cut(f, ":"); name {
		case "hidden":
			x = append(x, r.State(i)...)
		case "embedding":
			x = append(x, r.Embedding(i)...)
		case "logits":
			x = append(x, r.Top(i)[:spec.TopLogits()]...)
		case "signals":
			x = append(x, r.Measure(i)...)
		}
	}
	return x
}

// apply standardises one row.
func (s *standard) apply(x []float32) {
	for j, v := range x {
		x[j] = float32((float64(v) - s.mean[j]) / s.scale[j])
	}
}

// fold changes a layer that reads features from..from+len in standardised form at
// its inputs at..: w' = w / scale, b' = b - sum of w * mean / scale.
func (s *standard) fold(w, b []float32, inputs, at, from, n int) {
	for o := range len(w) / inputs {
		var shift float64
		for j := range n {
			v := &w[o*inputs+at+j]
			folded := float64(*v) / s.scale[from+j]
			shift += folded * s.mean[from+j]
			*v = float32(folded)
		}
		if b != nil {
			b[o] = float32(float64(b[o]) - shift)
		}
	}
}

// foldInto folds into the tensors of a head.
func (s *standard) foldInto(spec *head.Spec, t map[string][]float32) {
	k := spec.Inputs()
	switch spec.Kind {
	case "linear":
		s.fold(t["weight"], t["bias"], k, 0, 0, k)
	case "mlp":
		s.fold(t["layers.0.weight"], t["layers.0.bias"], k, 0, 0, k)
	case "citer":
		s.fold(t["mlp.0.weight"], t["mlp.0.bias"], k, 0, 0, k)
	case "r2r":
		h := 2 * spec.Hidden
		s.fold(t["combined_projection.weight"], t["combined_projection.bias"], 3*spec.Hidden, 0, 0, h)
		s.fold(t["logits_projection.weight"], t["logits_projection.bias"], k-h, 0, h, k-h)
	}
}
