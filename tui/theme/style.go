package theme

import (
	"image/color"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"tokenrouter/tui/frame"
)

// styler makes styles of what the terminal can show.
type styler struct {
	profile   colorprofile.Profile
	complete  lipgloss.CompleteFunc
	lightDark lipgloss.LightDarkFunc
}

func newStyler(o *Options) styler {
	return styler{o.Profile, lipgloss.Complete(o.Profile), lipgloss.LightDark(!o.Light)}
}

// color gives the colour that the terminal can show, NoColor for its own.
func (s styler) color(h hue) color.Color {
	return s.lightDark(s.entry(h.light), s.entry(h.dark))
}

func (s styler) entry(e entry) color.Color {
	exact := lipgloss.Color(e.hex)
	var basic color.Color = lipgloss.NoColor{}
	if e.ansi >= 0 {
		basic = lipgloss.Color(strconv.Itoa(int(e.ansi)))
	}
	return s.complete(basic, colorprofile.ANSI256.Convert(exact), exact)
}

func (s styler) fg(h hue) lipgloss.Style { return lipgloss.NewStyle().Foreground(s.color(h)) }

// inverse is h as the background, with paper on it; where colours cannot say
// that, the terminal's reverse.
func (s styler) inverse(h, paper hue) lipgloss.Style {
	if s.profile <= colorprofile.ANSI {
		return s.fg(h).Reverse(true)
	}
	return s.fg(paper).Background(s.color(h))
}

// over is one colour in front of another, for a cell that shows both; false
// where one of them is the terminal's own.
func (s styler) over(front, behind hue) (lipgloss.Style, bool) {
	f, b := s.color(front), s.color(behind)
	if f == (lipgloss.NoColor{}) || b == (lipgloss.NoColor{}) {
		return lipgloss.Style{}, false
	}
	return lipgloss.NewStyle().Foreground(f).Background(b), true
}

// sgr renders a style once: what a terminal is sent before the text, so that
// styling a token costs no more than an append.
func sgr(st lipgloss.Style) frame.Style {
	before, _, _ := strings.Cut(st.Render("x"), "x")
	return frame.Style(before)
}
