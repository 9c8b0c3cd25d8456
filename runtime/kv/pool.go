package kv

import "fmt"

// Pool is the KV memory of one subserver. Its zero value is an empty pool; a
// copy is an independent pool of the same state.
type Pool struct {
	block int // tokens per block
	total int // blocks
	used  int // blocks
}

// Seq is what one request holds of a pool. The zero value holds nothing.
type Seq struct{ blocks int }

// New returns a pool of tokens/block whole blocks; a remainder of tokens stays
// unused.
func New(tokens, block int) (Pool, error) {
	if block < 1 {
		return Pool{}, fmt.Errorf("a KV block of %d tokens holds nothing; give at least 1", block)
	}
	if tokens < block {
		return Pool{}, fmt.Errorf("a KV pool of %d tokens is smaller than one block of %d; enlarge the pool", tokens, block)
	}
	return Pool{block: block, total: tokens / block}, nil
}

// Blocks is how many blocks of the given size hold tokens.
func Blocks(tokens, block int) int {
	if tokens <= 0 {
		return 0
	}
	return (tokens-1)/block + 1
}

// Blocks is how many blocks s holds.
func (s Seq) Blocks() int { return s.blocks }

// Need is how many more blocks s must take to hold tokens.
func (p *Pool) Need(s Seq, tokens int) int { return max(0, Blocks(tokens, p.block)-s.blocks) }

// Grow lets s hold tokens. It changes nothing and returns false when the pool
// has too few free blocks.
func (p *Pool) Grow(s *Seq, tokens int) bool {
	need := p.Need(*s, tokens)
	if need > p.Free() {
		return false
	}
	p.used += need
	s.blocks += need
	return true
}

// Release gives back everything s holds and says how many blocks that were.
func (p *Pool) Release(s *Seq) int {
	n := s.blocks
	p.used -= n
	s.blocks = 0
	return n
}

// Free is how many blocks nobody holds.
func (p *Pool) Free() int { return p.total - p.used }

// Used is how many blocks are held.
func (p *Pool) Used() int { return p.used }

// Total is the size of the pool in blocks.
func (p *Pool) Total() int { return p.total }

// Block is the size of a block in tokens.
func (p *Pool) Block() int { return p.block }

// Holds says whether s has blocks for tokens.
func (p *Pool) Holds(s Seq, tokens int) bool { return s.blocks >= Blocks(tokens, p.block) }
