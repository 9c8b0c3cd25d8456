package train

import (
	"fmt"
	"strconv"
	"strings"
)

// Shape is the size of a model of the Qwen3 architecture with a tied embedding.
type Shape struct {
	Hidden, Layers, Heads, KVHeads, HeadDim, FFN int
	Vocab                                        int // rows of the embedding
}

// What every model of this package has in common.
const (
	eps       = 1e-6
	theta     = 10000.0
	positions = 512 // the longest sequence
)

// named are the shapes that have a name, for the vocabulary of the embedded family.
var named = []struct {
	name  string
	shape Shape
}{
	{"37k", Shape{32, 2, 4, 2, 8, 88, 424}},
	{"114k", Shape{64, 2, 4, 2, 16, 160, 424}},
	{"842k", Shape{128, 4, 4, 2, 32, 384, 424}},
	{"3.7m", Shape{224, 6, 8, 4, 32, 640, 424}},
}

// ParseShape reads "842k" or another name, or hidden,layers,heads,kvheads,headdim,ffn.
func ParseShape(text string, vocab int) (Shape, error) {
	names := make([]string, len(named))
	for i, n := range named {
		if names[i] = n.name; n.name == text {
			n.shape.Vocab = vocab
			return n.shape, n.shape.check()
		}
	}
	parts := strings.Split(text, ",")
	var v [6]int
	if len(parts) != len(v) {
		return Shape{}, fmt.Errorf("%q is no shape of a model: give %s, or six numbers hidden,layers,heads,kvheads,headdim,ffn", text, strings.Join(names, ", "))
	}
	for i, p := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil {
			return Shape{}, fmt.Errorf("shape %q: %q is no number", text, p)
		}
		v[i] = n
	}
	s := Shape{v[0], v[1], v[2], v[3], v[4], v[5], vocab}
	return s, s.check()
}

// maxWidth bounds each number of a shape: what is trained here is small.
const maxWidth = 1 << 14

func (s Shape) check() error {
	for _, n := range []struct {
		name  string
		value int
	}{
		{"hidden", s.Hidden},
		{"layers", s.Layers},
		{"heads", s.Heads},
		{"KV heads", s.KVHeads},
		{"head size", s.HeadDim},
		{"FFN", s.FFN},
		{"vocabulary", s.Vocab},
	} {
		if n.value < 1 || n.value > maxWidth {
			return fmt.Errorf("a model cannot be trained with %s %d: give 1 to %d", n.name, n.value, maxWidth)
		}
	}
	switch {
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("%d heads cannot share %d KV heads evenly", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return fmt.Errorf("a head of %d values has no two halves to rotate: give an even number", s.HeadDim)
	}
	return nil
}

// Params is the number of weights.
func (s Shape) Params() int { return newLayout(s).size }

// queries is the width of all query heads, qkv of queries, keys and values.
func (s Shape) queries() int { return s.Heads * s.HeadDim }
func (s Shape) qkv() int     { return (s.Heads + 2*s.KVHeads) * s.HeadDim }
