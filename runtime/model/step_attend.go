package model

import (
	"math"

	"tokenrouter/kernels/vec"
)

// store puts the keys and values of all tokens into their blocks, before any of
// them is attended to. Rows that feed the last position of a shared block again
// store the same values at the same place: one after the other.
func (ws *Workspace) store() {
	c := &ws.m.Config
	work := 8 * len(ws.tokens) * c.KVHeads * c.HeadDim
	if ws.again {
		work = 0
	}
	ws.each(len(ws.runs)*c.KVHeads, work, ws.do.store)
}

// attend calls f for every run and every KV head; what it leaves for n tokens
// becomes the input of the layer's second product.
func (ws *Workspace) attend(f func(worker, i int), n int) {
	c := &ws.m.Config
	ws.middle.Reset(ws.w.o.Format, c.Heads*c.HeadDim, n)
	ws.each(len(ws.runs)*c.KVHeads, ws.work*c.KVHeads, f)
	if !ws.direct {
		ws.each(n, n*c.Heads*c.HeadDim, ws.do.pack)
	}
}

func (ws *Workspace) packPart(_, i int) {
	all := ws.m.Config.Heads * ws.m.Config.HeadDim
	ws.middle.Put(i, 0, ws.att[i*all:][:all])
}

// storePart puts the keys and values of a run and a KV head into their block.
func (ws *Workspace) storePart(_, i int) {
	heads := ws.m.Config.KVHeads
	run, h := ws.runs[i/heads], i%heads
	for _, t := range ws.tokens[run.first:][:run.n] {
		ws.storeToken(&t, h)
	}
}

func (ws *Workspace) attendPart(worker, i int) {
	heads := ws.m.Config.KVHeads
	ws.attendRun(worker, ws.runs[i/heads], i%heads)
}

// storeAttendPart is both for a step in which no token needs what another
// stores.
func (ws *Workspace) storeAttendPart(worker, i int) {
	heads := ws.m.Config.KVHeads
	run, h := ws.runs[i/heads], i%heads
	ws.storeToken(&ws.tokens[run.first], h)
	ws.attendRun(worker, run, h)
}

func (ws *Workspace) storeToken(t *token, h int) {
	w, c := ws.w, &ws.m.Config
	dim := c.HeadDim
	at := c.Heads*dim + h*dim
	col := ws.qkv[t.col*w.qkv.Padded():]
	k, v := col[at:][:dim], col[at+c.KVHeads*dim:][:dim]
	if w.qkvBias != nil {
		vec.Add(k, w.qkvBias[at:][:dim])
		vec.Add(v, w.qkvBias[at+c.KVHeads*dim:][:dim])
	}
	if w.kNorm != nil {
		vec.RMSNorm(k, k, w.kNorm, c.Eps)
	}
	cos, sin := ws.m.rope.at(t.pos)
	vec.Rotate(k, cos, sin)
	ws.p.layout.Put(ws.pages[t.first+t.pos/BlockLen][ws.p.at(ws.layer, h):], t.pos%BlockLen, k, v)
}

// attendRun computes what the queries that share KV head h gather for the tokens
// of a run.
func (ws *Workspace) attendRun(worker int, run span, h int) {
	w, c := ws.w, &ws.m.Config
	group := c.Heads / c.KVHeads * c.HeadDim
	at, ld := h*group, w.qkv.Padded()
	first := &ws.tokens[run.first]
	q := ws.qkv[first.col*ld+at:]
	for i := range run.n {
		ws.query(q[i*ld:][:group], at, first.pos+i)
	}
	p := &ws.per[worker]
	out, ldo := p.att, group
	if !ws.direct {
		ldo = c.Heads * c.HeadDim
		out = ws.att[run.first*ldo+at:]
	}
	ws.p.layout.AttendRows(out, ldo, q, ld, run.n, ws.pages[first.first:], ws.p.at(ws.layer, h), c.Heads/c.KVHeads, first.pos+1, p.scratch)
	if ws.direct {
		for i := range run.n {
			ws.middle.Put(run.first+i, at, out[i*group:][:group])
		}
	}
}

// query makes the queries of a position ready to meet keys; they begin at row at
// of the layer's matrix.
func (ws *Workspace) query(q []float32, at, pos int) {
	w, c := ws.w, &ws.m.Config
	if w.qkvBias != nil {
		vec.Add(q, w.qkvBias[at:][:len(q)])
	}
	cos, sin := ws.m.rope.at(pos)
	for head := q; len(head) > 0; head = head[c.HeadDim:] {
		x := head[:c.HeadDim]
		if w.qNorm != nil {
			vec.RMSNorm(x, x, w.qNorm, c.Eps)
		}
		vec.Rotate(x, cos, sin)
	}
	vec.Scale(q, float32(1/math.Sqrt(float64(c.HeadDim))))
}
