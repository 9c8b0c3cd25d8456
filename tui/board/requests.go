package board

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

// requestRows is the request pane: a title and lay.reqs lines. Every request has
// its place; a new one takes the place of one that is finished.
func (m *Model) requestRows(lay layout) []frame.Row {
	if !m.fast() {
		return m.requestsNow(lay)
	}
	key := requestsKey{m.figs.at, lay, m.UI.Slot, m.UI.top, m.UI.Focus, m.UI.Drops, m.theme}
	if m.still.rows == nil || m.still.key != key {
		rows := m.requestsNow(lay)
		key.top = m.UI.top
		m.still = requestsStill{key, rows}
	}
	return m.still.rows
}

// tooFast is the speed of virtual time from which on nobody reads along.
const tooFast = 8

// fast says that texts run by too fast to be read: then they change as seldom as
// the figures.
func (m *Model) fast() bool {
	s := &m.status
	return s.Virtual() && (s.Speed == 0 || s.Speed >= tooFast)
}

// requestsStill is the request pane until the figures change or a key is pressed.
type requestsStill struct {
	key  requestsKey
	rows []frame.Row
}

type requestsKey struct {
	at        int64 // of the figures
	lay       layout
	slot, top int
	focus     Focus
	drops     bool
	theme     *theme.Theme
}

func (m *Model) requestsNow(lay layout) []frame.Row {
	th := m.theme
	slots := m.shownSlots()
	each := 1
	if len(slots) > 0 {
		each = min(max(lay.reqs/max(len(slots), m.status.Concurrency, 1), 1), 4)
	}
	fit := max(lay.reqs/each, 1)
	m.UI.top = min(max(m.UI.top, m.UI.Slot-fit+1), m.UI.Slot, max(len(slots)-fit, 0))
	m.UI.top = max(m.UI.top, 0)
	shown := slots[m.UI.top:min(m.UI.top+fit, len(slots))]

	active := 0
	for _, r := range slots {
		if r.look(m.n).state != finished {
			active++
		}
	}
	title := fmt.Sprintf("requests  %d active, %d done", active, m.ended)
	if m.status.Over {
		title += ", that was all"
	}
	if hidden := len(slots) - len(shown); hidden > 0 {
		title += fmt.Sprintf("  %d-%d of %d", m.UI.top+1, m.UI.top+len(shown), len(slots))
	}
	out := make([]frame.Row, 0, lay.reqs+1)
	tail := " tok/s  large "
	if m.n == 1 {
		tail = " tok/s "
	}
	room := lay.w - frame.Width(title) - frame.Width(tail) - 4
	families := m.families(room - len(m.lag(len("  hold(64)"))))
	title += m.lag(room-len(families)) + families
	out = append(out, m.rule(lay.w, title, tail, m.UI.Focus == FocusRequests))
	for i, r := range shown {
		picked := m.UI.Focus == FocusRequests && m.UI.top+i == m.UI.Slot
		out = append(out, m.requestLines(r, lay.w, each, picked)...)
	}
	if len(slots) == 0 {
		l := m.line.Start(lay.w)
		out = append(out, l.Put(th.Dim, "  no request has arrived yet").End())
	}
	out = append(out, m.endedRows(lay.w, lay.reqs+1-len(out))...)
	for len(out) < lay.reqs+1 {
		out = append(out, frame.Row{})
	}
	return out[:lay.reqs+1]
}

// endedRows are up to n lines for the latest finished requests whose place has been
// taken, newest first.
func (m *Model) endedRows(w, n int) []frame.Row {
	var out []frame.Row
	for i := len(m.done) - 1; i >= 0 && len(out) < n; i-- {
		if r := m.done[i]; !slices.Contains(m.slots, r) {
			out = append(out, m.requestLines(r, w, 1, false)...)
		}
	}
	return out
}

// rule is the title line of a pane.
func (m *Model) rule(w int, title, tail string, focus bool) frame.Row {
	th := m.theme
	l := m.line.Start(w)
	st := th.Dim
	if focus {
		st = th.Focus
	}
	mark := th.G.Rule
	if focus {
		mark = th.G.Cursor
	}
	l.Put(th.Border, mark).Put("", " ").PutClip(st, title, w-3-frame.Width(tail)).Put("", " ")
	l.Repeat(th.Border, th.G.Rule, l.Room()-frame.Width(tail))
	return l.Put(th.Dim, tail).End()
}

// left is the width of the columns before the text.
const (
	leftWide  = 19
	leftSmall = 16
	rightCols = 14
)

