package model

import (
	"math"

	"tokenrouter/kernels"
)

// Row is one sequence's part of a step: Tokens at positions Start, Start+1, ...
// Its KV lies in the pool's blocks Blocks: position p in Blocks[p/BlockLen].
// What is before Start was written by earlier steps, for this sequence or for
// another that begins with the same tokens, and is only read; what is at Start
// and behind is overwritten. Blocks beyond the row's last position are allowed.
type Row struct {
	Blocks []int32
	Start  int
	Tokens []int32 // at least one
	Logits bool    // wanted: the logits after the last token
	Hidden bool    // wanted: the hidden state of the last token, after the final norm
}

// token is one position of a step under way.
type token struct {
	pos   int
	row   int
	first int // where its row's KV begins in the workspace's pages
}

// Workspace holds the intermediate values of a step and its results. The zero
// value is ready; it grows to the largest step seen and then allocates nothing.
type Workspace struct {
	// Threads that large products are split over; 0 and 1 are one. The results
	// are the same, bit for bit.
	Threads int

	tokens         []token
	pages          [][]kernels.Tile // the blocks of all rows in turn
	x, y, q, kv    []float32
	att, out, ffn  []float32
	act, scratch   []float32
	hidden, logits []float32
	hiddenAt       []int // by row: column of hidden, -1 if not wanted
	logitsAt       []int // by row: column of logits, -1 if not wanted
	width, vocab   int
}

// Logits are the raw logits after row i's last token, one per vocabulary row;
// nil if the row did not want them. Valid, and the caller's to change, until
// the next Forward.
func (ws *Workspace) Logits(i int) []float32 { return column(ws.logits, ws.logitsAt, i, ws.vocab) }

// Hidden is row i's last hidden state after the final norm; nil if the row did
// not want it. Valid until the next Forward.
func (ws *Workspace) Hidden(i int) []float32 { return column(ws.hidden, ws.hiddenAt, i, ws.width) }

func column(v []float32, at []int, i, n int) []float32 {
	if i < 0 || i >= len(at) || at[i] < 0 {
		return nil
	}
	return v[at[i]*n:][:n:n]
}

// sized gives a slice of n values, reusing s where it is large enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// Forward runs one step over rows: prompts, parts of prompts and single tokens
// mixed. All tokens pass through the matrices together. An error that a row is
// to blame for is a *RowError; on an error nothing in the pool has changed.
func (m *Model) Forward(ws *Workspace, pool *Pool, rows []Row) error {
	if err := m.admit(ws, pool, rows); err != nil {
		return err
	}
	c := &m.Config
	d, dim := c.Hidden, c.HeadDim
	n := len(ws.tokens)
	for i := range ws.tokens {
		t := &ws.tokens[i]
		m.embed.Row(ws.x[i*d:][:d], int(rows[t.row].Tokens[t.pos-rows[t.row].Start]))
	}
	scale := float32(1 / math.Sqrt(float64(dim)))
	for l := range m.layers {
		w := &m.layers[l]
		normRows(ws.y, ws.x, w.norm1, n, c.Eps)
		m.store(ws, pool, l, n)
		if l == len(m.layers)-1 {
			n = ws.keepWanted(rows, d)
		}
		m.attend(ws, pool, l, n, scale)
		ws.mul(ws.out, &w.o, ws.att, n)
		kernels.Add(ws.x[:n*d], ws.out)
		normRows(ws.y, ws.x, w.norm2, n, c.Eps)
		ws.mul(ws.ffn, &w.gateUp, ws.y, n)
		for i := range n {
			gu := ws.ffn[i*2*c.FFN:][:2*c.FFN]
			kernels.SiLUMul(ws.act[i*c.FFN:], gu[:c.FFN], gu[c.FFN:])
		}
		ws.mul(ws.out, &w.down, ws.act, n)
		kernels.Add(ws.x[:n*d], ws.out)
	}
	m.finish(ws, rows, n)
	return nil
}

func normRows(y, x, w []float32, n int, eps float32) {
	d := len(w)
	for i := range n {
		kernels.RMSNorm(y[i*d:][:d], x[i*d:][:d], w, eps)
	}
}

// store computes keys and values of layer l for all tokens and puts them into
// their blocks, all before any of them is attended to.
func (m *Model) store(ws *Workspace, p *Pool, l, n int) {
	w, c := &m.layers[l], &m.Config
	dim, half := c.HeadDim, c.KVHeads*c.HeadDim
	ws.mul(ws.kv, &w.kv, ws.y, n)
	for i := range n {
		t := &ws.tokens[i]
		kv := ws.kv[i*2*half:][:2*half]
		page := ws.pages[t.first+t.pos/BlockLen]
		for h := range c.KVHeads {
			k := kv[h*dim:][:dim]
			kernels.RMSNorm(k, k, w.kNorm, c.Eps)
			m.rope.Apply(k, t.pos)
			p.layout.Put(page[p.at(l, h):], t.pos%BlockLen, k, kv[half+h*dim:][:dim])
		}
	}
}

// attend computes queries of layer l for the first n tokens and what they
// gather from the KV, into ws.att.
func (m *Model) attend(ws *Workspace, p *Pool, l, n int, scale float32) {
	w, c := &m.layers[l], &m.Config
	dim, all, group := c.HeadDim, c.Heads*c.HeadDim, c.Heads/c.KVHeads
	ws.mul(ws.q, &w.q, ws.y, n)
	for i := range n {
		t := &ws.tokens[i]
		q, out := ws.q[i*all:][:all], ws.att[i*all:][:all]
		for h := range c.Heads {
			head := q[h*dim:][:dim]
			kernels.RMSNorm(head, head, w.qNorm, c.Eps)
			m.rope.Apply(head, t.pos)
		}
		kernels.Scale(q, scale)
		for h := range c.KVHeads {
			part := h * group * dim
			p.layout.Attend(out[part:], q[part:], ws.pages[t.first:], p.at(l, h), group, t.pos+1, ws.scratch)
		}
	}
}

// keepWanted drops the tokens that nothing after the last layer's KV needs:
// all but the last of each row with a result. It returns how many are left,
// and notes where each row's results will be.
func (ws *Workspace) keepWanted(rows []Row, d int) int {
	kept, logits, last := 0, 0, -1
	for i := range rows {
		r := &rows[i]
		last += len(r.Tokens)
		ws.hiddenAt[i], ws.logitsAt[i] = -1, -1
		if !r.Logits && !r.Hidden {
			continue
		}
		copy(ws.x[kept*d:][:d], ws.x[last*d:][:d])
		copy(ws.y[kept*d:][:d], ws.y[last*d:][:d])
		ws.tokens[kept] = ws.tokens[last]
		if r.Hidden {
			ws.hiddenAt[i] = kept
		}
		if r.Logits {
			ws.logitsAt[i] = logits
			logits++
		}
		kept++
	}
	return kept
}

// finish applies the final norm to the n tokens that are left, and the LM head
// to those whose row wants logits.
func (m *Model) finish(ws *Workspace, rows []Row, n int) {
	d := m.Config.Hidden
	normRows(ws.hidden, ws.x, m.norm, n, m.Config.Eps)
	k, in := 0, 0
	for i := range rows {
		if rows[i].Logits {
			copy(ws.y[k*d:][:d], ws.hidden[in*d:][:d])
			k++
		}
		if rows[i].Logits || rows[i].Hidden {
			in++
		}
	}
	ws.mul(ws.logits, &m.head, ws.y, k)
}
