package app

import (
	"slices"
	"time"

	"charm.land/lipgloss/v2"

	"tokenrouter/tui/frame"
	"tokenrouter/tui/keys"
)

// The least window for a dialog; in a smaller one the board says that it is too
// small.
const (
	dialogWidth  = 40
	dialogHeight = 10
)

// dialog is the box that lies over the screen now, "" for none.
func (m *model) dialog() string {
	if m.w < dialogWidth || m.h < dialogHeight {
		return ""
	}
	switch m.at {
	case keys.Helping:
		return m.help()
	case keys.Planning:
		return m.plan()
	case keys.Menu:
		return m.menu()
	}
	return ""
}

// planWidth is how wide the plan is at most.
const planWidth = 76

// plan shows what the plan says and how it turns out.
func (m *model) plan() string {
	width := min(m.w-m.theme.Dialog.GetHorizontalFrameSize(), planWidth)
	return m.scrolled(width, m.a.board.PlanRows(width), &m.planTop, &m.planEnd, func(foot *frame.Line) {
		foot.Put("", "  ").Put(m.theme.Key, "P").Put(m.theme.Dim, " next policy")
	})
}

// scrolled is a box with as many rows as there is room for, from top on, above a
// foot. It brings top back into what there is.
func (m *model) scrolled(width int, all []frame.Row, top, end *int, more func(foot *frame.Line)) string {
	body := m.h - 1 - m.theme.Dialog.GetVerticalFrameSize() - 2 // an empty line and the foot
	foot := frame.NewLine(width, m.theme.G.ASCII)
	foot.Put(m.theme.Key, "esc").Put(m.theme.Dim, " back")
	if len(all) > body {
		foot.Put("", "  ").Put(m.theme.Key, "up/down").Put(m.theme.Dim, " scroll")
	}
	more(foot)
	*end = max(len(all)-body, 0)
	*top = min(*top, *end)
	shown := all[*top:min(*top+body, len(all))]
	return m.box(width, slices.Concat(shown, []frame.Row{{}, foot.End()}))
}

// laid is a screen with a box over it. Laying costs more than drawing the board,
// so what lies below is drawn anew only a few times a second.
type laid struct {
	box, text string
	w, h      int
	at        int64
}

const laidFor = int64(250 * time.Millisecond)

func (l *laid) still(box string, w, h int, now int64) bool {
	return l.box == box && l.w == w && l.h == h && now-l.at < laidFor
}

// over lays a box over the middle of a screen.
func (m *model) over(screen, box string) string {
	x := max((m.w-lipgloss.Width(box))/2, 0)
	y := max((m.h-1-lipgloss.Height(box))/2, 0) // the last line stays in sight
	return lipgloss.NewCompositor(
		lipgloss.NewLayer(screen),
		lipgloss.NewLayer(box).X(x).Y(y).Z(1),
	).Render()
}

// box frames rows of at most width cells.
func (m *model) box(width int, rows []frame.Row) string {
	st := m.theme.Dialog
	return st.Width(width + st.GetHorizontalFrameSize()).Render(frame.Text(rows))
}

// menu asks for the form of an export.
func (m *model) menu() string {
	th := m.theme
	line := func() *frame.Line { return frame.NewLine(36, th.G.ASCII) }
	rows := []frame.Row{line().Put(th.Title, "export the session so far").End(), {}}
	for _, b := range keys.Table(keys.Menu) {
		if b.Action == keys.AsJSONL || b.Action == keys.AsPerfetto {
			rows = append(rows, line().Put("", " ").Put(th.Key, b.Show).Put("", "   "+b.Help).End())
		}
	}
	rows = append(rows, line().Put("", " ").Put(th.Key, "esc").Put(th.Dim, " not now").End())
	return m.box(36, rows)
}
