package train

import "fmt"

// Example is one sequence to learn from.
type Example struct {
	IDs []int32
	// Learn says for each token whether its prediction counts; the first is
	// predicted from nothing and never counts.
	Learn []bool
}

// Tokens is what the example costs: the last token is only predicted.
func (e Example) Tokens() int { return len(e.IDs) - 1 }

func (e Example) check(vocab int) error {
	switch {
	case len(e.IDs) != len(e.Learn):
		return fmt.Errorf("an example has %d tokens and %d marks", len(e.IDs), len(e.Learn))
	case len(e.IDs) < 2 || e.Tokens() > positions:
		return fmt.Errorf("an example of %d tokens cannot be learnt: give 2 to %d", len(e.IDs), positions+1)
	}
	for _, id := range e.IDs {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("an example has token %d of a vocabulary of %d", id, vocab)
		}
	}
	return nil
}

// batch is sequences back to back. No token stands in for another: rows of
// matrices are tokens, only attention knows where a sequence ends.
type batch struct {
	ids    []int32
	pos    []int32
	starts []int // of each sequence, and the end of the last
	rows   []int // tokens whose next one counts
	want   []int32
}

func (b *batch) reset() {
	b.ids, b.pos, b.rows, b.want = b.ids[:0], b.pos[:0], b.rows[:0], b.want[:0]
	b.starts = append(b.starts[:0], 0)
}

func (b *batch) add(e Example) {
	for i := range e.Tokens() {
		if e.Learn[i+1] {
			b.rows = append(b.rows, len(b.ids))
			b.want = append(b.want, e.IDs[i+1])
		}
		b.ids = append(b.ids, e.IDs[i])
		b.pos = append(b.pos, int32(i))
	}
	b.starts = append(b.starts, len(b.ids))
}
