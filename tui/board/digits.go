package board

import "tokenrouter/tui/frame"

// bigDigits are 3 wide and 6 halves of a row high, a bit per dot, left first.
var bigDigits = map[byte][6]uint8{
	'0': {7, 5, 5, 5, 7, 0},
	'1': {2, 6, 2, 2, 7, 0},
	'2': {7, 1, 7, 4, 7, 0},
	'3': {7, 1, 3, 1, 7, 0},
	'4': {5, 5, 7, 1, 1, 0},
	'5': {7, 4, 7, 1, 7, 0},
	'6': {7, 4, 7, 5, 7, 0},
	'7': {7, 1, 1, 2, 2, 0},
	'8': {7, 5, 7, 5, 7, 0},
	'9': {7, 5, 7, 1, 7, 0},
	'.': {0, 0, 0, 0, 1, 0},
}

// digits writes a number three rows high. ASCII has no half blocks and gets the
// number in its middle row.
func digits(g *frame.Glyphs, s string) [3]string {
	if g.ASCII {
		return [3]string{"", s + " tok/s", ""}
	}
	var out [3]string
	for i := range len(s) {
		d, ok := bigDigits[s[i]]
		if !ok {
			continue
		}
		width := 3
		if s[i] == '.' {
			width = 1
		}
		for y := range out {
			for x := width - 1; x >= 0; x-- {
				upper, lower := d[2*y]>>x&1, d[2*y+1]>>x&1
				// Every dot is two cells wide: cells are about twice as high.
				dot := g.Half[lower|upper<<1]
				out[y] += dot
				if s[i] != '.' {
					out[y] += dot
				}
			}
			out[y] += " "
		}
	}
	return out
}
