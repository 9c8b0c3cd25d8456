package kv

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
)

// Config describes the pool of one subserver.
type Config struct {
	Tokens   int    // size; a remainder below one block stays unused
	Block    int    // tokens per block
	NoPrefix bool   // nothing is kept for later requests
	Domain   uint64 // model and tokenizer, part of every hash
}

// Pool is the KV memory of one subserver.
//
//	free    nobody holds the block and its content is forgotten
//	cached  nobody holds it; it is in the prefix tree and may be taken again
//	used    at least one sequence holds it, whether in the tree or not
//
// Blocks are handed out in a fixed order, so that equal histories give equal
// block ids.
type Pool struct {
	block  int // tokens per block
	slots  []slot
	free   []event.Block // a stack
	used   int
	cached int
	tree   tree

	round uint32   // of Mark
	marks []uint32 // scratch of Mark: the round that last saw a block
}

// slot is what is known of one block.
type slot struct {
	refs int32 // sequences that hold it
	node
}

// Seq is what one request holds of a pool: blocks in the order of its
// positions. The zero value holds nothing.
//
//	blocks  [ shared: in the tree, read only | private: written by this request ]
type Seq struct {
	blocks []event.Block // only ever appended to, or replaced: slices of it are handed out
	shared int           // leading blocks that are in the tree
	twin   bool          // the block behind them equals one in the tree that another request wrote first
}

// Size is how many whole blocks a pool of that many tokens has.
func Size(tokens, block int) (int, error) {
	if block < 1 {
		return 0, fmt.Errorf("a KV block of %d tokens holds nothing; give at least 1", block)
	}
	if tokens < block {
		return 0, fmt.Errorf("a KV pool of %d tokens is smaller than one block of %d; enlarge the pool", tokens, block)
	}
	if tokens/block > 1<<30 {
		return 0, fmt.Errorf("a KV pool of %d blocks is beyond what block ids can name; give larger blocks", tokens/block)
	}
	return tokens / block, nil
}

// New returns a pool whose blocks are all free.
func New(cfg Config) (*Pool, error) {
	total, err := Size(cfg.Tokens, cfg.Block)
	if err != nil {
		return nil, err
	}
	p := &Pool{block: cfg.Block, slots: make([]slot, total), free: make([]event.Block, total)}
	for i := range p.free {
		p.free[i] = event.Block(total - 1 - i)
	}
	p.tree = newTree(total, cfg.NoPrefix, cfg.Domain)
	return p, nil
}

// Clone returns a pool that continues as p would.
func (p *Pool) Clone() *Pool {
	q := *p
	q.slots, q.free = slices.Clone(p.slots), slices.Clone(p.free)
	q.tree = p.tree.clone()
	q.round, q.marks = 0, nil
	return &q
}

// Clone returns the same holding for a clone of the pool.
func (s Seq) Clone() Seq {
	s.blocks = slices.Clip(s.blocks) // the spare capacity belongs to the original
	return s
}

// Blocks is how many blocks of the given size hold tokens.
func Blocks(tokens, block int) int {
	if tokens <= 0 {
		return 0
	}
	return (tokens-1)/block + 1
}

// Blocks is how many blocks s holds.
func (s *Seq) Blocks() int { return len(s.blocks) }

// IDs lists the blocks from the i-th on. The slice stays as it is for ever.
func (s *Seq) IDs(i int) []event.Block { return s.blocks[i:len(s.blocks):len(s.blocks)] }

// Shared is how many leading blocks of s are in the prefix tree; s never writes
// them again.
func (s *Seq) Shared() int { return s.shared }

// Need is how many more blocks s must take to hold tokens.
func (p *Pool) Need(s *Seq, tokens int) int { return max(0, Blocks(tokens, p.block)-len(s.blocks)) }

// Grow lets s hold tokens, by free blocks first and then by cached ones, least
// recently used first. It changes nothing and returns false when both are too
// few.
func (p *Pool) Grow(s *Seq, tokens int) bool {
	need := p.Need(s, tokens)
	if need > p.Spare() {
		return false
	}
	for range need {
		if len(p.free) == 0 {
			p.free = append(p.free, p.reclaim())
		}
		b := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		p.slots[b].refs = 1
		p.used++
		s.blocks = append(s.blocks, b)
	}
	return true
}

