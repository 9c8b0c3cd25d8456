package frame

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// maxMarks is how many combining marks one base character may carry; more are
// left out.
const maxMarks = 2

// Cells yields the cells of s from left to right: text that is safe to print
// and its width, 1 or 2. Terminals measure text in one of two ways, by
// character or by grapheme cluster; what they would not agree on is simplified
// until they do. Control characters become visible pictures, invisible
// formatting (joiners, direction overrides) is left out, invalid UTF-8 and
// marks without a base get a stand-in.
func Cells(s string, ascii bool) func(yield func(text string, w int) bool) {
	return func(yield func(string, int) bool) {
		for i := 0; i < len(s); {
			text, w, n := cell(s[i:], ascii)
			i += n
			if w > 0 && !yield(text, w) {
				return
			}
		}
	}
}

// cell reads the first cell of s: its text and width, and how many bytes of s
// it stands for. Width 0 means that there is nothing to show.
func cell(s string, ascii bool) (text string, w, n int) {
	c := s[0]
	if c < utf8.RuneSelf {
		if c < 0x20 || c == 0x7f {
			return control(rune(c), ascii), 1, 1
		}
		if len(s) == 1 || s[1] < utf8.RuneSelf {
			return s[:1], 1, 1
		}
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size <= 1:
		return stand(ascii), 1, 1
	case r >= 0x80 && r < 0xa0:
		return stand(ascii), 1, size
	}
	if lw := loner(r); lw > 0 && (len(s) == size || meets(s[size:])) {
		if ascii && r >= utf8.RuneSelf {
			return "??"[:lw], lw, size
		}
		return s[:size], lw, size
	}
	cluster, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	n = max(len(cluster), size)
	return fitCluster(s[:n], ascii)
}

// fitCluster simplifies one grapheme cluster until both ways of measuring give
// the same width and no neighbour can join with it.
func fitCluster(cluster string, ascii bool) (text string, w, n int) {
	n = len(cluster)
	base, size := utf8.DecodeRuneInString(cluster)
	if invisible(base) {
		return "", 0, n
	}
	bw := ansi.StringWidthWc(cluster[:size])
	if bw == 0 || extends(cluster[:size]) { // a mark without a base
		return stand(ascii), 1, n
	}
	if ascii && base >= utf8.RuneSelf {
		return "??"[:min(bw, 2)], min(bw, 2), n
	}
	if ascii {
		return cluster[:size], bw, n
	}
	end, marks := size, 0
	for end < n && marks < maxMarks {
		r, rs := utf8.DecodeRuneInString(cluster[end:])
		if invisible(r) || r == utf8.RuneError && rs <= 1 {
			break
		}
		end += rs
		marks++
	}
	for end >= size {
		gw := ansi.StringWidth(cluster[:end])
		if gw > 0 && gw <= 2 && gw == ansi.StringWidthWc(cluster[:end]) && closed(cluster[:end]) {
			return cluster[:end], gw, n
		}
		_, rs := utf8.DecodeLastRuneInString(cluster[:end])
		end -= rs
	}
	return stand(ascii), 1, n
}

// extends reports whether s joins with what stands before it.
func extends(s string) bool {
	c, _ := ansi.FirstGraphemeCluster("x"+s, ansi.GraphemeWidth)
	return len(c) > 1
}

// closed reports whether nothing that can begin a cell joins with s when it
// follows.
func closed(s string) bool {
	for _, next := range [...]string{"x", "\u0915", "\u1100", "\uac00"} {
		if c, _ := ansi.FirstGraphemeCluster(s+next, ansi.GraphemeWidth); len(c) > len(s) {
			return false
		}
	}
	return true
}

// loner gives the width of characters that join with nothing but marks behind
// them, 0 for all others: the common ones, for speed.
func loner(r rune) int {
	switch {
	case r < 0x80, plain(r):
		return 1
	case r >= 0xa1 && r < 0x300 && r != 0xad, r >= 0x391 && r <= 0x3c9 && r != 0x3a2, r >= 0x400 && r <= 0x481:
		return 1
	case r >= 0x3041 && r <= 0x3096, r >= 0x30a1 && r <= 0x30fa, r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3:
		return 2
	}
	return 0
}

// meets reports whether s begins with a character that joins with nothing
// before it.
func meets(s string) bool {
	r, size := utf8.DecodeRuneInString(s)
	return size > 0 && loner(r) > 0
}

// plain characters are one cell wide everywhere and join with nothing: what the
// frames themselves are drawn with.
func plain(r rune) bool {
	return r >= 0x2500 && r <= 0x259f || r >= 0x2800 && r <= 0x28ff || r >= 0x2190 && r <= 0x2193
}

// invisible characters take no room and change how others are shown.
func invisible(r rune) bool {
	switch {
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x180e, r == 0x3164, r == 0xfeff, r == 0xffa0:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff, r >= 0x1f3fb && r <= 0x1f3ff, r >= 0xfff0 && r <= 0xfffb:
		return true
	}
	return false
}

func stand(ascii bool) string {
	if ascii {
		return "?"
	}
	return "\ufffd"
}

// control shows a control character as its picture.
func control(r rune, ascii bool) string {
	switch {
	case ascii:
		return "?"
	case r == 0x7f:
		return "\u2421"
	default:
		return string(0x2400 + r)
	}
}

// Clean returns s as it may be printed.
func Clean(s string, ascii bool) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for text := range Cells(s, ascii) {
		b.WriteString(text)
	}
	return b.String()
}

// Width is how many cells s takes on a line.
func Width(s string) int {
	if printable(s) {
		return len(s)
	}
	w := 0
	for _, cw := range Cells(s, false) {
		w += cw
	}
	return w
}

// Clip returns the cleaned beginning of s that fits into width cells; what is
// cut is marked by an ellipsis.
func Clip(s string, width int, ascii bool) string {
	if printable(s) && len(s) <= width {
		return s
	}
	mark, mw := "…", 1
	if ascii {
		mark = "~"
	}
	if width < mw {
		return ""
	}
	var b strings.Builder
	w, last, lw := 0, 0, 0 // last, lw: a prefix that leaves room for the mark
	for text, cw := range Cells(s, ascii) {
		if w+cw > width {
			return b.String()[:last] + strings.Repeat(mark, min(1, width-lw))
		}
		b.WriteString(text)
		w += cw
		if w+mw <= width {
			last, lw = b.Len(), w
		}
	}
	return b.String()
}

// printable reports whether s is printable ASCII: as wide as it is long.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
