package tokenizer

import (
	"slices"
	"strings"
	"unicode"
)

// finder recognises added tokens in a text: the leftmost first, the longest
// where several begin together.
type finder struct {
	ids     map[string]int32
	lengths []int  // of the tokens, longest first
	begin   string // the bytes they begin with
	firsts  string // the characters they begin with, up to a letter, two at most
	lasts   string // the characters they end with, likewise
}

func newFinder(ids map[string]int32) finder {
	f := finder{ids: ids}
	for text := range ids {
		if !slices.Contains(f.lengths, len(text)) {
			f.lengths = append(f.lengths, len(text))
		}
		if strings.IndexByte(f.begin, text[0]) < 0 {
			f.begin += text[:1]
		}
		chars := []rune(text)
		f.firsts = edge(f.firsts, chars)
		slices.Reverse(chars)
		f.lasts = edge(f.lasts, chars)
	}
	slices.Sort(f.lengths)
	slices.Reverse(f.lengths)
	return f
}

// edge adds to have the first of chars, and the second where it is no letter.
func edge(have string, chars []rune) string {
	for i, r := range chars[:min(len(chars), 2)] {
		if i > 0 && unicode.In(r, unicode.L, unicode.N) {
			break
		}
		if !strings.ContainsRune(have, r) {
			have += string(r)
		}
	}
	return have
}

// next gives the first added token in text: where it begins and ends and its
// id; from is len(text) and id -1 where there is none.
func (f *finder) next(text string) (from, to int, id int32) {
	for at := range len(text) {
		if n, id := f.prefix(text[at:]); id >= 0 {
			return at, at + n, id
		}
	}
	return len(text), len(text), -1
}

// prefix gives the length and id of the added token that text begins with, -1
// where there is none; text is not empty.
func (f *finder) prefix(text string) (n int, id int32) {
	if strings.IndexByte(f.begin, text[0]) < 0 {
		return 0, -1
	}
	for _, n := range f.lengths {
		if n > len(text) {
			continue
		}
		if id, ok := f.ids[text[:n]]; ok {
			return n, id
		}
	}
	return 0, -1
}
