package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc is Unicode's normalisation form C; bytes that are not UTF-8 stay.
func nfc(s string) string {
	if norm.NFC.IsNormalString(s) {
		return s
	}
	// x/text writes the Stream-Safe format: after 30 combining marks it adds a
	// joiner of its own, which no tokenizer that a model was trained with does.
	out := norm.NFC.String(s)
	const joiner = "\u034f"
	if strings.Count(out, joiner) == strings.Count(s, joiner) {
		return out
	}
	return compose(decompose(s))
}

// char is a character of a decomposed text, or a byte that is not UTF-8.
type char struct {
	r     rune
	class uint8 // canonical combining class
	raw   bool
}

func decompose(s string) []char {
	out := make([]char, 0, len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			out = append(out, char{rune(s[0]), 0, true})
			s = s[1:]
			continue
		}
		parts := norm.NFD.String(s[:n])
		for len(parts) > 0 {
			r, n := utf8.DecodeRuneInString(parts)
			out = append(out, char{r, norm.NFD.PropertiesString(parts).CCC(), false})
			parts = parts[n:]
		}
		s = s[n:]
	}
	for from := 0; from < len(out); from++ {
		to := from
		for to < len(out) && out[to].class > 0 {
			to++
		}
		slices.SortStableFunc(out[from:to], func(a, b char) int { return int(a.class) - int(b.class) })
		from = to
	}
	return out
}

// compose is the canonical composition algorithm (Unicode 3.11, D117).
func compose(in []char) string {
	out := in[:0]
	starter, last := -1, uint8(0) // index of the last starter, class of what stands before
	for _, c := range in {
		if starter >= 0 && !c.raw && (starter == len(out)-1 || last < c.class) {
			if r, ok := composite(out[starter].r, c.r); ok {
				out[starter].r = r
				continue
			}
		}
		if last = c.class; c.class == 0 {
			starter = -1
			if !c.raw {
				starter = len(out)
			}
		}
		out = append(out, c)
	}
	var b strings.Builder
	for _, c := range out {
		if c.raw {
			b.WriteByte(byte(c.r))
		} else {
			b.WriteRune(c.r)
		}
	}
	return b.String()
}

// composite is the character that two make together, if there is one.
func composite(a, b rune) (rune, bool) {
	var buf [2 * utf8.UTFMax]byte
	pair := utf8.AppendRune(utf8.AppendRune(buf[:0], a), b)
	var to [3 * utf8.UTFMax]byte
	one := norm.NFC.Append(to[:0], pair...)
	r, n := utf8.DecodeRune(one)
	return r, n == len(one) && n > 0
}
