package board

import (
	"fmt"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
)

// inspector is the closer look at one request, token by token.
type inspector struct {
	req    *request
	cur    int // token under the cursor, counted from the first new token
	follow bool
	seen   int // tokens when the cursor left the newest one
	top    int // first row shown
	rows   []span
	key    inspectKey

	explained inspectKey // what why is about
	why       []string
}

// span is a row of tokens from to end.
type span struct{ from, end int }

type inspectKey struct {
	updated uint64
	cur     int
	width   int
}

// Inspect opens the closer look at a request and reports whether there is one.
func (m *Model) Inspect(id event.ReqID) bool {
	r := m.reqs[id]
	for _, shown := range m.slots {
		if shown.id == id {
			r = shown // in sight, though it may be forgotten otherwise
		}
	}
	if r == nil {
		return false
	}
	m.Leave()
	r.inspected = true
	m.UI.inspect = &inspector{req: r, cur: max(r.len()-1, 0), follow: true}
	return true
}

// Inspecting reports whether the closer look is open, and at which request.
func (m *Model) Inspecting() (event.ReqID, bool) {
	if m.UI.inspect == nil {
		return 0, false
	}
	return m.UI.inspect.req.id, true
}

// Leave closes the closer look.
func (m *Model) Leave() {
	if in := m.UI.inspect; in != nil {
		in.req.inspected = false
	}
	m.UI.inspect = nil
}

// Step moves the token cursor by d.
func (m *Model) Step(d int) {
	if in := m.UI.inspect; in != nil {
		in.moveTo(in.cursor() + d)
	}
}

// Edge moves the token cursor to the first or the last token.
func (m *Model) Edge(last bool) {
	if in := m.UI.inspect; in != nil {
		if last {
			in.follow = true
			return
		}
		in.moveTo(in.req.gone)
	}
}

// Switch moves the token cursor to the next (d > 0) or previous token at which
// the writer changes; it reports whether there is one.
func (m *Model) Switch(d int) bool {
	i, ok := m.findSwitch(d)
	if ok {
		m.UI.inspect.moveTo(i)
		m.UI.inspect.follow = false
	}
	return ok
}

// HasSwitch reports whether Switch would move.
func (m *Model) HasSwitch(d int) bool {
	_, ok := m.findSwitch(d)
	return ok
}

func (m *Model) findSwitch(d int) (at int, ok bool) {
	in := m.UI.inspect
	if in == nil {
		return 0, false
	}
	r := in.req
	for i := in.cursor() + d; i > r.gone && i < r.len(); i += d {
		if r.tokens[i-r.gone].writer != r.tokens[i-r.gone-1].writer {
			return i, true
		}
	}
	return 0, false
}

// cursor is where the cursor stands now: at the newest token while it follows.
func (in *inspector) cursor() int {
	r := in.req
	if in.follow {
		in.cur = r.len() - 1
	}
	in.cur = max(min(in.cur, r.len()-1), r.gone)
	return in.cur
}

func (in *inspector) moveTo(i int) {
	r := in.req
	if in.follow {
		in.seen = r.len()
	}
	in.follow = i >= r.len()-1 && r.state != finished
	in.cur = max(min(i, r.len()-1), r.gone)
}

// scroll moves the cursor by d rows of the text.
func (in *inspector) scroll(m *Model, d int) {
	cur := in.cursor()
	for y, s := range in.rows {
		if cur < s.from || cur >= s.end {
			continue
		}
		to := min(max(y+d, 0), len(in.rows)-1)
		t := in.rows[to]
		in.moveTo(min(t.from+cur-s.from, t.end-1))
		return
	}
}

// current is the token under the cursor, nil when there is none.
func (in *inspector) current() *token {
	i := in.cursor() - in.req.gone
	if i < 0 || i >= len(in.req.tokens) {
		return nil
	}
	return &in.req.tokens[i]
}

// draw gives h rows.
func (in *inspector) draw(m *Model, w, h int, now int64) []frame.Row {
	r := in.req
	cur := in.cursor()
	tail := ""
	if fresh := r.len() - in.seen; !in.follow && fresh > 0 && r.state != finished {
		tail = fmt.Sprintf(" %d new ", fresh)
	}
	out := []frame.Row{m.inspectTitle(r, w, tail)}
	out = append(out, m.question(r, w, 2)...)
	right := min(max(w*2/5, 32), 60)
	left := w - right - 3
	height := h - len(out)
	strip := 0
	if height >= 14 {
		strip = 5
	}
	text := in.text(m, left-1, height-strip)
	for i, r := range text {
		text[i] = frame.NewLine(left, m.theme.G.ASCII).Put("", " ").Row(r).End()
	}
	for len(text) < height-strip {
		text = append(text, frame.Row{})
	}
	if strip > 0 {
		text = append(text, in.strip(m, left, cur)...)
	}
	detail := in.detail(m, right, height)
	bar := make([]frame.Row, height)
	l := frame.NewLine(1, m.theme.G.ASCII)
	for i := range bar {
		bar[i] = l.Start(1).Put(m.theme.Border, m.theme.G.V).End()
	}
	body := frame.Beside(1, m.theme.G.ASCII, []int{left, 1, right}, text, bar, detail)
	out = append(out, body...)
	return out[:min(h, len(out))]
}

