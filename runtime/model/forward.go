package model

import (
	"runtime"

	"tokenrouter/kernels/matmul"
)

// Row is one sequence's part of a step: Tokens at positions Start, Start+1, ...
// Its KV lies in the pool's blocks Blocks: position p in Blocks[p/BlockLen].
// What is before Start was written by earlier steps, for this sequence or for
// another that begins with the same tokens, and is only read; what is at Start
// and behind is overwritten. Blocks beyond the row's last position are allowed.
//
// What a row wants of its last token costs what it costs: logits are written to
// memory only for rows that want them, signals are measured while the logits
// pass through the cache.
type Row struct {
	Blocks  []int32
	Start   int
	Tokens  []int32 // at least one
	Logits  bool    // wanted: the logits after the last token
	Hidden  bool    // wanted: the hidden state of the last token, after the final norm
	Signals bool    // wanted: the routing signals of the logits after the last token
}

// results says whether a row wants anything.
func (r *Row) results() bool { return r.Logits || r.Hidden || r.Signals }

// Forward runs one step over rows: prompts, parts of prompts and single tokens
// mixed. All tokens pass through the matrices together. An error that a row is
// to blame for is a *RowError; on an error nothing in the pool has changed.
func (m *Model) Forward(ws *Workspace, pool *Pool, rows []Row) error {
	if err := m.admit(ws, pool, rows); err != nil {
		return err
	}
	ws.begin(m, pool)
	defer ws.end()
	n := len(ws.tokens)
	ws.norm = m.layers[0].norm1
	ws.narrow.Reset(m.layers[0].qkv.Format, m.Config.Hidden, n)
	ws.each(n, n*m.Config.Hidden, ws.do.embed)
	for l := range m.layers {
		w := &m.layers[l]
		ws.layer, ws.w = l, w
		last := l == len(m.layers)-1
		ws.mul(ws.qkv, w.qkv, &ws.narrow, n)
		if last && ws.wanted < n || !ws.single {
			ws.store()
			if last {
				n = ws.keepWanted(rows)
			}
			if n == 0 {
				break
			}
			ws.attend(ws.do.attend, n)
		} else {
			ws.attend(ws.do.storeAttend, n)
		}
		ws.mul(ws.out, w.o, &ws.middle, n)
		ws.join(w.oBias, w.norm2, w.gateUp.Format, n)
		ws.gate(n)
		ws.mul(ws.out, w.down, &ws.wide, n)
		if !last {
			next := &m.layers[l+1]
			ws.join(w.downBias, next.norm1, next.qkv.Format, n)
		}
	}
	ws.finish(rows, n)
	runtime.KeepAlive(pool) // it frees its memory once it is unreachable; so does the model that it holds
	return nil
}

// keepWanted drops the tokens that nothing after the last layer's KV needs: all
// but the last of each row with a result. It returns how many are left.
func (ws *Workspace) keepWanted(rows []Row) int {
	d := ws.m.Config.Hidden
	kept, last := 0, -1
	ws.runs = ws.runs[:0]
	for i := range rows {
		last += len(rows[i].Tokens)
		if !rows[i].results() {
			continue
		}
		copy(ws.x[kept*d:][:d], ws.x[last*d:][:d])
		ws.tokens[kept] = ws.tokens[last]
		ws.runs = append(ws.runs, span{kept, 1})
		kept++
	}
	return kept
}

// mul multiplies n columns with a matrix; column c of y begins at c*w.Padded().
func (ws *Workspace) mul(y []float32, w *matmul.Matrix, in *matmul.Input, n int) {
	if n*w.Rows*w.Cols < alone {
		w.Mul(y, w.Padded(), in, 0, w.Rows)
		return
	}
	ws.matrix, ws.in, ws.y, ws.claim = w, in, y, w.Chunk(ws.workers)
	ws.Seat.Do(parts(w.Rows, ws.claim), ws.do.mul)
}

func (ws *Workspace) mulPart(_, i int) {
	w, from := ws.matrix, i*ws.claim
	w.Mul(ws.y, w.Padded(), ws.in, from, min(from+ws.claim, w.Rows))
}

// parts is the number of claims of size that n takes.
func parts(n, size int) int { return (n + size - 1) / size }
