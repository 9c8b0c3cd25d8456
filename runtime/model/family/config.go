package family

import (
	"fmt"
	"math"
)

// Config is the shape of a model. Configs are comparable.
type Config struct {
	Family  string // one of Names
	Vocab   int    // rows of the embedding, at least the tokenizer's size
	Hidden  int
	Layers  int
	Heads   int // query heads
	KVHeads int // divides Heads
	HeadDim int // even
	FFN     int
	MaxPos  int // positions 0..MaxPos-1
	Eps     float32
	Rope    Rope
	Tied    bool // the LM head is the embedding
	QKNorm  bool // RMS norm over each head's query and key
	QKVBias bool // queries, keys and values have a bias
	OBias   bool // the attention's output projection has one
	MLPBias bool // gate, up and down have one
}

// Limits that keep every product of sizes far from overflow.
const (
	maxWidth  = 1 << 20
	maxVocab  = 1 << 22
	maxLayers = 1 << 10
	maxPos    = 1 << 24
)

// check holds every size against its limits. The error names the key of the
// file that the config is from.
func (c *Config) check(keys *keys) error {
	for _, s := range []struct {
		name       string
		value, max int
	}{
		{keys.vocab, c.Vocab, maxVocab},
		{keys.hidden, c.Hidden, maxWidth},
		{keys.layers, c.Layers, maxLayers},
		{keys.heads, c.Heads, maxWidth},
		{keys.kvHeads, c.KVHeads, maxWidth},
		{keys.headDim, c.HeadDim, maxWidth},
		{keys.ffn, c.FFN, maxWidth},
		{keys.maxPos, c.MaxPos, maxPos},
	} {
		if s.value < 1 || s.value > s.max {
			return fmt.Errorf("%s: %s is %d, allowed are 1..%d: the file is damaged", keys.file, s.name, s.value, s.max)
		}
	}
	switch {
	case int64(c.Heads)*int64(c.HeadDim) > maxWidth:
		return fmt.Errorf("%s: %d heads of %d values are more than the limit of %d: the file is damaged", keys.file, c.Heads, c.HeadDim, maxWidth)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%s: %d attention heads cannot share %d key-value heads evenly: the file is damaged", keys.file, c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("%s: %s is %d, rotary positions need an even one: the file is damaged", keys.file, keys.headDim, c.HeadDim)
	case !(c.Eps > 0 && c.Eps < 1):
		return fmt.Errorf("%s: %s is %v, a number between 0 and 1 is needed: the file is damaged", keys.file, keys.eps, c.Eps)
	case !(c.Rope.Theta > 1 && c.Rope.Theta < 1e12):
		return fmt.Errorf("%s: %s is %v, a number above 1 is needed: the file is damaged", keys.file, keys.theta, c.Rope.Theta)
	}
	return c.Rope.check(keys)
}

// keys are the names that one kind of file has for what Config holds.
type keys struct {
	file                                                                    string
	vocab, hidden, layers, heads, kvHeads, headDim, ffn, maxPos             string
	eps, theta, scaling, factor, low, high, original, fast, slow, attention string
}

// stretch lets positions reach as far as a scaling of the original context
// does: files give either the original context or the stretched one as theirs.
func (c *Config) stretch() {
	if c.Rope.Kind != Yarn {
		return
	}
	if far := float64(c.Rope.Original) * c.Rope.Factor; far > float64(c.MaxPos) && far <= maxPos {
		c.MaxPos = int(math.Round(far))
	}
}

// Params counts the weights, the embedding once where it is tied.
func (c *Config) Params() int64 {
	var n int64
	for _, w := range c.Weights(HuggingFace) {
		n += int64(w.Rows) * int64(max(w.Cols, 1))
	}
	return n
}