func (m *Model) requestLines(r *request, w, each int, picked bool) []frame.Row {
	th := m.theme
	left := leftWide
	if w < 100 {
		left = leftSmall
	}
	right := rightCols
	if m.n == 1 {
		right = 7
	}
	look := r.look(m.n)
	lines := each
	if each >= 3 { // the first one is the question
		lines--
	}
	key := flowKey{width: w - left - right, overlap: each == 1, drops: m.UI.Drops, theme: th}
	text := r.tail(key, lines, m.n)
	out := make([]frame.Row, each)
	for y := range out {
		l := m.line.Start(w)
		switch y {
		case 0:
			m.putID(l, r, picked)
			m.putState(l, r, left)
		case 1:
			m.putSecond(l, r)
		}
		l.To(left)
		switch i := y - (each - lines); {
		case i < 0:
			l.PutClip(th.Dim, r.question, w-right-left)
		case i == 0 && len(r.tokens) == 0:
			m.putEmpty(l, r, w-right, lines == each)
		case i < len(text):
			l.Row(text[i])
		}
		if y == each-1 && r.right < 0 && r.answer != "" {
			if note := "  right is " + r.answer; l.W()+frame.Width(note) <= w-right {
				l.Put(th.Dim, note)
			}
		}
		if y == 0 {
			l.To(w - right)
			if look.rate > 0 {
				l.Put(th.Strong, fmt.Sprintf("%6s", rate(look.rate)))
				if m.n > 1 {
					l.Put(th.Role(peer(m.n-1), m.n), fmt.Sprintf("%5.0f %%", 100*look.share))
				}
			}
		}
		out[y] = l.End()
	}
	return out
}

func (m *Model) putID(l *frame.Line, r *request, picked bool) {
	th := m.theme
	mark := " "
	st := th.Strong
	if picked {
		mark, st = th.G.Cursor, th.Selected
	}
	l.Put(th.Focus, mark).Put(st, num(uint64(r.id))).Put("", " ")
}

// putState says where a request stands; the hand-off's mark stands before the
// peer's name.
func (m *Model) putState(l *frame.Line, r *request, left int) {
	th, look := m.theme, r.look(m.n)
	room := left - 1 - l.W()
	switch {
	case look.state == finished:
		switch {
		case r.right > 0:
			l.PutClip(th.Good, th.G.OK+" right", room)
		case r.right < 0:
			l.PutClip(th.Bad, th.G.Bad+" wrong", room)
		case r.reason == "aborted" || r.reason == "error":
			l.PutClip(th.Bad, "! "+r.reason, room)
		default:
			l.PutClip(th.Dim, "done", room)
		}
	case look.state == waiting:
		l.PutClip(th.Warn, "waiting", room)
	case look.at != event.Front && look.state == running:
		l.PutClip(th.Role(look.at, m.n), "in "+m.role(look.at), room)
	case look.at != event.Front:
		l.PutClip(th.Pending, "> "+m.role(look.at), room)
	case look.state == inFlight:
		l.PutClip(th.Pending, "> "+m.role(event.Front), room)
	case look.state == running && look.prefill:
		l.PutClip(th.Role(event.Front, m.n), "prefill", room)
	case look.state == running:
		l.PutClip(th.Role(event.Front, m.n), "running", room)
	default:
		l.PutClip(th.Strong, "ready", room)
	}
}

// putSecond is the second line of a request's left column.
func (m *Model) putSecond(l *frame.Line, r *request) {
	th, look := m.theme, r.look(m.n)
	l.Put("", "  ")
	if look.state != finished && look.away > 0 {
		l.Put(th.Pending, fmt.Sprintf("pending %d ms", max(m.figs.late-look.away, 0)/1e6))
		return
	}
	if held := r.heldBack(); held > 0 {
		l.Put(th.Dim, fmt.Sprintf("%d + %d held", r.len(), held))
		return
	}
	l.Put(th.Dim, tokens(r.len()))
}

// families says in at most w cells how many answers are right of each kind of
// problem, where there are several.
func (m *Model) families(w int) string {
	all := m.figs.snap.Families
	if len(all) < 2 {
		return ""
	}
	counts, parts, dense := "  right", "  right %", "  right %"
	for i := range all {
		f := &all[i]
		counts += fmt.Sprintf("  %s %d/%d", f.Family, f.Correct, f.Total)
		part := fmt.Sprintf(" %s %.0f", f.Family, 100*float64(f.Correct)/float64(f.Total))
		parts += " " + part
		dense += part
	}
	for _, text := range []string{counts, parts, dense} {
		if frame.Width(text) <= w {
			return text
		}
	}
	return ""
}

// lag says in at most w cells why texts end before what is written, "" where they
// do not.
func (m *Model) lag(w int) string {
	if m.hold == 0 {
		return ""
	}
	name := fmt.Sprintf("  hold(%d)", m.hold)
	for _, text := range []string{
		name + ": texts end up to " + tokens(m.hold) + " behind",
		name + ": texts lag behind",
		name,
	} {
		if len(text) <= w {
			return text
		}
	}
	return ""
}

func tokens(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}

// putEmpty says why there is no text yet, and what was asked if that stands
// nowhere else.
func (m *Model) putEmpty(l *frame.Line, r *request, end int, question bool) {
	th := m.theme
	text := ""
	switch {
	case r.state == waiting:
		text = "(waits at the front)"
	case r.state != finished:
		text = fmt.Sprintf("(prompt of %d tokens)", r.prompt)
		if held := r.heldBack(); held > 0 {
			text = fmt.Sprintf("(%s held back)", tokens(held))
		}
	}
	l.PutClip(th.Dim, text, end-l.W())
	if question && r.question != "" && l.W() < end-20 {
		l.Put("", " ").PutClip(th.Dim, r.question, end-l.W())
	}
}
