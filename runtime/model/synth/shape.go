package synth

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is what a model looks like.
type Shape struct {
	Name      string
	Family    string // "qwen3", "qwen2" or "llama"
	Layers    int
	Hidden    int
	Heads     int // query heads
	KVHeads   int // divides Heads
	HeadDim   int // even
	FFN       int
	Vocab     int // rows of the embedding, at least the tokenizer's size
	MaxPos    int
	RopeTheta float64
	Eps       float32
	Tied      bool // the LM head is the embedding
	Rope      Rope // the zero value is no scaling
}

// Rope is a scaling of the rotary positions.
type Rope struct {
	Kind      string // "", "linear", "yarn" or "llama3"
	Factor    float64
	Low, High float64 // llama3: low_freq_factor and high_freq_factor
	Original  int     // positions the model was trained with before the scaling
}

// qwen3 is a shape of the sizes that the engine is measured with.
func qwen3(name string, layers, hidden, heads, kvHeads, headDim, ffn, vocab, maxPos int) Shape {
	return Shape{
		Name: name, Family: "qwen3", Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads, HeadDim: headDim,
		FFN: ffn, Vocab: vocab, MaxPos: maxPos, RopeTheta: 1e6, Eps: 1e-6, Tied: true,
	}
}

// Shapes lists the shapes with a name, from small to large. The last is that
// of the published Qwen3-0.6B.
func Shapes() []Shape {
	return []Shape{
		qwen3("5m", 6, 256, 4, 2, 64, 768, 4096, 4096),
		qwen3("30m", 8, 512, 8, 4, 64, 1536, 16384, 4096),
		qwen3("150m", 18, 768, 12, 4, 64, 2304, 32768, 4096),
		qwen3("qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, 40960),
	}
}

// Find gives a shape by its name.
func Find(name string) (Shape, error) {
	all := Shapes()
	i := slices.IndexFunc(all, func(s Shape) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
		}
		return Shape{}, fmt.Errorf("there is no shape %q: choose one of %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

// Params is the number of weights.
func (s Shape) Params() int64 {
	var n int64
	for _, m := range s.matrices() {
		n += int64(m.rows) * int64(m.cols)
	}
	return n
}

// check refuses what no model can be.
func (s Shape) check() error {
	for _, v := range []struct {
		name  string
		value int
	}{
		{"layers", s.Layers},
		{"hidden", s.Hidden},
		{"heads", s.Heads},
		{"kv heads", s.KVHeads},
		{"head dim", s.HeadDim},
		{"ffn", s.FFN},
		{"vocab", s.Vocab},
		{"positions", s.MaxPos},
	} {
		if v.value < 1 || v.value > 1<<22 {
			return fmt.Errorf("shape %s: %s is %d, allowed are 1..%d", s.Name, v.name, v.value, 1<<22)
		}
	}
	_, known := families[s.Family]
	switch {
	case !known:
		return fmt.Errorf("shape %s: the family is %q, known are llama, qwen2, qwen3", s.Name, s.Family)
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("shape %s: %d heads cannot share %d KV heads evenly", s.Name, s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return fmt.Errorf("shape %s: the head dim is %d, rotary positions need an even one", s.Name, s.HeadDim)
	case !(s.Eps > 0 && s.RopeTheta > 1):
		return fmt.Errorf("shape %s: eps is %v and rope theta %v, above 0 and above 1 are needed", s.Name, s.Eps, s.RopeTheta)
	case s.Rope.Kind != "" && s.Rope.Kind != "linear" && s.Rope.Kind != "yarn" && s.Rope.Kind != "llama3":
		return fmt.Errorf("shape %s: the rope scaling is %q, known are linear, yarn, llama3", s.Name, s.Rope.Kind)
	case s.Rope.Kind != "" && !(s.Rope.Factor >= 1):
		return fmt.Errorf("shape %s: the rope factor is %v, at least 1 is needed", s.Name, s.Rope.Factor)
	case s.Rope.Kind == "llama3" && !(s.Rope.Low > 0 && s.Rope.High > s.Rope.Low && s.Rope.Original > 0):
		return fmt.Errorf("shape %s: rope scaling llama3 needs low and high factors, 0 < low < high, and the original positions", s.Name)
	}
	return nil
}
