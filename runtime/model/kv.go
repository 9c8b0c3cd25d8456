package model

import "tokenrouter/kernels"

// BlockLen is the number of positions of a KV block.
const BlockLen = 16

// Pool is the KV memory of a model, in blocks of BlockLen positions that hold
// the keys and values of all layers and heads. It knows no sequence: each row
// of a step names its blocks, and who may write one is decided by whoever hands
// out their ids. So sequences of the same beginning can share its blocks.
//
// A block takes memory when it is first written and keeps it for all that get
// its id later.
type Pool struct {
	m      *Model
	limit  int
	layout kernels.Page
	blocks []block // by id, as far as ids were used
	taken  int
	step   uint64 // counts the steps, to mark what one writes
}

// block is one block's memory and state.
type block struct {
	tiles []kernels.Tile // of each layer and KV head in turn
	n     int            // positions written, from the first on
	step  uint64         // the last step that writes it
	row   int            // which of that step's rows
}

// NewPool makes a pool of blocks with the ids 0..blocks-1.
func (m *Model) NewPool(blocks int) *Pool {
	return &Pool{m: m, limit: blocks, layout: kernels.NewPage(m.Config.HeadDim, BlockLen)}
}

// Taken is the number of blocks that have memory.
func (p *Pool) Taken() int { return p.taken }

// at is where layer l's KV head h lies in a block.
func (p *Pool) at(l, h int) int { return (l*p.m.Config.KVHeads + h) * p.layout.Tiles() }

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

// take gives block id memory where it has none, and notes that it holds n
// positions.
func (p *Pool) take(id int32, n int) {
	b := &p.blocks[id]
	if b.tiles == nil {
		c := &p.m.Config
		b.tiles = make([]kernels.Tile, c.Layers*c.KVHeads*p.layout.Tiles())
		p.taken++
	}
	b.n = n
}
