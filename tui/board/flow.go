package board

import (
	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

// flow breaks the tokens of a request into rows once, as they arrive. Finished
// rows are cached; only the last one is composed again when a token comes.
type flow struct {
	key     flowKey
	rows    []frame.Row // finished, the newest maxRows
	start   int         // first token of the last row
	next    int         // first token not yet placed
	w       int         // width of tokens start to next
	brk     int         // where the last row may be broken
	current frame.Row
	stale   bool
}

// flowKey is what a flow was made for; another key starts it anew.
type flowKey struct {
	width   int
	overlap bool // one row only: it moves by half its width
	drops   bool
	theme   *theme.Theme
}

const maxRows = 64

// tail gives the last n rows for a key, oldest first.
func (r *request) tail(key flowKey, n, peers int) []frame.Row {
	f := &r.flow
	if f.key != key || f.start < r.gone {
		*f = flow{key: key, rows: f.rows[:0], stale: true}
		f.start = max(r.gone, r.len()-maxRows*max(key.width, 1))
		f.next, f.brk = f.start, f.start
	}
	for ; f.next < r.len(); f.next++ {
		r.place(peers)
	}
	if f.stale {
		f.current = r.compose(f.start, f.next, peers)
		f.stale = false
	}
	if n <= 1 {
		return []frame.Row{f.current}
	}
	k := min(n-1, len(f.rows))
	return append(append(make([]frame.Row, 0, k+1), f.rows[len(f.rows)-k:]...), f.current)
}

// place puts token f.next on the last row or breaks it.
func (r *request) place(peers int) {
	f := &r.flow
	t := &r.tokens[f.next-r.gone]
	w := r.width(t, f.next == f.start)
	f.stale = true
	if t.brk && f.next > f.start {
		f.brk = f.next
	}
	if f.w+w <= f.key.width || f.next == f.start {
		f.w += w
		return
	}
	to := f.next
	if f.brk > f.start && (f.next-f.brk) < 12 {
		to = f.brk
	}
	if f.key.overlap {
		to = r.half(f.next)
	} else {
		f.rows = append(f.rows, r.compose(f.start, to, peers))
		if len(f.rows) > maxRows {
			f.rows = append(f.rows[:0], f.rows[maxRows/2:]...)
		}
	}
	f.start, f.brk, f.w = to, to, 0
	for i := to; i <= f.next; i++ {
		f.w += r.width(&r.tokens[i-r.gone], i == to)
	}
}

// half finds where a row that ends before token end begins when it may be half
// as wide as the line.
func (r *request) half(end int) int {
	w, to := 0, end
	for i := end; i > r.flow.start; i-- {
		t := &r.tokens[i-r.gone]
		w += r.width(t, false)
		if w > r.flow.key.width/2 {
			break
		}
		if t.brk || to == end {
			to = i
		}
	}
	return to
}

// width of a token on a row; a row does not begin with a blank.
func (r *request) width(t *token, first bool) int {
	w := t.w
	if first && w > 0 && t.text[0] == ' ' {
		w--
	}
	if t.w > 0 && r.flow.key.theme.Plain && t.writer > 0 {
		w += 2
	}
	if r.flow.key.drops {
		for _, d := range t.drops {
			w += frame.Width(d.shown) + 2*len(r.flow.key.theme.DropMark)
		}
	}
	return w
}

// compose builds the row of tokens from to end.
func (r *request) compose(from, end, peers int) frame.Row {
	th := r.flow.key.theme
	l := frame.NewLine(r.flow.key.width, th.G.ASCII)
	for i := from; i < end; i++ {
		t := &r.tokens[i-r.gone]
		text := t.text
		if i == from && len(text) > 0 && text[0] == ' ' {
			text = text[1:]
		}
		if r.flow.key.drops {
			for _, d := range t.drops {
				putDropped(l, th, d.shown)
			}
		}
		putToken(l, th, t.writer, peers, text)
	}
	return l.End()
}

// putToken writes a token with the mark of its writer.
func putToken(l *frame.Line, th *theme.Theme, p event.Peer, peers int, text string) {
	if text == "" {
		return
	}
	if th.Plain {
		left, right := th.Brackets(p, peers)
		l.Put("", left).Put("", text).Put("", right)
		return
	}
	l.Put(th.Token(p, peers), text)
}

// putDropped writes a dropped candidate, struck through or between x marks.
func putDropped(l *frame.Line, th *theme.Theme, text string) {
	l.Put(th.Dropped, th.DropMark+text+th.DropMark)
}
