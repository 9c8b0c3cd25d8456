package tokenizer

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// Unlike x/text, nfc adds nothing to a long run of combining marks.
func TestLongRunsOfMarks(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"one mark":   {"a" + strings.Repeat("\u0301", 100), "\u00e1" + strings.Repeat("\u0301", 99)},
		"reordered":  {"a" + strings.Repeat("\u0301\u0323", 40), "\u1ea1" + strings.Repeat("\u0323", 39) + strings.Repeat("\u0301", 40)},
		"no starter": {strings.Repeat("\u0300", 64) + "x", strings.Repeat("\u0300", 64) + "x"},
		"own joiner": {"a\u034f" + strings.Repeat("\u0301", 70), "a\u034f" + strings.Repeat("\u0301", 70)},
		"bytes":      {"\xffe" + strings.Repeat("\u0301", 40) + "\xfe\u0301", "\xff\u00e9" + strings.Repeat("\u0301", 39) + "\xfe\u0301"},
	} {
		if got := nfc(c.in); got != c.want {
			t.Errorf("%s: %+q became %+q, want %+q", name, c.in, got, c.want)
		}
	}
}

// The slow path agrees with x/text wherever that adds nothing.
func TestComposeOracle(t *testing.T) {
	marks := []rune("aAoqI\u0131\u0305\u0301\u0300\u0323\u0327\u0308\u0304\u0344\u0345\u1100\u1161\u11a8\uac00\u212b\u2126\u09c7\u09be\u0958\u1e9b\ufb1d\u3099か\u0f71\u0f72\u0f74\U0001d15e日🙂")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.OneOf(rapid.SampledFrom(marks), rapid.Rune()), 0, 25, -1).Draw(t, "text")
		// A mark of the same class blocks the next one; a smaller one does not.
		s += rapid.SampledFrom([]string{"", "\xff", "e\xcc", "a\u0305\u0301", "a\u0323\u0301", "o\u031b\u0323\u0302"}).Draw(t, "tail")
		if got, want := compose(decompose(s)), norm.NFC.String(s); got != want {
			t.Fatalf("%+q: got %+q, want %+q", s, got, want)
		}
	})
}
