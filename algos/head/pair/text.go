package pair

import (
	"slices"

	"tokenrouter/runtime/model"
)

// Side is one of the two models.
type Side int

// The sides.
const (
	Small Side = iota
	Large
)

// Text is a sequence that both models can go on with.
type Text struct {
	Tokens []int32
	Prompt int // tokens of the prompt

	kv [2]cache
}

// cache is what one model has of a text.
type cache struct {
	blocks []int32
	fed    int
}

// NewText begins a text.
func NewText(prompt []int32) *Text {
	return &Text{Tokens: slices.Clone(prompt), Prompt: len(prompt)}
}

// Output is what was written behind the prompt.
func (t *Text) Output() []int32 { return t.Tokens[t.Prompt:] }

// Fork begins a text with the same tokens. Whole blocks of KV are shared, what lies
// in the last one is fed again. Both are to be freed.
func (p *Pair) Fork(t *Text) *Text {
	out := &Text{Tokens: slices.Clone(t.Tokens), Prompt: t.Prompt}
	for s := range t.kv {
		from, to := &t.kv[s], &out.kv[s]
		to.fed = from.fed / model.BlockLen * model.BlockLen
		to.blocks = slices.Clone(from.blocks[:to.fed/model.BlockLen])
		for _, b := range to.blocks {
			p.sides[s].users[b]++
		}
	}
	return out
}

// Free gives the KV of a text back.
func (p *Pair) Free(t *Text) {
	for s := range t.kv {
		for _, b := range t.kv[s].blocks {
			p.sides[s].release(b)
		}
		t.kv[s] = cache{}
	}
}

// reserve gives a text the blocks for n positions.
func (s *side) reserve(c *cache, n int) {
	for len(c.blocks)*model.BlockLen < n {
		var b int32
		if k := len(s.free); k > 0 {
			b, s.free = s.free[k-1], s.free[:k-1]
		} else {
			b = int32(len(s.users))
			s.users = append(s.users, 0)
		}
		s.users[b] = 1
		c.blocks = append(c.blocks, b)
	}
}

func (s *side) release(b int32) {
	if s.users[b]--; s.users[b] == 0 {
		s.free = append(s.free, b)
	}
}
