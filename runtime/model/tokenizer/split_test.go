package tokenizer

import (
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// words splits text fully.
func words(r *rule, text string) (out []string) {
	for text != "" {
		n := r.split(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello world":            {"Hello", " world"},
		"I'm, you'RE he'll 'tis": {"I", "'m", ",", " you", "'RE", " he", "'ll", " '", "tis"},
		"don't can'd we'Ve":      {"don", "'t", " can", "'d", " we", "'Ve"},
		"it'\u017f":              {"it", "'\u017f"},
		"'x 'l 'r '":             {"'x", " '", "l", " '", "r", " '"},
		"a12b 345":               {"a", "1", "2", "b", " ", "3", "4", "5"},
		"x\n\n  y":               {"x", "\n\n", " ", " y"},
		"x \r\n\t y":             {"x", " \r\n", "\t", " y"},
		"x   ":                   {"x", "   "},
		"x  \n":                  {"x", "  \n"},
		"  12":                   {" ", " ", "1", "2"},
		"...!?\n\nok":            {"...!?\n\n", "ok"},
		" (a) -> b":              {" (", "a", ")", " ->", " b"},
		"\tfoo\u00a0bar":         {"\tfoo", "\u00a0bar"},
		"日本語 text":               {"日本語", " text"},
		"e\u0301a":               {"e", "\u0301a"},
		"½Ⅳ٣":                    {"½", "Ⅳ", "٣"},
		"a\xff\xfeb":             {"a", "\xff\xfe", "b"},
		"\xffb":                  {"\xffb"},
		"🙂🙂 🙂\n":                 {"🙂🙂", " 🙂\n"},
		"\u2028x":                {"\u2028x"},
		"\u2028\u2028x":          {"\u2028", "\u2028x"},
		"\u0085\n":               {"\u0085\n"},
	} {
		if got := words(&rules[0], text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// alphabet has one or more characters of every kind the pattern tells apart.
var alphabet = []rune("sStTrReEvVmMlLdDx' \t\u00a0\u2003\r\n019٣½.,!-é日\u0301\u017f🙂")

// TestSplitRegex compares the scanner with Go's own engine on the pattern. Go
// has no look-ahead, so the alternative \s+(?!\S) is applied by hand to a match
// of \s+. Go's \s is ASCII and is spelt out.
func TestSplitRegex(t *testing.T) {
	const s = `\t\n\v\f\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	re := regexp.MustCompile(`^(?:((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\pL\pN]?\pL+|\pN| ?[^` + s + `\pL\pN]+[\r\n]*|[` + s + `]*[\r\n]+)|([` + s + `]+))`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(alphabet), 1, 30, -1).Draw(t, "text")
		for rest := text; rest != ""; {
			m := re.FindStringSubmatchIndex(rest)
			want := m[1]
			if m[4] >= 0 && want < len(rest) {
				if _, n := utf8.DecodeLastRuneInString(rest[:want]); n < want {
					want -= n
				}
			}
			if got := rules[0].split(rest); got != want {
				t.Fatalf("%q: scanner takes %q, pattern %q", rest, rest[:got], rest[:want])
			}
			rest = rest[want:]
		}
	})
}
