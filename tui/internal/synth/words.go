package synth

import (
	"strings"

	"tokenrouter/runtime/event"
)

// EOS is the end mark of every text.
const EOS event.Token = 0

// vocab is filled by the texts as they are first used: digits and marks are
// single tokens, words are split after their first two letters.
var (
	vocab = []string{"<|end|>"}
	ids   = map[string]event.Token{}
)

type problem struct{ question, chain, answer string }

var problems = []problem{
	{
		"Ana has 63 stamps. Ana opens 4 boxes of 27. Ana finds 35 more. Ana gives half of them to Leo. How many stamps does Ana have?",
		"<think>\nStart with 63.\nOpens 4 boxes of 27: 4*27=108, 63+108=171.\nFinds 35 more: 171+35=206.\nGives half away: 206/2=103.\nThe answer is 103.\n</think>\n\n103", "103",
	},
	{
		"Ben has 20 marbles. Ben buys 57 more. Ben loses 18. Ben doubles what is left. How many marbles does Ben have?",
		"<think>\nStart with 20.\nBuys 57 more: 20+57=77.\nLoses 18: 77-18=59.\nDoubles it: 59*2=118.\nThe answer is 118.\n</think>\n\n118", "118",
	},
	{
		"Mia has 142 shells. Mia fills 6 jars with 14 each. Mia finds 9 more. How many shells are not in a jar?",
		"<think>\nStart with 142.\nFills 6 jars with 14: 6*14=84, 142-84=58.\nFinds 9 more: 58+9=67.\nThe answer is 67.\n</think>\n\n67", "67",
	},
	{
		"Tom saves 15 coins a week for 8 weeks. Tom spends 44. Tom gets 31 from Eva. How many coins does Tom have?",
		"<think>\nSaves 15 for 8 weeks: 15*8=120.\nSpends 44: 120-44=76.\nGets 31: 76+31=107.\nThe answer is 107.\n</think>\n\n107", "107",
	},
	{
		"Lia reads 37 pages on Monday and twice as many on Tuesday. The book has 260 pages. How many are left?",
		"<think>\nMonday: 37.\nTuesday: 37*2=74.\nTogether: 37+74=111.\nLeft: 260-111=149.\nThe answer is 149.\n</think>\n\n149", "149",
	},
}

func (c *Cluster) text() []event.Token {
	s := problems[int(c.next)%len(problems)].chain
	if len(c.cfg.Texts) > 0 {
		s = c.cfg.Texts[int(c.next)%len(c.cfg.Texts)]
	}
	out := Tokens(s)
	for c.cfg.Tokens > 0 && len(out) < c.cfg.Tokens {
		out = append(out, Tokens(" "+s)...)
	}
	if c.cfg.Tokens > 0 {
		out = out[:c.cfg.Tokens]
	}
	return append(out, EOS)
}

// Tokens splits a text.
func Tokens(s string) []event.Token {
	var out []event.Token
	for s != "" {
		n := 1
		switch {
		case strings.HasPrefix(s, "<think>"):
			n = 7
		case strings.HasPrefix(s, "</think>"):
			n = 8
		case strings.HasPrefix(s, "\n\n"):
			n = 2
		case letter(s[0]) || s[0] == ' ' && len(s) > 1 && letter(s[1]):
			for n < min(len(s), 4) && letter(s[n]) {
				n++
			}
		case s[0] >= 0x80: // half of a character at a time
			n = min(2, len(s))
		}
		out = append(out, id(s[:n]))
		s = s[n:]
	}
	return out
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func id(s string) event.Token {
	if t, ok := ids[s]; ok {
		return t
	}
	vocab = append(vocab, s)
	ids[s] = event.Token(len(vocab) - 1)
	return ids[s]
}

// Text is the text of a token.
func Text(t event.Token) []byte {
	if t < 0 || int(t) >= len(vocab) {
		return nil
	}
	return []byte(vocab[t])
}
