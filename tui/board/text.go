package board

import (
	"github.com/charmbracelet/colorprofile"

	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

// Text is one picture of the board as text: h lines of at most w cells. Plain
// leaves out every escape sequence.
func Text(m *Model, w, h int, now int64, plain bool) string {
	if plain && !m.theme.Plain {
		o := m.theme.Opts
		o.Profile = colorprofile.NoTTY
		was := m.theme
		m.SetTheme(theme.New(o))
		defer m.SetTheme(was)
	}
	rows := m.Draw(w, h+1, now, nil)
	return frame.Text(rows[:max(len(rows)-1, 0)])
}
