package matmul

import (
	"fmt"
	"runtime"
)

// Mul writes y = m * in for rows from to to-1 and all columns of the input:
// output r of column c is y[c*ldy+r]. From is a multiple of 16, to is one or
// Rows; outputs are written for whole groups of 16 rows, so ldy is at least
// Padded, and what lies behind Rows is of no meaning. Parts of one product may be
// computed by several goroutines.
func (m *Matrix) Mul(y []float32, ldy int, in *Input, from, to int) {
	if ldy < padded(to) {
		panic(fmt.Sprintf("matmul: rows %d to %d of %d, outputs %d apart", from, to, m.Rows, ldy))
	}
	m.MulTile(y[min(max(from, 0), len(y)):], ldy, in, from, to)
}

// MulTile is Mul for outputs that begin with row from: output r of column c is
// y[c*ldy+r-from], and ldy at least the rows asked for, in whole groups. So y may
// be a small piece that stays in the cache.
func (m *Matrix) MulTile(y []float32, ldy int, in *Input, from, to int) {
	if in.format != m.Format || in.k != m.Cols {
		panic(fmt.Sprintf("matmul: input of %d values for %v meets a matrix of %d columns in %v", in.k, in.format, m.Cols, m.Format))
	}
	if from < 0 || from%lanes != 0 || to > m.Padded() || to%lanes != 0 && to != m.Rows || ldy < padded(to)-from {
		panic(fmt.Sprintf("matmul: rows %d to %d of %d, outputs %d apart", from, to, m.Rows, ldy))
	}
	if from >= to || in.n == 0 {
		return
	}
	to = padded(to)
	y = y[: (in.n-1)*ldy+to-from : len(y)]
	if in.k == 0 {
		for c := range in.n {
			clear(y[c*ldy:][:to-from])
		}
		return
	}
	p := product{k: in.wide, ldy: ldy}
	whole, call := lanes*m.band, m.call() // rows of a band, bands of a call
	for first := from; from < to; {
		var at int
		at, p.step = m.group(from / lanes)
		p.rows, p.count = (min(to, from/whole*whole+whole)-from)/lanes, 1
		if p.rows*lanes == whole {
			p.count = min(call, (to-from)/whole)
		}
		p.w = m.data[at:]
		for t := range in.tiles {
			col, width := in.tile(t)
			p.x, p.y, p.width = in.data[col*in.column:], y[col*ldy+from-first:], width
			multiply(&p, m.Format, in.level)
		}
		from += p.rows * p.count * lanes
	}
	runtime.KeepAlive(m)
}
