package model

import (
	"tokenrouter/kernels"
	"tokenrouter/kernels/vec"
)

// column is a column of the LM head: the last token of a row that wants logits
// or signals.
type column struct {
	logits  int // where its logits are kept, -1 for nowhere
	measure bool
	signals kernels.Signals
	err     error
}

// result says where the results of a row are, -1 for nowhere.
type result struct{ hidden, logits, column int }

// Logits are the raw logits after row i's last token, one per vocabulary row;
// nil if the row did not want them. Valid, and the caller's to change, until
// the next Forward.
func (ws *Workspace) Logits(i int) []float32 {
	if i < 0 || i >= len(ws.resultAt) {
		return nil
	}
	return piece(ws.logits, ws.resultAt[i].logits, ws.vocab)
}

// Hidden is row i's last hidden state after the final norm; nil if the row did
// not want it. Valid until the next Forward.
func (ws *Workspace) Hidden(i int) []float32 {
	if i < 0 || i >= len(ws.resultAt) {
		return nil
	}
	return piece(ws.hidden, ws.resultAt[i].hidden, ws.width)
}

// Signals are the routing signals of the logits after row i's last token, nil if
// the row did not want them. Valid until the next Forward. An error says that
// the logits are no numbers to measure, as kernels.Measure does.
func (ws *Workspace) Signals(i int) (*kernels.Signals, error) {
	if i < 0 || i >= len(ws.resultAt) || ws.resultAt[i].column < 0 {
		return nil, nil
	}
	c := &ws.columns[ws.resultAt[i].column]
	if !c.measure {
		return nil, nil
	}
	return &c.signals, c.err
}

func piece(v []float32, at, n int) []float32 {
	if at < 0 {
		return nil
	}
	return v[at*n:][:n:n]
}

// finish applies the final norm to the n tokens that are left, one of each row
// with a result, and the LM head to those whose row wants logits or signals. It
// notes where the results are.
func (ws *Workspace) finish(rows []Row, n int) {
	m := ws.m
	ws.columns = ws.columns[:0]
	hidden, logits := 0, 0
	for i := range rows {
		r, at := &rows[i], &ws.resultAt[i]
		*at = result{-1, -1, -1}
		if !r.results() {
			continue
		}
		if r.Hidden {
			at.hidden = hidden
		}
		if r.Logits {
			at.logits = logits
			logits++
		}
		if r.Logits || r.Signals {
			at.column = len(ws.columns)
			ws.columns = extended(ws.columns)
			c := &ws.columns[at.column]
			c.logits, c.measure = at.logits, r.Signals
		}
		ws.columnAt[hidden] = at.column
		hidden++
	}
	if n == 0 {
		return
	}
	k := len(ws.columns)
	ws.hidden = sized(ws.hidden, n*m.Config.Hidden)
	ws.logits = sized(ws.logits, logits*m.Config.Vocab)
	ws.bias, ws.norm = ws.w.downBias, m.norm
	ws.narrow.Reset(m.head.Format, m.Config.Hidden, k)
	ws.each(n, 4*n*m.Config.Hidden, ws.do.final)
	if k == 0 {
		return
	}
	claims := parts(m.Config.Vocab, vec.Segment)
	ws.segments = sized(ws.segments, k*claims)
	ws.tops = sized(ws.tops, ws.workers*k)
	for i := range ws.tops {
		ws.tops[i].Reset()
	}
	ws.each(claims, k*m.Config.Vocab*m.Config.Hidden, ws.do.head)
	ws.each(k, 64*k*claims, ws.do.measure)
}

// extended is s with one more element, the one that lay behind where there is
// room: its memory is used again.
func extended[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero T
	return append(s, zero)
}

func (ws *Workspace) finalPart(_, i int) {
	d := ws.m.Config.Hidden
	h := ws.hidden[i*d:][:d]
	vec.RMSNorm(h, ws.added(i), ws.norm, ws.m.Config.Eps)
	if c := ws.columnAt[i]; c >= 0 {
		ws.narrow.Put(c, 0, h)
	}
}

// headPart computes one segment of the logits of all columns. They are measured
// where they are, in the cache, and copied for those who want them.
func (ws *Workspace) headPart(worker, i int) {
	vocab := ws.m.Config.Vocab
	from := i * vec.Segment
	n := min(vec.Segment, vocab-from)
	tile := ws.per[worker].tile
	ws.m.head.MulTile(tile, vec.Segment, &ws.narrow, from, from+n)
	k, claims := len(ws.columns), parts(vocab, vec.Segment)
	for c := range ws.columns {
		col, logits := &ws.columns[c], tile[c*vec.Segment:][:n]
		if col.measure {
			part, top := &ws.segments[c*claims+i], &ws.tops[worker*k+c]
			vec.MeasurePart(part, logits)
			if top.Wants(part.Max()) {
				top.Offer(int32(from), logits)
			}
		}
		if col.logits >= 0 {
			copy(ws.logits[col.logits*vocab+from:], logits)
		}
	}
}

// measurePart puts together what the segments of column c say.
func (ws *Workspace) measurePart(_, c int) {
	col := &ws.columns[c]
	if !col.measure {
		return
	}
	k := len(ws.columns)
	for w := 1; w < ws.workers; w++ {
		ws.tops[c].Merge(&ws.tops[w*k+c])
	}
	claims := len(ws.segments) / k
	col.err = vec.Signals(&col.signals, ws.segments[c*claims:][:claims], &ws.tops[c], ws.m.Config.Vocab)
}
