package frame

// Box frames rows with a title left and a note right in the top border. All
// rows of the result are exactly width cells wide; width is at least 4.
func Box(g *Glyphs, border Style, width int, title, note Row, rows []Row) []Row {
	width = max(width, 4)
	out := make([]Row, 0, len(rows)+2)
	l := NewLine(width, g.ASCII)
	inner := width - 4
	title = Cut(title, inner, g.ASCII)
	if note.W > 0 && title.W+note.W+3 > inner {
		note = Row{}
	}
	l.Put(border, g.TL+g.H).Row(title)
	fill := width - 2 - l.W()
	if note.W > 0 {
		fill -= note.W
	}
	l.Repeat(border, g.H, fill).Row(note).Put(border, g.H+g.TR)
	out = append(out, l.End())
	for _, r := range rows {
		l.Start(width).Put(border, g.V).Put("", " ")
		l.Row(Cut(r, inner, g.ASCII)).To(width-1).Put(border, g.V)
		out = append(out, l.End())
	}
	l.Start(width).Put(border, g.BL).Repeat(border, g.H, width-2).Put(border, g.BR)
	return append(out, l.End())
}

// Cut gives r, cut to width cells.
func Cut(r Row, width int, ascii bool) Row {
	if r.W <= width {
		return r
	}
	return NewLine(width, ascii).Row(r).End()
}

// Beside puts blocks side by side with gap blanks between them. Block i is
// widths[i] wide; shorter blocks are filled with blanks.
func Beside(gap int, ascii bool, widths []int, blocks ...[]Row) []Row {
	height, width := 0, 0
	for i, b := range blocks {
		height = max(height, len(b))
		width += widths[i]
		if i > 0 {
			width += gap
		}
	}
	out := make([]Row, height)
	l := NewLine(width, ascii)
	for y := range out {
		l.Start(width)
		x := 0
		for i, b := range blocks {
			if i > 0 {
				x += gap
			}
			l.To(x)
			if y < len(b) {
				l.Row(Cut(b[y], widths[i], ascii))
			}
			x += widths[i]
		}
		out[y] = l.End()
	}
	return out
}
