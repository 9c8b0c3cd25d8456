package theme

import (
	"image/color"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

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
	DropMark                         string // around dropped candidates where striking through may not show

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
	t := &Theme{G: frame.Unicode(), Opts: o}
	if o.ASCII {
		t.G = frame.ASCII()
	}
	if o.Profile == colorprofile.NoTTY {
		t.Plain, t.DropMark = true, "x"
		return t
	}
	t.Color = o.Profile > colorprofile.Ascii
	c := pick(o.Palette, o.Light)
	s := styler{o.Profile}

	t.Strong = s.style(&c.title)
	if !t.Color {
		t.Strong = s.style(nil, attrBold)
	}
	t.Dim = s.style(&c.dim)
	t.Title = s.style(&c.title, attrBold)
	t.Border = s.style(&c.grey)
	t.Key = s.style(&c.title, attrBold)
	t.KeyOff = s.style(&c.grey, attrStrike)
	t.Selected = s.inverse(&c.title, &c.paper)
	t.Focus = s.style(&c.title, attrBold)
	t.Pending = s.style(&c.pending)
	t.Dropped = s.style(&c.grey, attrStrike)
	if o.ASCII || !t.Color {
		t.DropMark = "x"
	}
	t.Good = s.style(&c.good)
	t.Warn = s.style(&c.warn, attrBold)
	t.Bad = s.style(&c.bad, attrBold)
	t.Prediction = s.style(&c.dim)
	t.Idle = s.style(&c.grey)
	t.Big = s.style(&c.title, attrBold)

	roles := [3]*entry{&c.small, &c.middle, &c.large}
	marks := [3][]int{nil, {attrBold}, {attrUnderline}}
	for i, e := range roles {
		t.roles[i] = s.style(e)
		t.tokens[i] = s.style(e, marks[i]...)
		t.cursor[i] = s.inverse(e, &c.paper, marks[i]...)
		for j, behind := range roles {
			if t.Color && e.basicOn(s.profile) && behind.basicOn(s.profile) {
				t.over[i][j] = s.over(e, behind)
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

const (
	attrBold = iota
	attrUnderline
	attrReverse
	attrStrike
)

type styler struct{ profile colorprofile.Profile }

// convert gives the colour that the terminal can show, nil for its own.
func (s styler) convert(e *entry) color.Color {
	switch {
	case e == nil || s.profile <= colorprofile.Ascii:
		return nil
	case s.profile == colorprofile.ANSI:
		return e.basic()
	default:
		return s.profile.Convert(e.color())
	}
}

// basicOn reports whether e has a colour of its own under profile p.
func (e *entry) basicOn(p colorprofile.Profile) bool {
	return p != colorprofile.ANSI || e.ansi >= 0
}

func (s styler) style(e *entry, attrs ...int) frame.Style {
	var st ansi.Style
	if c := s.convert(e); c != nil {
		st = st.ForegroundColor(c)
	}
	return s.with(st, attrs...)
}

// with adds attributes to a style.
func (s styler) with(st ansi.Style, attrs ...int) frame.Style {
	for _, a := range attrs {
		switch a {
		case attrBold:
			st = st.Bold()
		case attrUnderline:
			st = st.Underline(true)
		case attrReverse:
			st = st.Reverse(true)
		case attrStrike:
			st = st.Strikethrough(true)
		}
	}
	if len(st) == 0 {
		return ""
	}
	return frame.Style(st.String())
}

// inverse is e as the background, with paper on it; where colours cannot say
// that, the terminal's reverse.
func (s styler) inverse(e, paper *entry, attrs ...int) frame.Style {
	if s.profile <= colorprofile.ANSI {
		return s.style(e, append([]int{attrReverse}, attrs...)...)
	}
	st := ansi.Style{}.ForegroundColor(s.convert(paper)).BackgroundColor(s.convert(e))
	return s.with(st, attrs...)
}

func (s styler) over(front, behind *entry) frame.Style {
	var st ansi.Style
	return frame.Style(st.ForegroundColor(s.convert(front)).BackgroundColor(s.convert(behind)).String())
}
