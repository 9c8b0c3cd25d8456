package model

import (
	"tokenrouter/kernels/matmul"
	"tokenrouter/kernels/team"
	"tokenrouter/kernels/vec"
)

// Workspace holds the intermediate values of a step and its results. The zero
// value is ready; it grows to the largest step seen and then allocates nothing.
// It is not to be copied.
type Workspace struct {
	// Seat gives the cores that a step is split over; nil is the calling
	// goroutine alone. The results are the same, bit for bit.
	Seat *team.Seat

	do      phases
	workers int
	per     []worker

	// The step under way. tokens are the positions it feeds, runs those that lie
	// in one block of one row.
	m      *Model
	p      *Pool
	tokens []token
	runs   []span
	pages  [][]byte // the blocks of all rows in turn
	single bool     // each row has one token, in a block that no other row uses
	again  bool     // some rows store what a block holds already, others may read it
	wanted int      // rows with a result
	work   int      // multiply-adds of a KV head's attention in a layer

	direct bool // a KV head's part of the attention is packed at once

	// The phase under way.
	layer  int
	w      *layer
	norm   []float32
	bias   []float32
	matrix *matmul.Matrix
	in     *matmul.Input
	y      []float32
	claim  int // rows of the matrix at a time
	n      int // columns

	// Columns of the values between phases, one a token: x the residual stream,
	// out what is added to it. The inputs of products are packed.
	x, qkv, att, out     []float32
	narrow, middle, wide matmul.Input

	// Results, see step_head.go.
	hidden, logits []float32
	columns        []column // of the LM head
	resultAt       []result // by row
	columnAt       []int    // by row with a result: its column, -1 for none
	segments       []vec.Part
	tops           []vec.Top
	width, vocab   int
}

// token is one position of a step under way.
type token struct {
	id    int32
	pos   int
	col   int // its column of qkv
	first int // where its row's blocks begin in the workspace's pages
}

// span is some neighbouring tokens of a row.
type span struct{ first, n int }

// phases are the parts of a step that workers claim, one call an item. They are
// made once: a function value made in a step would be garbage.
type phases struct {
	of *Workspace // the workspace they belong to

	embed, mul, store, attend, storeAttend, pack, join, gate, final, head, measure func(worker, i int)
}

// worker is the scratch memory of one worker.
type worker struct {
	norm, act, tile, att, scratch []float32
}

// alone is the number of multiply-adds below which a phase is not worth a
// second core: what it takes to hand over and to come back, about a
// microsecond.
const alone = 64 << 10

func (ws *Workspace) begin(m *Model, p *Pool) {
	if ws.do.of != ws {
		ws.do = phases{
			ws, ws.embedPart, ws.mulPart, ws.storePart, ws.attendPart, ws.storeAttendPart,
			ws.packPart, ws.joinPart, ws.gatePart, ws.finalPart, ws.headPart, ws.measurePart,
		}
	}
	ws.m, ws.p = m, p
	ws.Seat.Begin()
}

// end lets go of the step, so that a workspace keeps neither a model nor a pool
// in memory.
func (ws *Workspace) end() {
	ws.Seat.End()
	ws.m, ws.p, ws.w, ws.matrix, ws.in, ws.y, ws.norm, ws.bias = nil, nil, nil, nil, nil, nil, nil, nil
	clear(ws.pages)
	ws.pages = ws.pages[:0]
}

// each calls f for 0..n-1, on all workers where there is work for them: about
// as much as that number of multiply-adds.
func (ws *Workspace) each(n, work int, f func(worker, i int)) {
	if work < alone {
		for i := range n {
			f(0, i)
		}
		return
	}
	ws.Seat.Do(n, f)
}