// Release gives back everything s holds and says how many blocks that were.
// tokens are the ids of the positions that are in its KV: their full blocks
// stay cached, as the most recently used ones.
func (p *Pool) Release(s *Seq, tokens []event.Token) int {
	n := len(s.blocks)
	last := root
	if s.shared > 0 {
		last = s.blocks[s.shared-1]
	}
	for _, b := range s.blocks {
		p.let(b)
	}
	// A request that had a twin enters what it alone has only now: the blocks
	// behind a twin hang below the other's block, which it does not hold.
	i := s.shared
	for ; !p.tree.off && i < n && (i+1)*p.block <= len(tokens); i++ {
		ids := tokens[i*p.block : (i+1)*p.block]
		hash := p.hash(last, ids)
		b := p.child(last, hash, ids)
		if b == none {
			b = s.blocks[i]
			p.enter(b, last, hash, ids)
		}
		last = b
	}
	for j := n - 1; j >= s.shared; j-- {
		if !p.slots[s.blocks[j]].in {
			p.free = append(p.free, s.blocks[j])
		}
	}
	p.touch(last)
	*s = Seq{}
	return n
}

// Cut gives back what s holds behind its first n positions and returns how many
// positions are left: fewer than n where position n falls into a block of the
// tree, as that must not be written.
func (p *Pool) Cut(s *Seq, n int) int {
	keep := min(Blocks(n, p.block), len(s.blocks))
	if n%p.block != 0 && keep > 0 && keep <= s.shared && keep*p.block > n {
		keep--
	}
	for i := len(s.blocks) - 1; i >= keep; i-- {
		b := s.blocks[i]
		if p.let(b) > 0 {
			continue
		}
		if p.slots[b].in {
			p.link(b)
		} else {
			p.free = append(p.free, b)
		}
	}
	s.blocks = slices.Clip(s.blocks[:keep])
	s.shared = min(s.shared, keep)
	s.twin = s.twin && keep > s.shared
	return min(n, keep*p.block)
}

// let takes one reference from b and returns how many are left.
func (p *Pool) let(b event.Block) int32 {
	p.slots[b].refs--
	if p.slots[b].refs == 0 {
		p.used--
	}
	return p.slots[b].refs
}

// Unmark begins a new count of distinct blocks.
func (p *Pool) Unmark() {
	if p.marks == nil {
		p.marks = make([]uint32, len(p.slots))
	}
	if p.round++; p.round == 0 {
		clear(p.marks)
		p.round = 1
	}
}

// Mark counts the blocks of s that were not marked since Unmark.
func (p *Pool) Mark(s *Seq) (n int) {
	for _, b := range s.blocks {
		n += p.markOne(b)
	}
	return n
}

// MarkHit is Mark for a beginning that was found.
func (p *Pool) MarkHit(h Hit) (n int) {
	for b := h.last; h.Blocks > 0 && b != root; b = p.slots[b].parent {
		n += p.markOne(b)
	}
	return n
}

func (p *Pool) markOne(b event.Block) int {
	if p.marks[b] == p.round {
		return 0
	}
	p.marks[b] = p.round
	return 1
}

// Free is how many blocks nobody holds and nobody can find.
func (p *Pool) Free() int { return len(p.free) }

// Cached is how many blocks nobody holds that a request may still find.
func (p *Pool) Cached() int { return p.cached }

// Spare is how many blocks can be taken: free or cached.
func (p *Pool) Spare() int { return len(p.free) + p.cached }

// Used is how many blocks are held.
func (p *Pool) Used() int { return p.used }

// Total is the size of the pool in blocks.
func (p *Pool) Total() int { return len(p.slots) }

// Block is the size of a block in tokens.
func (p *Pool) Block() int { return p.block }

// Holds says whether s has blocks for tokens.
func (p *Pool) Holds(s *Seq, tokens int) bool { return len(s.blocks) >= Blocks(tokens, p.block) }
