package theme

import (
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
)

// Options says what the terminal can do and what the user wants.
type Options struct {
	Profile colorprofile.Profile // Unknown is taken for TrueColor
	Light   bool
	Palette Palette
	ASCII   bool
}

// Theme is what the screens draw with. Styles are "" where nothing is to be
// said.
type Theme struct {
	G     *frame.Glyphs
	Plain bool // no attributes at all: tokens are marked by brackets
	Color bool // hues may be used
	Opts  Options

	Text, Strong, Dim, Title, Border frame.Style
	Key, KeyOff                      frame.Style
	Selected, Focus                  frame.Style
	Pending, Dropped                 frame.Style
	Good, Warn, Bad                  frame.Style
	Prediction                       frame.Style
	Idle                             frame.Style
	Big                              frame.Style
	Dialog                           lipgloss.Style // box of what is laid over the screen
	DropMark                         string         // around dropped candidates where striking through may not show

	roles  [3]frame.Style    // small, middle, large: names, bars, charts
	tokens [3]frame.Style    // the same for tokens: with the mark
	cursor [3]frame.Style    // token under the cursor
	over   [3][3]frame.Style // [i][j]: role i in front of role j
}

// New builds the theme for o.
func New(o Options) *Theme {
	if o.Profile == colorprofile.Unknown {
		o.Profile = colorprofile.TrueColor
	}
	if o.Palette == "" {
		o.Palette = Default
	}
	t := &Theme{G: frame.Unicode(), Opts: o, Dialog: lipgloss.NewStyle().Border(lipgloss.RoundedBorder()).Padding(0, 1)}
	if o.ASCII {
		t.G = frame.ASCII()
		t.Dialog = t.Dialog.Border(lipgloss.ASCIIBorder())
	}
	if o.Profile == colorprofile.NoTTY {
		t.Plain, t.DropMark = true, "x"
		return t
	}
	t.Color = o.Profile > colorprofile.Ascii
	c, s := o.Palette.colours(), newStyler(&o)

	t.Strong = sgr(s.fg(c.title))
	if !t.Color {
		t.Strong = sgr(lipgloss.NewStyle().Bold(true))
	}
	t.Dim = sgr(s.fg(c.dim))
	t.Title = sgr(s.fg(c.title).Bold(true))
	t.Border = sgr(s.fg(c.grey))
	t.Key = sgr(s.fg(c.title).Bold(true))
	t.KeyOff = sgr(s.fg(c.grey).Strikethrough(true))
	t.Selected = sgr(s.inverse(c.title, c.paper))
	t.Focus = sgr(s.fg(c.title).Bold(true))
	t.Pending = sgr(s.fg(c.pending))
	t.Dropped = sgr(s.fg(c.grey).Strikethrough(true))
	if o.ASCII || !t.Color {
		t.DropMark = "x"
	}
	t.Good = sgr(s.fg(c.good))
	t.Warn = sgr(s.fg(c.warn).Bold(true))
	t.Bad = sgr(s.fg(c.bad).Bold(true))
	t.Prediction = sgr(s.fg(c.dim))
	t.Idle = sgr(s.fg(c.grey))
	t.Big = sgr(s.fg(c.title).Bold(true))
	t.Dialog = t.Dialog.BorderForeground(s.color(c.title))

	roles := [3]hue{c.small, c.middle, c.large}
	marks := [3]func(lipgloss.Style) lipgloss.Style{
		func(st lipgloss.Style) lipgloss.Style { return st },
		func(st lipgloss.Style) lipgloss.Style { return st.Bold(true) },
		func(st lipgloss.Style) lipgloss.Style { return st.Underline(true) },
	}
	for i, h := range roles {
		t.roles[i] = sgr(s.fg(h))
		t.tokens[i] = sgr(marks[i](s.fg(h)))
		t.cursor[i] = sgr(marks[i](s.inverse(h, c.paper)))
		for j, behind := range roles {
			if st, ok := s.over(h, behind); ok {
				t.over[i][j] = sgr(st)
			}
		}
	}
	return t
}

// slot maps subserver p of n to small, middle or large.
func slot(p event.Peer, n int) int {
	switch {
	case p <= 0:
		return 0
	case int(p) == n-1:
		return 2
	default:
		return 1
	}
}

// Role is the style of names, bars and charts of subserver p of n.
func (t *Theme) Role(p event.Peer, n int) frame.Style { return t.roles[slot(p, n)] }

// Token is the style of tokens that subserver p of n wrote.
func (t *Theme) Token(p event.Peer, n int) frame.Style { return t.tokens[slot(p, n)] }

// Cursor is Token under the cursor.
func (t *Theme) Cursor(p event.Peer, n int) frame.Style { return t.cursor[slot(p, n)] }

// Over is the style of a cell in which p stands in front of q, "" where colours
// cannot say that.
func (t *Theme) Over(p, q event.Peer, n int) frame.Style { return t.over[slot(p, n)][slot(q, n)] }

// Brackets are put around tokens of subserver p of n where the terminal has no
// attributes.
func (t *Theme) Brackets(p event.Peer, n int) (left, right string) {
	if !t.Plain {
		return "", ""
	}
	switch slot(p, n) {
	case 2:
		return "[", "]"
	case 1:
		return "{", "}"
	}
	return "", ""
}

// Solid is the glyph of subserver p of n in charts without colours, "" with
// them.
func (t *Theme) Solid(p event.Peer, n int) string {
	if t.Color {
		return ""
	}
	switch slot(p, n) {
	case 2:
		return t.G.Full
	case 1:
		return t.G.Mid
	}
	return t.G.Light
}
