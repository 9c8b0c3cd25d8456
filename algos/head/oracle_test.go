package head_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"tokenrouter/algos/head"
)

// The oracle evaluates a head in float64, straight from the papers' formulas, with
// the standard library's erf and exp.

type weights map[string][]float32

// made gives every tensor of a spec random values of the size that training starts
// with.
func made(s *head.Spec, seed uint64) weights {
	r := rand.New(rand.NewPCG(seed, 7))
	w := weights{}
	for _, t := range s.Tensors() {
		v := make([]float32, t.Len())
		scale := 1 / math.Sqrt(float64(t.Shape[len(t.Shape)-1]))
		for i := range v {
			switch {
			case len(t.Shape) == 2:
				v[i] = float32(r.NormFloat64() * scale)
			case t.Name == "mlp.1.running_var":
				v[i] = float32(0.2 + r.Float64())
			case len(t.Shape) == 1:
				v[i] = float32(0.3 * r.NormFloat64())
			}
		}
		w[t.Name] = v
	}
	return w
}

func (w weights) linear(name string, x []float64) []float64 {
	m, b := w[name+"weight"], w[name+"bias"]
	y := make([]float64, len(m)/len(x))
	for i := range y {
		if b != nil {
			y[i] = float64(b[i])
		}
		for j, v := range x {
			y[i] += float64(m[i*len(x)+j]) * v
		}
	}
	return y
}

func (w weights) layerNorm(name string, x []float64) []float64 {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+1e-5)*float64(w[name+"weight"][i]) + float64(w[name+"bias"][i])
	}
	return y
}

func each(x []float64, f func(float64) float64) []float64 {
	for i := range x {
		x[i] = f(x[i])
	}
	return x
}

func geluOf(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

func reluOf(x float64) float64 { return max(x, 0) }

func wide(v []float32) (out []float64) {
	for _, x := range v {
		out = append(out, float64(x))
	}
	return out
}

func (w weights) logit(s *head.Spec, in *head.Input) float64 {
	switch s.Kind {
	case "linear":
		return w.linear("", features(s, in))[0]
	case "mlp":
		x := features(s, in)
		act := reluOf
		if s.Activation == "gelu" {
			act = geluOf
		}
		for i := range s.Widths {
			x = each(w.linear(fmt.Sprintf("layers.%d.", i), x), act)
		}
		return w.linear(fmt.Sprintf("layers.%d.", len(s.Widths)), x)[0]
	case "citer":
		x := w.linear("mlp.0.", wide(in.Hidden))
		for i := range x {
			mean, variance := float64(w["mlp.1.running_mean"][i]), float64(w["mlp.1.running_var"][i])
			x[i] = (x[i]-mean)/math.Sqrt(variance+1e-5)*float64(w["mlp.1.weight"][i]) + float64(w["mlp.1.bias"][i])
		}
		return w.linear("linear.", w.linear("mlp.4.", each(x, reluOf)))[0]
	}
	x := append(append(wide(in.Hidden), wide(in.Embedding)...), w.linear("logits_projection.", wide(in.Logits))...)
	x = w.linear("backbone.input_projection.", w.linear("combined_projection.", x))
	for i := range blocks(s) {
		at := fmt.Sprintf("backbone.blocks.%d.", i)
		y := w.linear(at+"mlp.3.", each(w.linear(at+"mlp.0.", w.layerNorm(at+"layer_norm.", x)), geluOf))
		if w[at+"dim_change.weight"] != nil {
			x = w.linear(at+"dim_change.", x)
		}
		for j := range y {
			y[j] += x[j]
		}
		x = y
	}
	return w.linear("backbone.output_layer.1.", w.layerNorm("backbone.output_layer.0.", x))[0]
}

func blocks(s *head.Spec) int {
	if len(s.Widths) == 0 {
		return 6
	}
	return len(s.Widths)
}

func features(s *head.Spec, in *head.Input) (x []float64) {
	for _, f := range s.Features {
		switch f[:3] {
		case "hid":
			x = append(x, wide(in.Hidden)...)
		case "emb":
			x = append(x, wide(in.Embedding)...)
		case "log":
			x = append(x, wide(in.Logits)...)
		case "sig":
			x = append(x, wide(in.Signals)...)
		}
	}
	return x
}

// input is a row as a model gives it: hidden states of size 1, falling logits.
func input(s *head.Spec, r *rand.Rand) *head.Input {
	in := &head.Input{Signals: []float32{r.Float32() * 3, r.Float32(), r.Float32() / 2, 10 + r.Float32()}}
	for range s.Hidden {
		in.Hidden = append(in.Hidden, float32(r.NormFloat64()))
		in.Embedding = append(in.Embedding, float32(0.05*r.NormFloat64()))
	}
	top := 12 + 5*r.Float32()
	for range s.TopLogits() {
		in.Logits = append(in.Logits, top)
		top -= r.Float32() / 3
	}
	return in
}

// specs are one of every kind and option, small enough for many rounds.
var specs = []head.Spec{
	{Kind: "linear", Features: []string{"hidden"}, Hidden: 37},
	{Kind: "linear", Features: []string{"signals", "hidden"}, Hidden: 1024},
	{Kind: "mlp", Features: []string{"hidden"}, Hidden: 96, Widths: []int{64}},
	{Kind: "mlp", Features: []string{"hidden", "embedding", "logits:20", "signals"}, Hidden: 32, Widths: []int{48, 7, 33}, Activation: "gelu"},
	{Kind: "citer", Features: []string{"hidden"}, Hidden: 96},
	{Kind: "citer", Features: []string{"hidden"}, Hidden: 33, Widths: []int{10, 70}},
	{Kind: "r2r", Features: []string{"hidden", "embedding", "logits:100"}, Hidden: 64, Widths: []int{128, 128, 128}},
	{Kind: "r2r", Features: []string{"hidden", "embedding", "logits:10"}, Hidden: 40, Widths: []int{64, 96, 48}, Expansion: 2},
}

func manifest(s head.Spec) head.Manifest {
	return head.Manifest{Name: "h", Spec: s, Meaning: "large", Models: map[string]string{}}
}
