package model

import (
	"errors"
	"fmt"
	"math"

	"tokenrouter/kernels"
)

// Row is one sequence's part of a step: Tokens at positions Start,
// Start+1, ... of KV. What KV held from Start on is overwritten.
type Row struct {
	KV     *KV
	Start  int     // 0..KV.Len()
	Tokens []int32 // at least one
	Logits bool    // wanted: the logits after the last token
	Hidden bool    // wanted: the hidden state of the last token, after the final norm
}

// token is one position of a step under way.
type token struct {
	kv  *KV
	pos int
	row int
}

// Workspace holds the intermediate values of a step and its results. The zero
// value is ready; it grows to the largest step seen and then allocates nothing.
type Workspace struct {
	// Threads that large products are split over; 0 and 1 are one. The results
	// are the same, bit for bit.
	Threads int

	tokens         []token
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
// mixed. All tokens pass through the matrices together. On an error no KV has
// changed.
func (m *Model) Forward(ws *Workspace, rows []Row) error {
	if err := m.admit(ws, rows); err != nil {
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
		m.store(ws, l, n)
		if l == len(m.layers)-1 {
			n = ws.keepWanted(rows, d)
		}
		m.attend(ws, l, n, scale)
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

// admit checks every row before anything changes, then lays out the step.
func (m *Model) admit(ws *Workspace, rows []Row) error {
	n, wanted, err := m.check(rows)
	for i := range rows {
		if rows[i].KV != nil {
			rows[i].KV.step = false
		}
	}
	if err != nil {
		return err
	}
	ws.tokens = sized(ws.tokens, n)[:0]
	room := 0
	for i := range rows {
		r := &rows[i]
		end := r.Start + len(r.Tokens)
		r.KV.grow(end)
		r.KV.n = end
		room = max(room, r.KV.caches[0].ScratchLen())
		for p := r.Start; p < end; p++ {
			ws.tokens = append(ws.tokens, token{r.KV, p, i})
		}
	}
	c := &m.Config
	q := c.Heads * c.HeadDim
	ws.x = sized(ws.x, n*c.Hidden)
	ws.y = sized(ws.y, n*c.Hidden)
	ws.out = sized(ws.out, n*c.Hidden)
	ws.q = sized(ws.q, n*q)
	ws.att = sized(ws.att, n*q)
	ws.kv = sized(ws.kv, n*2*c.KVHeads*c.HeadDim)
	ws.ffn = sized(ws.ffn, n*2*c.FFN)
	ws.act = sized(ws.act, n*c.FFN)
	ws.scratch = sized(ws.scratch, room)
	ws.hidden = sized(ws.hidden, wanted*c.Hidden)
	ws.logits = sized(ws.logits, wanted*c.Vocab)
	ws.hiddenAt = sized(ws.hiddenAt, len(rows))
	ws.logitsAt = sized(ws.logitsAt, len(rows))
	ws.width, ws.vocab = c.Hidden, c.Vocab
	return nil
}

// check counts the tokens of a step and the rows with a result.
func (m *Model) check(rows []Row) (tokens, wanted int, err error) {
	if len(rows) == 0 {
		return 0, 0, errors.New("model: a step needs at least one row")
	}
	for i := range rows {
		r := &rows[i]
		end := r.Start + len(r.Tokens)
		switch {
		case r.KV == nil || r.KV.m != m:
			return 0, 0, fmt.Errorf("model: row %d has no KV of %s: make it with NewKV of the same model", i, m.Name)
		case r.KV.step:
			return 0, 0, fmt.Errorf("model: row %d shares its KV with another row of the step: join them into one row", i)
		case len(r.Tokens) == 0:
			return 0, 0, fmt.Errorf("model: row %d has no tokens: leave it out of the step", i)
		case r.Start < 0 || r.Start > r.KV.n:
			return 0, 0, fmt.Errorf("model: row %d starts at position %d, but its KV holds %d: feed what is missing first", i, r.Start, r.KV.n)
		case end > m.Config.MaxPos:
			return 0, 0, fmt.Errorf("model: row %d reaches position %d, but %s has max_position_embeddings %d: end the request there", i, end-1, m.Name, m.Config.MaxPos)
		}
		for _, id := range r.Tokens {
			if id < 0 || int(id) >= m.Config.Vocab {
				return 0, 0, fmt.Errorf("model: row %d has token %d, but %s knows 0..%d: check that the tokenizers are equal", i, id, m.Name, m.Config.Vocab-1)
			}
		}
		r.KV.step = true
		tokens += len(r.Tokens)
		if r.Logits || r.Hidden {
			wanted++
		}
	}
	return tokens, wanted, nil
}

func normRows(y, x, w []float32, n int, eps float32) {
	d := len(w)
	for i := range n {
		kernels.RMSNorm(y[i*d:][:d], x[i*d:][:d], w, eps)
	}
}

// store computes keys and values of layer l for all tokens and puts them into
// their KV, all before any of them is attended to.
func (m *Model) store(ws *Workspace, l, n int) {
	w, c := &m.layers[l], &m.Config
	dim, half := c.HeadDim, c.KVHeads*c.HeadDim
	ws.mul(ws.kv, &w.kv, ws.y, n)
	for i := range n {
		t := &ws.tokens[i]
		kv := ws.kv[i*2*half:][:2*half]
		for h := range c.KVHeads {
			k := kv[h*dim:][:dim]
			kernels.RMSNorm(k, k, w.kNorm, c.Eps)
			m.rope.Apply(k, t.pos)
			t.kv.caches[l*c.KVHeads+h].Put(t.pos, k, kv[half+h*dim:][:dim])
		}
	}
}

// attend computes queries of layer l for the first n tokens and what they
// gather from the KV, into ws.att.
func (m *Model) attend(ws *Workspace, l, n int, scale float32) {
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
			t.kv.caches[l*c.KVHeads+h].Attend(out[part:], q[part:], group, t.pos+1, ws.scratch)
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