// sized gives a slice of n values, reusing s where it is large enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// layout makes room for a step.
func (ws *Workspace) layout(m *Model, p *Pool, heads int) {
	c, n := &m.Config, len(ws.tokens)
	w := &m.layers[0]
	ws.workers = ws.Seat.Workers()
	ws.x = sized(ws.x, n*c.Hidden)
	ws.out = sized(ws.out, n*w.o.Padded())
	ws.qkv = sized(ws.qkv, n*w.qkv.Padded())
	group := c.Heads / c.KVHeads * c.HeadDim
	if ws.direct = group%32 == 0; !ws.direct {
		ws.att = sized(ws.att, n*c.Heads*c.HeadDim)
	}
	longest := 1
	for _, r := range ws.runs {
		longest = max(longest, r.n)
	}
	ws.per = sized(ws.per, ws.workers)
	claim := 0 // the largest: formats may differ from layer to layer
	for l := range m.layers {
		claim = max(claim, gateClaim(m.layers[l].gateUp, ws.workers))
	}
	for i := range ws.per {
		b := &ws.per[i]
		b.norm = sized(b.norm, c.Hidden)
		b.act = sized(b.act, claim/2)
		b.tile = sized(b.tile, max(n*claim, heads*vec.Segment))
		b.att = sized(b.att, longest*group)
		b.scratch = sized(b.scratch, p.layout.Scratch(longest*c.Heads/c.KVHeads))
	}
	ws.width, ws.vocab = c.Hidden, c.Vocab
}

// embedPart puts a token's embedding into the residual stream and normalises it
// for the first layer.
func (ws *Workspace) embedPart(worker, i int) {
	d := ws.m.Config.Hidden
	x := ws.x[i*d:][:d]
	ws.m.embed.Row(x, int(ws.tokens[i].id))
	ws.enter(worker, i, x)
}

// join adds what a product gave to the residual stream and normalises the sum
// for the next product.
func (ws *Workspace) join(bias, norm []float32, next matmul.Format, n int) {
	ws.bias, ws.norm = bias, norm
	ws.narrow.Reset(next, len(norm), n)
	ws.each(n, 4*n*len(norm), ws.do.join)
}

func (ws *Workspace) joinPart(worker, i int) { ws.enter(worker, i, ws.added(i)) }

// added is column i of the residual stream with the product added.
func (ws *Workspace) added(i int) []float32 {
	d := ws.m.Config.Hidden
	x := ws.x[i*d:][:d]
	vec.Add(x, ws.out[i*ws.w.o.Padded():][:d])
	if ws.bias != nil {
		vec.Add(x, ws.bias)
	}
	return x
}

// enter normalises a column of the residual stream into the input of a product.
func (ws *Workspace) enter(worker, i int, x []float32) {
	t := ws.per[worker].norm
	vec.RMSNorm(t, x, ws.norm, ws.m.Config.Eps)
	ws.narrow.Put(i, 0, t)
}

// gateStep divides the rows that a claim of gate and up takes: 16 of them give
// 8 values, and an input is filled by 32.
const gateStep = 64

// gateClaim is the number of rows of gate and up at a time.
func gateClaim(w *matmul.Matrix, workers int) int {
	return parts(w.Chunk(workers), gateStep) * gateStep
}

// gate computes the activations of SwiGLU (Shazeer 2020) for n columns, straight
// into the input of the last product of the layer.
func (ws *Workspace) gate(n int) {
	w := ws.w.gateUp
	ws.n, ws.claim = n, gateClaim(w, ws.workers)
	ws.wide.Reset(ws.w.down.Format, ws.w.down.Cols, n)
	ws.each(parts(w.Rows, ws.claim), n*w.Rows*w.Cols, ws.do.gate)
}

func (ws *Workspace) gatePart(worker, i int) {
	w, p := ws.w.gateUp, &ws.per[worker]
	from := i * ws.claim
	n := min(ws.claim, w.Rows-from)
	w.MulTile(p.tile, ws.claim, &ws.narrow, from, from+n)
	at := from / 2
	act := p.act[:n/2]
	for c := range ws.n {
		gu := p.tile[c*ws.claim:][:n]
		if ws.w.gateUpBias != nil {
			vec.Add(gu, ws.w.gateUpBias[from:])
		}
		vec.SiLUMulGroups(act, gu)
		ws.wide.Put(c, at, act[:min(len(act), ws.w.down.Cols-at)])
	}
}