func (m *Model) inspectTitle(r *request, w int, tail string) frame.Row {
	th := m.theme
	l := frame.NewLine(w, th.G.ASCII)
	l.Put(th.Border, th.G.Rule).Put("", " ").Put(th.Title, "request "+num(uint64(r.id))).Put("", "  ")
	m.putState(l, r, l.W()+14)
	l.Put(th.Dim, "  "+tokens(r.len()))
	if held := r.heldBack(); held > 0 {
		l.Put(th.Dim, fmt.Sprintf(" and %d held back", held))
	}
	l.Put(th.Dim, fmt.Sprintf(", %d switches", r.switches))
	if m.n > 1 {
		l.Put(th.Dim, fmt.Sprintf(", %s %.0f %%", m.role(peer(m.n-1)), 100*r.share(peer(m.n-1))))
	}
	if r.answer != "" && r.state == finished && l.Room() > 30 {
		l.Put(th.Dim, "  answered ").Put(th.Strong, frame.Clip(orElse(r.given, "nothing"), 12, th.G.ASCII))
		l.Put(th.Dim, ", right is ").Put(th.Strong, frame.Clip(r.answer, 12, th.G.ASCII))
	}
	l.Put("", " ")
	l.Repeat(th.Border, th.G.Rule, l.Room()-frame.Width(tail))
	return l.Put(th.Pending, tail).End()
}

// question is what was asked, in at most n rows.
func (m *Model) question(r *request, w, n int) []frame.Row {
	var out []frame.Row
	for _, text := range wrapWords(strings.Join(strings.Fields(r.question), " "), w-2, n) {
		out = append(out, m.line.Start(w).Put("", " ").PutClip(m.theme.Dim, text, w-2).End())
	}
	return out
}

// wrap breaks the kept tokens into rows of at most w cells.
func (in *inspector) wrap(m *Model, w int) {
	r := in.req
	key := inspectKey{r.updated, r.gone, w}
	if in.key == key && len(in.rows) > 0 {
		return
	}
	in.key = key
	in.rows = in.rows[:0]
	from, width, brk := r.gone, 0, r.gone
	for i := r.gone; i < r.len(); i++ {
		t := &r.tokens[i-r.gone]
		tw := in.width(m, t)
		if t.brk && i > from {
			brk = i
		}
		if width+tw > w && i > from {
			to := i
			if brk > from && i-brk < 12 {
				to = brk
			}
			in.rows = append(in.rows, span{from, to})
			from, brk, width = to, to, 0
			for j := to; j < i; j++ {
				width += in.width(m, &r.tokens[j-r.gone])
			}
		}
		width += tw
		if t.nl {
			in.rows = append(in.rows, span{from, i + 1})
			from, brk, width = i+1, i+1, 0
		}
	}
	if from < r.len() {
		in.rows = append(in.rows, span{from, r.len()})
	}
}

func (in *inspector) shown(m *Model, t *token) string {
	switch {
	case t.end:
		return "<end>"
	case t.nl:
		return strings.TrimSuffix(t.text, " ") + m.theme.G.Newline
	case t.text == "":
		return m.theme.G.None
	}
	return t.text
}

func (in *inspector) width(m *Model, t *token) int {
	w := frame.Width(in.shown(m, t))
	if m.theme.Plain && t.writer > 0 {
		w += 2
	}
	return w
}

// text is the part of the rows around the cursor.
func (in *inspector) text(m *Model, w, h int) []frame.Row {
	in.wrap(m, w)
	r := in.req
	if len(r.tokens) == 0 {
		l := frame.NewLine(w, m.theme.G.ASCII)
		m.putEmpty(l, r, w, false)
		return []frame.Row{l.End()}
	}
	at := 0
	for y, s := range in.rows {
		if in.cur >= s.from && in.cur < s.end {
			at = y
		}
	}
	in.top = min(max(in.top, at-h+1), at)
	in.top = max(min(in.top, len(in.rows)-h), 0)
	var out []frame.Row
	l := frame.NewLine(w, m.theme.G.ASCII)
	for y := in.top; y < len(in.rows) && len(out) < h; y++ {
		l.Start(w)
		for i := in.rows[y].from; i < in.rows[y].end; i++ {
			t := &r.tokens[i-r.gone]
			text := in.shown(m, t)
			if i == in.cur {
				m.putCursor(l, t, text)
				continue
			}
			putToken(l, m.theme, t.writer, m.n, text)
		}
		out = append(out, l.End())
	}
	return out
}

func (m *Model) putCursor(l *frame.Line, t *token, text string) {
	if m.theme.Plain {
		l.Put("", ">")
		putToken(l, m.theme, t.writer, m.n, text)
		l.Put("", "<")
		return
	}
	l.Put(m.theme.Cursor(t.writer, m.n), text)
}
