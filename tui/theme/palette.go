package theme

import (
	"image/color"

	"github.com/charmbracelet/x/ansi"
)

// Palette names a set of colours.
type Palette string

// Default is teal and amber; Deuteranopia uses blue and orange, which stay apart
// for people who see red and green as one.
const (
	Default      Palette = "default"
	Deuteranopia Palette = "deuteranopia"
)

// colours is one palette on one background. The last column of each entry is
// the colour of the 16 that stands for it, -1 for the terminal's own text colour.
// The greys are among the 256 colours, so that they stay grey there.
type colours struct {
	small, middle, large, pending     entry
	dim, grey, good, warn, bad, title entry
	paper                             entry // what stands on a coloured background
}

type entry struct {
	rgb  uint32
	ansi int8
}

func (e entry) color() color.Color {
	return color.RGBA{R: uint8(e.rgb >> 16), G: uint8(e.rgb >> 8), B: uint8(e.rgb), A: 0xff}
}

var darkDefault = colours{
	small:   entry{0x4fd6c2, 14},
	middle:  entry{0xc9a6ff, 13},
	large:   entry{0xffb454, 11},
	pending: entry{0x82b8ff, 15},
	dim:     entry{0xa8a8a8, 7},
	grey:    entry{0x949494, 7},
	good:    entry{0x7fd88f, 10},
	warn:    entry{0xffd166, 11},
	bad:     entry{0xff8a80, 9},
	title:   entry{0xeeeeee, 15},
	paper:   entry{0x0b0e12, 0},
}

// On a light background the bright colours of the 16 cannot be read; blue and
// magenta can.
var lightDefault = colours{
	small:   entry{0x0b6e66, -1},
	middle:  entry{0x6b2fc9, 4},
	large:   entry{0x8f4700, 5},
	pending: entry{0x1b4fb8, 4},
	dim:     entry{0x585858, -1},
	grey:    entry{0x626262, -1},
	good:    entry{0x1a6b34, -1},
	warn:    entry{0x805000, 1},
	bad:     entry{0xb3201b, 1},
	title:   entry{0x1c1c1c, -1},
	paper:   entry{0xffffff, 15},
}

var darkDeuteranopia = colours{
	small:   entry{0x56b4e9, 14},
	middle:  entry{0xe8a0cc, 13},
	large:   entry{0xf0a830, 11},
	pending: entry{0xd0d4ff, 15},
	dim:     darkDefault.dim,
	grey:    darkDefault.grey,
	good:    entry{0x8fd0ff, 14},
	warn:    entry{0xf0e442, 11},
	bad:     entry{0xff9d5c, 9},
	title:   darkDefault.title,
	paper:   darkDefault.paper,
}

var lightDeuteranopia = colours{
	small:   entry{0x005f99, 4},
	middle:  entry{0x80376b, 5},
	large:   entry{0x8a4b00, -1},
	pending: entry{0x3b3f9e, 4},
	dim:     lightDefault.dim,
	grey:    lightDefault.grey,
	good:    entry{0x005f99, 4},
	warn:    entry{0x6f5a00, 1},
	bad:     entry{0x9c3d00, 1},
	title:   lightDefault.title,
	paper:   lightDefault.paper,
}

func pick(p Palette, light bool) colours {
	switch {
	case p == Deuteranopia && light:
		return lightDeuteranopia
	case p == Deuteranopia:
		return darkDeuteranopia
	case light:
		return lightDefault
	default:
		return darkDefault
	}
}

// basic is the colour of the 16 that stands for e.
func (e entry) basic() color.Color {
	if e.ansi < 0 {
		return nil
	}
	return ansi.BasicColor(e.ansi)
}
