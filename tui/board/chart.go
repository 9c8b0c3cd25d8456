package board

import (
	"fmt"
	"math"

	"tokenrouter/tui/frame"
)

// axisWidth is the room for numbers left of the chart.
const axisWidth = 7

func (l *layout) chartColumns() int {
	w := l.w - axisWidth - 1
	if l.side > 0 {
		w -= l.side + 2
	}
	return max(w, 1)
}

// chartRows is the course of tokens per second by writer, with marks where
// something changed, and before | after.
func (m *Model) chartRows(lay layout, columns int, now int64) []frame.Row {
	left := m.chart(lay, columns)
	if lay.side == 0 {
		if lay.h >= 20 {
			cmp := frame.NewLine(lay.w, m.theme.G.ASCII).Put("", " ")
			left = append(left, cmp.Row(m.comparison(lay.w-1, 1)[0]).End())
		}
		return left
	}
	height := len(left)
	if lay.share {
		height--
	}
	side := m.sideRows(lay, height)
	if lay.share && m.n > 1 { // beside the row of shares
		for len(side) < len(left)-1 {
			side = append(side, frame.Row{})
		}
		text := fmt.Sprintf("share of %s, 0 to %.0f %%", m.role(peer(m.n-1)), 100*m.figs.share)
		side = append(side, m.line.Start(lay.side).PutClip(m.theme.Dim, text, lay.side).End())
	}
	return frame.Beside(2, m.theme.G.ASCII, []int{lay.w - lay.side - 2, lay.side}, left, side)
}

// sideRows stand beside the chart: legend, comparison, earlier marks.
func (m *Model) sideRows(lay layout, height int) []frame.Row {
	th := m.theme
	l := frame.NewLine(lay.side, th.G.ASCII)
	for i := range m.n {
		p := peer(i)
		glyph := th.G.Full
		if s := th.Solid(p, m.n); s != "" {
			glyph = s
		}
		l.Put(th.Role(p, m.n), glyph+" "+m.role(p)).Put("", "  ")
	}
	for _, text := range []string{fmt.Sprintf("tok/s, %.0f s/column", m.figs.span.Seconds()), "  " + th.G.Up + " change"} {
		if frame.Width(text) <= l.Room() {
			l.Put(th.Dim, text)
		}
	}
	out := []frame.Row{l.End()}
	if height >= 8 {
		out = append(out, frame.Row{})
	}
	out = append(out, m.comparison(lay.side, min(4+height/8, height-len(out)))...)
	marks := m.figs.all
	for i := len(marks) - 2; i >= 0 && len(out) < height-1 && height >= 8; i-- {
		if i == len(marks)-2 {
			out = append(out, frame.Row{})
			if len(out) >= height-1 {
				break
			}
		}
		l.Start(lay.side).Put(th.Dim, clock(marks[i].At)+"  ").PutClip(th.Dim, marks[i].Label, lay.side-8)
		out = append(out, l.End())
	}
	return out
}

func (m *Model) chart(lay layout, columns int) []frame.Row {
	th := m.theme
	bins := m.figs.bins
	values := make([][]float64, columns)
	shares := make([]float64, columns)
	flat := make([]float64, columns*m.n)
	top := 0.0
	pad := columns - len(bins)
	for i := range shares {
		shares[i] = math.NaN()
	}
	for i := range bins {
		b := &bins[i]
		v := flat[i*m.n : (i+1)*m.n]
		if s := b.Dur.Seconds(); s >= 0.24 {
			for p, n := range b.ByPeer {
				v[m.n-1-p] = float64(n) / s // the large model is the lowest layer
			}
			top = max(top, b.Rate())
			if b.Tokens > 0 {
				shares[pad+i] = float64(b.Large) / float64(b.Tokens)
			}
		}
		values[pad+i] = v
	}
	top, m.figs.share = niceTop(top), niceShare(shares)
	layers := make([]frame.Layer, m.n)
	for i := range layers {
		p := peer(m.n - 1 - i)
		layers[i] = frame.Layer{Style: th.Role(p, m.n), Solid: th.Solid(p, m.n)}
		if p > 0 {
			layers[i].Over = th.Over(p, p-1, m.n)
		}
	}
	body := frame.Stack(th.G, lay.chart, top, layers, values)
	out := make([]frame.Row, 0, len(body)+2)
	for y, r := range body {
		label := ""
		switch {
		case y == 0:
			label = axis(top)
		case lay.chart >= 4 && y == lay.chart/2 && lay.chart%2 == 0:
			label = axis(top / 2)
		}
		out = append(out, m.axisRow(label, r))
	}
	if lay.h < 20 {
		return out
	}
	out = append(out, m.axisLine(lay.w, columns, pad))
	if lay.share {
		l := frame.NewLine(lay.w, th.G.ASCII)
		if m.n > 1 {
			st := th.Role(peer(m.n-1), m.n)
			l.PutRight(st, "large %", axisWidth).Put("", " ")
			frame.Spark(l, th.G, st, m.figs.share, shares)
		}
		out = append(out, l.End())
	}
	return out
}

func (m *Model) axisRow(label string, r frame.Row) frame.Row {
	l := m.line.Start(axisWidth + 1 + r.W)
	return l.PutRight(m.theme.Dim, label, axisWidth).Put(m.theme.Border, m.theme.G.V).Row(r).End()
}

// axisLine is the zero line with a sign at every change.
func (m *Model) axisLine(w, columns, pad int) frame.Row {
	th := m.theme
	at := make([]bool, columns)
	for _, mk := range m.figs.all {
		for i := len(m.figs.bins) - 1; i >= 0; i-- {
			if m.figs.bins[i].At <= mk.At {
				at[pad+i] = true
				break
			}
		}
	}
	l := m.line.Start(w)
	l.PutRight(th.Dim, "0", axisWidth).Put(th.Border, th.G.Cross)
	for x := 0; x < columns; {
		if at[x] {
			l.Put(th.Strong, th.G.Up)
			x++
			continue
		}
		n := 0
		for x+n < columns && !at[x+n] {
			n++
		}
		l.Repeat(th.Border, th.G.Rule, n)
		x += n
	}
	return l.End()
}

func axis(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 10 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.1f", v)
	}
}

// niceTop is the next round number at or above v.
func niceTop(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 10
	}
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if k*scale >= v*(1-1e-9) {
			return k * scale
		}
	}
	return 10 * scale
}

// niceShare is the upper end of the share's row: 10, 25, 50 or 100 %.
func niceShare(shares []float64) float64 {
	top := 0.0
	for _, s := range shares {
		if !math.IsNaN(s) {
			top = max(top, s)
		}
	}
	for _, t := range []float64{0.1, 0.25, 0.5} {
		if top <= t {
			return t
		}
	}
	return 1
}
