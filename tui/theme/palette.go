package theme

// Palette names a set of colours.
type Palette string

// Default is teal and amber; Deuteranopia uses blue and orange, which stay apart
// for people who see red and green as one.
const (
	Default      Palette = "default"
	Deuteranopia Palette = "deuteranopia"
)

// colours is one palette. The greys are among the 256 colours, so that they stay
// grey there.
type colours struct {
	small, middle, large, pending     hue
	dim, grey, good, warn, bad, title hue
	paper                             hue // what stands on a coloured background
}

// hue is a meaning's colour on a light and on a dark background. On a light one
// the bright colours of the 16 cannot be read; blue and magenta can.
type hue struct{ light, dark entry }

// entry is a colour as #rrggbb, and the one of the 16 that stands for it, -1 for
// the terminal's own text colour.
type entry struct {
	hex  string
	ansi int8
}

var standard = colours{
	small:   hue{entry{"#0b6e66", -1}, entry{"#4fd6c2", 14}},
	middle:  hue{entry{"#6b2fc9", 4}, entry{"#c9a6ff", 13}},
	large:   hue{entry{"#8f4700", 5}, entry{"#ffb454", 11}},
	pending: hue{entry{"#1b4fb8", 4}, entry{"#82b8ff", 15}},
	dim:     hue{entry{"#585858", -1}, entry{"#a8a8a8", 7}},
	grey:    hue{entry{"#626262", -1}, entry{"#949494", 7}},
	good:    hue{entry{"#1a6b34", -1}, entry{"#7fd88f", 10}},
	warn:    hue{entry{"#805000", 1}, entry{"#ffd166", 11}},
	bad:     hue{entry{"#b3201b", 1}, entry{"#ff8a80", 9}},
	title:   hue{entry{"#1c1c1c", -1}, entry{"#eeeeee", 15}},
	paper:   hue{entry{"#ffffff", 15}, entry{"#0b0e12", 0}},
}

var deuteranopia = colours{
	small:   hue{entry{"#005f99", 4}, entry{"#56b4e9", 14}},
	middle:  hue{entry{"#80376b", 5}, entry{"#e8a0cc", 13}},
	large:   hue{entry{"#8a4b00", -1}, entry{"#f0a830", 11}},
	pending: hue{entry{"#3b3f9e", 4}, entry{"#d0d4ff", 15}},
	dim:     standard.dim,
	grey:    standard.grey,
	good:    hue{entry{"#005f99", 4}, entry{"#8fd0ff", 14}},
	warn:    hue{entry{"#6f5a00", 1}, entry{"#f0e442", 11}},
	bad:     hue{entry{"#9c3d00", 1}, entry{"#ff9d5c", 9}},
	title:   standard.title,
	paper:   standard.paper,
}

func (p Palette) colours() *colours {
	if p == Deuteranopia {
		return &deuteranopia
	}
	return &standard
}
