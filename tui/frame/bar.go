package frame

import "math"

// Part is one part of a stacked bar.
type Part struct {
	Share float64 // of the whole, 0 to 1
	Style Style
	Glyph string
}

// Bar draws parts side by side into exactly width cells; what they leave is
// filled with rest. A part above zero gets at least one cell if there is room.
func Bar(l *Line, width int, rest Part, parts ...Part) {
	width = min(width, l.Room())
	if width <= 0 {
		return
	}
	left, sum, drawn := width, 0.0, 0
	for _, p := range parts {
		if !(p.Share > 0) || left == 0 {
			continue
		}
		sum += min(p.Share, 1)
		n := min(max(int(math.Round(sum*float64(width)))-drawn, 1), left)
		l.Repeat(p.Style, p.Glyph, n)
		drawn, left = drawn+n, left-n
	}
	l.Repeat(rest.Style, rest.Glyph, left)
}

// Slider draws a knob's place between its ends into exactly width cells.
func Slider(l *Line, g *Glyphs, width int, track, knob Style, at float64) {
	width = min(width, l.Room())
	if width < 1 {
		return
	}
	if math.IsNaN(at) {
		at = 0
	}
	x := int(math.Round(min(max(at, 0), 1) * float64(width-1)))
	l.Repeat(track, g.Track, x)
	l.Repeat(knob, g.Knob, 1)
	l.Repeat(track, g.Track, width-1-x)
}
