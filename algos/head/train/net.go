package train

import (
	"fmt"
	"math"

	"tokenrouter/algos/head"
	"tokenrouter/runtime/rng"
)

// network is a head in training: the chain, and its tensors by name.
type network struct {
	spec  head.Spec
	chain chain
	all   []*param
	norms []*batchNorm
	seed  uint64
}

// newNetwork builds the network of a spec with weights drawn by a seed: uniform
// within 1 / sqrt(inputs), as torch.nn.Linear does. Without bias the last layer of a
// linear head has none.
func newNetwork(spec head.Spec, bias bool, seed uint64) (*network, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	n := &network{spec: spec, seed: seed}
	shapes := map[string][]int{}
	for _, t := range spec.Tensors() {
		shapes[t.Name] = t.Shape
	}
	linear := func(name string) *dense {
		shape, ok := shapes[name+"weight"]
		if !ok {
			return nil
		}
		d := &dense{out: shape[0], in: shape[1], w: newParam(name+"weight", shape[0]*shape[1], true)}
		n.draw(d.w, d.in)
		if bias || spec.Kind != "linear" {
			d.b = newParam(name+"bias", d.out, false)
			n.draw(d.b, d.in)
		}
		return d
	}
	norm := func(name string) (w, b *param) {
		w, b = newParam(name+"weight", shapes[name+"weight"][0], false), newParam(name+"bias", shapes[name+"weight"][0], false)
		for i := range w.value {
			w.value[i] = 1
		}
		return w, b
	}
	switch spec.Kind {
	case "linear":
		n.chain = chain{linear("")}
	case "mlp":
		for i := 0; ; i++ {
			d := linear(fmt.Sprintf("layers.%d.", i))
			if d == nil {
				break
			}
			if i > 0 && spec.Activation == "gelu" {
				n.chain = append(n.chain, &gelu{})
			} else if i > 0 {
				n.chain = append(n.chain, &relu{})
			}
			n.chain = append(n.chain, d)
		}
	case "citer":
		w, b := norm("mlp.1.")
		bn := &batchNorm{width: len(w.value), w: w, b: b, runMean: make([]float32, len(w.value)), runVar: make([]float32, len(w.value))}
		for i := range bn.runVar {
			bn.runVar[i] = 1
		}
		n.norms = append(n.norms, bn)
		n.chain = chain{linear("mlp.0."), bn, &relu{}, linear("mlp.4."), linear("linear.")}
	case "r2r":
		n.chain = chain{
			&tail{keep: 2 * spec.Hidden, last: linear("logits_projection.")},
			linear("combined_projection."), linear("backbone.input_projection."),
		}
		for i := 0; ; i++ {
			at := fmt.Sprintf("backbone.blocks.%d.", i)
			if shapes[at+"layer_norm.weight"] == nil {
				break
			}
			w, b := norm(at + "layer_norm.")
			n.chain = append(n.chain, &residual{
				inner:  chain{&layerNorm{width: len(w.value), w: w, b: b}, linear(at + "mlp.0."), &gelu{}, linear(at + "mlp.3.")},
				change: linear(at + "dim_change."),
			})
		}
		w, b := norm("backbone.output_layer.0.")
		n.chain = append(n.chain, &layerNorm{width: len(w.value), w: w, b: b}, linear("backbone.output_layer.1."))
	}
	n.all = n.chain.params()
	return n, nil
}

func (n *network) draw(p *param, inputs int) {
	key := rng.Key{Seed: n.seed, Req: uint64(len(n.all)), Purpose: rng.Weight}
	n.all = append(n.all, p)
	bound := 1 / math.Sqrt(float64(inputs))
	for i := range p.value {
		p.value[i] = float32(bound * (2*key.Float64(i) - 1))
	}
}

// tensors copies the weights and the running statistics.
func (n *network) tensors() map[string][]float32 {
	out := map[string][]float32{}
	for _, p := range n.all {
		out[p.name] = append([]float32{}, p.value...)
	}
	for _, b := range n.norms {
		out["mlp.1.running_mean"] = append([]float32{}, b.runMean...)
		out["mlp.1.running_var"] = append([]float32{}, b.runVar...)
	}
	return out
}

// adamW is a step of Loshchilov and Hutter 2019, algorithm 2, for gradients that
// were summed up; it clears them.
func (n *network) adamW(step int, rate float64, o *Options) {
	c1, c2 := 1-math.Pow(o.Beta1, float64(step)), 1-math.Pow(o.Beta2, float64(step))
	for _, p := range n.all {
		keep := 1.0
		if p.decay {
			keep = 1 - rate*o.Decay
		}
		for i, g32 := range p.grad {
			g := float64(g32)
			m := o.Beta1*p.first[i] + (1-o.Beta1)*g
			v := o.Beta2*p.second[i] + (1-o.Beta2)*g*g
			p.first[i], p.second[i] = m, v
			p.value[i] = float32(keep*float64(p.value[i]) - rate*(m/c1)/(math.Sqrt(v/c2)+adamEps))
		}
		clear(p.grad)
	}
}

const adamEps = 1e-8
