package model

import (
	"errors"
	"runtime"

	"tokenrouter/kernels/mem"
	"tokenrouter/kernels/vec"
)

// BlockLen is the number of positions of a KV block.
const BlockLen = vec.PageLen

// Pool is the KV memory of a model, in blocks of BlockLen positions that hold
// the keys and values of all layers and heads. It knows no sequence: each row
// of a step names its blocks, and who may write one is decided by whoever hands
// out their ids. So sequences of the same beginning can share its blocks.
//
// A block takes memory when it is first written and keeps it for all that get
// its id later. The memory lies outside the Go heap; it goes back with Close,
// or when nothing refers to the pool any more.
type Pool struct {
	m      *Model
	limit  int
	layout vec.Page
	blocks []block  // by id, as far as ids were used
	fresh  [][]byte // blocks with memory that have no id yet
	taken  int
	step   uint64 // counts the steps, to mark what one writes
	slabs  *slabs
}

// block is one block's memory and state.
type block struct {
	data []byte // a page of each layer and KV head in turn
	n    int    // positions written, from the first on
	step uint64 // the last step that writes it
	row  int    // which of that step's rows
}

// slabs is the memory of a pool. It outlives the pool for as long as it takes to
// give the memory back.
type slabs struct {
	all [][]byte
}

func (s *slabs) free() error {
	var errs []error
	for _, b := range s.all {
		errs = append(errs, mem.Free(b))
	}
	s.all = nil
	return errors.Join(errs...)
}

// NewPool makes a pool of blocks with the ids 0..blocks-1.
func (m *Model) NewPool(blocks int) *Pool {
	p := &Pool{m: m, limit: blocks, layout: vec.NewPage(m.Config.HeadDim, m.kv), slabs: &slabs{}}
	runtime.AddCleanup(p, func(s *slabs) { _ = s.free() }, p.slabs) // a failure leaves the memory where it is
	return p
}

// Close gives the memory back. The pool is not to be used after it.
func (p *Pool) Close() error {
	p.m, p.blocks, p.fresh = nil, nil, nil
	return p.slabs.free()
}

// Taken is the number of blocks that have memory.
func (p *Pool) Taken() int { return p.taken }

// BlockBytes is the memory that a block takes.
func (p *Pool) BlockBytes() int {
	return p.m.Config.Layers * p.m.Config.KVHeads * p.layout.Bytes()
}

// at is where layer l's KV head h lies in a block.
func (p *Pool) at(l, h int) int { return (l*p.m.Config.KVHeads + h) * p.layout.Bytes() }

// held is the number of positions written in a block, 0 for one never used.
func (p *Pool) held(id int32) int {
	if int(id) >= len(p.blocks) {
		return 0
	}
	return p.blocks[id].n
}

// reach makes room for the state of block id.
func (p *Pool) reach(id int32) {
	if n := int(id) + 1; n > len(p.blocks) {
		p.blocks = append(p.blocks, make([]block, n-len(p.blocks))...)
	}
}

// Slabs grow with the pool, so that a small one stays small and a large one asks
// seldom.
const (
	leastSlab = 64 << 10
	mostSlab  = 32 << 20
)

// reserve sees to it that n blocks can be taken.
func (p *Pool) reserve(n int) error {
	if n <= len(p.fresh) {
		return nil
	}
	size := p.BlockBytes()
	count := max(n-len(p.fresh), min(max(p.taken, leastSlab/size), mostSlab/size))
	count = min(count, p.limit-p.taken-len(p.fresh))
	slab, err := mem.Alloc(count * size)
	if err != nil {
		return err
	}
	p.slabs.all = append(p.slabs.all, slab)
	for ; count > 0; count-- {
		p.fresh = append(p.fresh, slab[(count-1)*size:][:size:size])
	}
	return nil
}

// take gives block id memory where it has none, and notes that it holds n
// positions.
func (p *Pool) take(id int32, n int) {
	b := &p.blocks[id]
	if b.data == nil {
		last := len(p.fresh) - 1
		b.data, p.fresh = p.fresh[last], p.fresh[:last]
		p.taken++
	}
	b.n = n
}
