package frame

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Style is an SGR sequence that starts from the default look, "" for the
// default itself.
type Style string

const reset = "\x1b[m"

// Row is text of known width; escape sequences in it are only styles, and it
// ends in the default look.
type Row struct {
	S string
	W int
}

// Line composes one Row of at most a given width. The zero value is a line of
// width 0; call Start first. A Line is reused to save allocations.
type Line struct {
	max, w int
	cur    Style
	b      []byte
	ascii  bool
}

// NewLine returns a line for rows of at most width cells.
func NewLine(width int, ascii bool) *Line {
	l := &Line{ascii: ascii}
	l.Start(width)
	return l
}

// Start begins a new row.
func (l *Line) Start(width int) *Line {
	l.max, l.w, l.cur, l.b = max(width, 0), 0, "", l.b[:0]
	return l
}

// W is the width so far.
func (l *Line) W() int { return l.w }

// Room is how many cells are left.
func (l *Line) Room() int { return l.max - l.w }

func (l *Line) style(s Style) {
	if s == l.cur {
		return
	}
	if l.cur != "" {
		l.b = append(l.b, reset...)
	}
	l.b = append(l.b, s...)
	l.cur = s
}

// Put appends text, cleaned and cut at the end of the line.
func (l *Line) Put(s Style, text string) *Line {
	if text == "" || l.w >= l.max {
		return l
	}
	l.style(s)
	if printable(text) {
		n := min(len(text), l.max-l.w)
		l.b = append(l.b, text[:n]...)
		l.w += n
		return l
	}
	for c, cw := range Cells(text, l.ascii) {
		if l.w+cw > l.max {
			break
		}
		l.b = append(l.b, c...)
		l.w += cw
	}
	return l
}

// PutClip appends at most width cells of text and marks what it cuts.
func (l *Line) PutClip(s Style, text string, width int) *Line {
	return l.Put(s, Clip(text, min(width, l.max-l.w), l.ascii))
}

// PutRight appends text right-aligned in a field of the given width.
func (l *Line) PutRight(s Style, text string, width int) *Line {
	if w := Width(text); w < width {
		l.Repeat("", " ", width-w)
	}
	return l.PutClip(s, text, width)
}

// Repeat appends n times a glyph of width 1.
func (l *Line) Repeat(s Style, glyph string, n int) *Line {
	n = min(n, l.max-l.w)
	if n <= 0 {
		return l
	}
	l.style(s)
	for range n {
		l.b = append(l.b, glyph...)
	}
	l.w += n
	return l
}

// Row appends a finished row.
func (l *Line) Row(r Row) *Line {
	if r.W == 0 || l.w >= l.max {
		return l
	}
	l.style("")
	if l.w+r.W > l.max {
		r.S = ansi.Truncate(r.S, l.max-l.w, "")
		r.W = ansi.StringWidth(r.S)
		l.b = append(append(l.b, r.S...), reset...)
		l.w += r.W
		return l
	}
	l.b = append(l.b, r.S...)
	l.w += r.W
	return l
}

// To fills with blanks up to column x.
func (l *Line) To(x int) *Line { return l.Repeat("", " ", x-l.w) }

// End returns the row.
func (l *Line) End() Row {
	l.style("")
	return Row{S: string(l.b), W: l.w}
}

// Text makes one text of rows.
func Text(rows []Row) string {
	n := 0
	for _, r := range rows {
		n += len(r.S) + 1
	}
	var b strings.Builder
	b.Grow(n)
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.S)
	}
	return b.String()
}
