package kv

import (
	"slices"

	"tokenrouter/runtime/event"
)

// Block ids that name none.
const (
	root event.Block = -1 // the parent of first blocks
	none event.Block = -2
)

// tree is the prefix cache: a radix tree with one node per full block, so the
// node of a block is the block itself. The children of all nodes lie in one hash
// table; what is found there counts only if parent and token ids are equal
// (case D3: a hash alone would hand one user's text to another).
//
// Whoever holds a node holds its ancestors, so a node is held at least as often
// as each of its children, and the cached nodes are closed downwards.
type tree struct {
	off     bool
	collide bool
	domain  uint64
	heads   []event.Block // of the chains of the hash table; a power of two
	ids     []event.Token // token ids of the nodes, by block; made when the first one enters

	// The cached nodes in the order of their last use: a logical counter, no
	// clock. A child is always before its parent, as Release lists it so; the
	// oldest is therefore always a leaf.
	oldest, newest event.Block
}

// node is the place of a block in the tree.
type node struct {
	in           bool
	listed       bool // among the cached
	kids         int32
	parent       event.Block
	next         event.Block // in its chain of the hash table
	older, newer event.Block
	hash         uint64
}

func newTree(total int, off bool, domain uint64) tree {
	t := tree{off: off, domain: domain, oldest: none, newest: none}
	if off {
		return t
	}
	size := 1
	for size < total {
		size *= 2
	}
	t.heads = make([]event.Block, size)
	for i := range t.heads {
		t.heads[i] = none
	}
	return t
}

func (t tree) clone() tree {
	t.heads, t.ids = slices.Clone(t.heads), slices.Clone(t.ids)
	return t
}

// Collide makes all hashes equal, for tests: token ids alone must then tell
// blocks apart. The tree must still be empty.
func (p *Pool) Collide() { p.tree.collide = true }

// Hit is a beginning that the pool still knows. It stays valid until blocks are
// taken from the pool by Grow.
type Hit struct {
	Blocks int
	last   event.Block
}

// Idle is how many blocks of a beginning are cached: taking them leaves fewer to
// spare.
func (p *Pool) Idle(h Hit) (n int) {
	for b := h.last; h.Blocks > 0 && b != root && p.slots[b].refs == 0; b = p.slots[b].parent {
		n++
	}
	return n
}

// Match finds the longest beginning of tokens that is in the tree, in full
// blocks, leaving at least one token to be computed: without one there are no
// logits to sample from (case D1). It changes nothing, not even the order of
// reclaiming (case D6).
func (p *Pool) Match(tokens []event.Token) Hit {
	h := Hit{last: root}
	if p.tree.off || p.tree.ids == nil {
		return h
	}
	for at := 0; at+p.block < len(tokens); at += p.block {
		ids := tokens[at : at+p.block]
		b := p.child(h.last, p.hash(h.last, ids), ids)
		if b == none {
			break
		}
		h.Blocks++
		h.last = b
	}
	return h
}

// Take lets s, which holds nothing, hold what Match found. It makes room for a
// sequence of most tokens.
func (p *Pool) Take(s *Seq, h Hit, most int) {
	s.blocks = make([]event.Block, h.Blocks, max(h.Blocks, Blocks(most, p.block)))
	s.shared, s.twin = h.Blocks, false
	for i, b := h.Blocks-1, h.last; i >= 0; i, b = i-1, p.slots[b].parent {
		s.blocks[i] = b
		if p.slots[b].listed {
			p.unlink(b)
		}
		if p.slots[b].refs == 0 {
			p.used++
		}
		p.slots[b].refs++
	}
}

// Index enters the full blocks of s into the tree. tokens are the ids of the
// positions in its KV that s will not write again. A block that another request
// entered first stays a private twin: its id is known to the runner and cannot
// be exchanged. Nothing behind it enters until Release.
func (p *Pool) Index(s *Seq, tokens []event.Token) {
	for !p.tree.off && !s.twin && s.shared < len(s.blocks) && (s.shared+1)*p.block <= len(tokens) {
		parent := root
		if s.shared > 0 {
			parent = s.blocks[s.shared-1]
		}
		ids := tokens[s.shared*p.block : (s.shared+1)*p.block]
		hash := p.hash(parent, ids)
		if p.child(parent, hash, ids) != none {
			s.twin = true
			return
		}
		p.enter(s.blocks[s.shared], parent, hash, ids)
		s.shared++
	}
}

// hash is that of ids below parent. It is chained from the domain on, so that
// equal blocks behind different beginnings rarely meet.
func (p *Pool) hash(parent event.Block, ids []event.Token) uint64 {
	if p.tree.collide {
		return 0
	}
	h := p.tree.domain ^ 0x9e3779b97f4a7c15
	if parent != root {
		h = p.slots[parent].hash
	}
	for _, t := range ids {
		h = (h ^ uint64(uint32(t))) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	return h
}

// child is the node below parent with those ids, none if there is none.
func (p *Pool) child(parent event.Block, hash uint64, ids []event.Token) event.Block {
	b := p.tree.heads[hash&uint64(len(p.tree.heads)-1)]
	for ; b != none; b = p.slots[b].next {
		n := &p.slots[b]
		if n.hash == hash && n.parent == parent && slices.Equal(p.idsOf(b), ids) {
			break
		}
	}
	return b
}

func (p *Pool) idsOf(b event.Block) []event.Token {
	return p.tree.ids[int(b)*p.block : (int(b)+1)*p.block]
}

func (p *Pool) enter(b, parent event.Block, hash uint64, ids []event.Token) {
	if p.tree.ids == nil {
		p.tree.ids = make([]event.Token, len(p.slots)*p.block)
	}
	head := &p.tree.heads[hash&uint64(len(p.tree.heads)-1)]
	p.slots[b].node = node{in: true, parent: parent, next: *head, older: none, newer: none, hash: hash}
	*head = b
	copy(p.idsOf(b), ids)
	if parent != root {
		p.slots[parent].kids++
	}
}

// reclaim takes the least recently used leaf out of the tree. There must be a
// cached block.
func (p *Pool) reclaim() event.Block {
	b := p.tree.oldest
	p.unlink(b)
	n := &p.slots[b]
	at := &p.tree.heads[n.hash&uint64(len(p.tree.heads)-1)]
	for *at != b {
		at = &p.slots[*at].next
	}
	*at = n.next
	if n.parent != root {
		p.slots[n.parent].kids--
	}
	n.node = node{}
	return b
}

// touch lists the nodes from b up to the root that nobody holds as most recently
// used, children before parents.
func (p *Pool) touch(b event.Block) {
	for ; b != root; b = p.slots[b].parent {
		if p.slots[b].refs > 0 {
			continue
		}
		if p.slots[b].listed {
			p.unlink(b)
		}
		p.link(b)
	}
}

func (p *Pool) link(b event.Block) {
	n := &p.slots[b]
	n.listed, n.older, n.newer = true, p.tree.newest, none
	if p.tree.newest == none {
		p.tree.oldest = b
	} else {
		p.slots[p.tree.newest].newer = b
	}
	p.tree.newest = b
	p.cached++
}

func (p *Pool) unlink(b event.Block) {
	n := &p.slots[b]
	if n.older == none {
		p.tree.oldest = n.newer
	} else {
		p.slots[n.older].newer = n.newer
	}
	if n.newer == none {
		p.tree.newest = n.older
	} else {
		p.slots[n.newer].older = n.older
	}
	n.listed, n.older, n.newer = false, none, none
	p.cached--
}
