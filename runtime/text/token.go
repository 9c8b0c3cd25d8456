package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// TokenText is the text of a single token where it is shown or exported on
// its own: valid UTF-8 stays, every other byte is written as \xNN, so a
// fragment of a character is legible and no information is lost.
func TokenText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&out, `\x%02x`, b[0])
		} else {
			out.Write(b[:size])
		}
		b = b[size:]
	}
	return out.String()
}

// TokenBytes is the `bytes` field of a log-probability entry: the token's own
// bytes as numbers, never those of a replacement character.
func TokenBytes(b []byte) []int {
	out := make([]int, len(b))
	for i, c := range b {
		out[i] = int(c)
	}
	return out
}
