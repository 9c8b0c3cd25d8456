package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// rule is how text is cut into words before the merges; a file that asks for
// another one is refused.
type rule struct {
	name    string
	regex   string   // as published in tokenizer.json
	digits  int      // digits in a word at most
	ggml    []string // names under tokenizer.ggml.pre
	whole   bool     // ggml: a word that is a token is taken as it is (ignore_merges)
	bos     bool     // a sequence begins with BOS unless the file says otherwise
	ggmlNFC []string // of ggml, those whose tokenizer.json normalises to NFC
}

// rules are the ones of the model families this project runs. The regexes are
// those of the published tokenizer.json files, the names and defaults under
// tokenizer.ggml.pre those of llama.cpp (src/llama-vocab.cpp).
var rules = []rule{
	{
		name:    "Qwen2",
		regex:   `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		digits:  1,
		ggml:    []string{"qwen2", "deepseek-r1-qwen"},
		ggmlNFC: []string{"qwen2"},
	},
	{
		name:   "Llama 3",
		regex:  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		digits: 3,
		ggml:   []string{"llama-bpe", "llama3", "llama-v3"},
		whole:  true,
		bos:    true,
	},
}

// kind is what the patterns distinguish in a character.
type kind uint8

const (
	symbol  kind = iota // anything else, and bytes that are not UTF-8
	letter              // \p{L}
	number              // \p{N}
	space               // \s without line ends
	newline             // \r or \n
)

// next classifies the first character of s and gives its length in bytes.
func next(s string) (kind, int) {
	if c := s[0]; c < utf8.RuneSelf {
		return asciiKind[c], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1:
		return symbol, 1
	case unicode.IsLetter(r):
		return letter, n
	case unicode.IsNumber(r):
		return number, n
	case unicode.IsSpace(r):
		return space, n
	}
	return symbol, n
}

var asciiKind = func() (t [utf8.RuneSelf]kind) {
	for c := range t {
		switch r := rune(c); {
		case unicode.IsLetter(r):
			t[c] = letter
		case unicode.IsNumber(r):
			t[c] = number
		case r == '\r' || r == '\n':
			t[c] = newline
		case unicode.IsSpace(r):
			t[c] = space
		}
	}
	return t
}()

// split returns the length in bytes of the first word of s, which is not
// empty. Each branch is one alternative of the regex, in its order.
func (r *rule) split(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	k, n := next(s)
	// [^\r\n\p{L}\p{N}]?\p{L}+
	if k == letter {
		return n + run(s[n:], letter)
	}
	if k != newline && k != number {
		if m := run(s[n:], letter); m > 0 {
			return n + m
		}
	}
	// \p{N} or \p{N}{1,3}
	if k == number {
		for i := 1; i < r.digits && n < len(s); i++ {
			k, m := next(s[n:])
			if k != number {
				break
			}
			n += m
		}
		return n
	}
	//  ?[^\s\p{L}\p{N}]+[\r\n]*
	lead := 0
	if s[0] == ' ' {
		lead = 1
	}
	if m := run(s[lead:], symbol); m > 0 {
		m += lead
		return m + run(s[m:], newline)
	}
	return blank(s)
}

// blank is \s*[\r\n]+|\s+(?!\S)|\s+ on the run of white space that s begins
// with.
func blank(s string) int {
	end, lastLine, lastStart := 0, 0, 0
	for end < len(s) {
		k, n := next(s[end:])
		if k != space && k != newline {
			break
		}
		lastStart = end
		end += n
		if k == newline {
			lastLine = end
		}
	}
	switch {
	case lastLine > 0:
		return lastLine
	case end < len(s) && lastStart > 0:
		return lastStart // leave one character for the word that follows
	}
	return end
}

// run is the length in bytes of the characters of one kind that s begins with.
func run(s string, want kind) int {
	i := 0
	for i < len(s) {
		k, n := next(s[i:])
		if k != want {
			break
		}
		i += n
	}
	return i
}

// contraction is the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at the start of s.
// Case folding makes the long s (U+017F) an s.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	if len(s) >= 3 && s[1:3] == "\u017f" {
		return 3
	}
	return 0
}
