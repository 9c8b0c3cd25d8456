package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// source is a template prepared for gonja's lexer, which knows neither line
// ends inside tags nor every string and strips too much before blocks: the tags
// stand on one line, each string literal is its number in strings, and the
// white space around blocks is gone as trim_blocks and lstrip_blocks want it.
type source struct {
	text    strings.Builder
	strings []string
	lines   []int // of each tag and comment in order
}

func (p *source) add(s string) { p.text.WriteString(s) }

// prepare reads the whole template once.
func prepare(in string) (*source, error) {
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	in = strings.TrimSuffix(in, "\n")
	p := &source{}
	line := 1
	lineStart := true // what follows stands at the beginning of a line
	for {
		at := tagStart(in)
		if at < 0 {
			p.add(in)
			return p, nil
		}
		line += strings.Count(in[:at], "\n")
		p.lines = append(p.lines, line)
		data, block := in[:at], in[at+1] != '{'
		if block && (at+2 == len(in) || in[at+2] != '+') {
			data = leftStrip(data, lineStart)
		}
		p.add(data)
		var n int
		var err error
		if in[at+1] == '#' {
			n, err = p.comment(in[at:])
		} else {
			n, err = p.tag(in[at:])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		line += strings.Count(in[at:at+n], "\n")
		keep := in[at+n-3] == '+' // +%}
		in = in[at+n:]
		lineStart = block && !keep && strings.HasPrefix(in, "\n")
		if lineStart {
			in = in[1:]
			line++
		}
	}
}

// tagStart finds the first {{, {% or {#.
func tagStart(in string) int {
	for at := 0; at+1 < len(in); at++ {
		if in[at] == '{' && strings.IndexByte("{%#", in[at+1]) >= 0 {
			return at
		}
	}
	return -1
}

// leftStrip cuts the blanks before a block that begins its line.
func leftStrip(data string, lineStart bool) string {
	short := strings.TrimRight(data, " \t\v\f")
	if strings.HasSuffix(short, "\n") || short == "" && lineStart {
		return short
	}
	return data
}

func (p *source) comment(in string) (int, error) {
	n := strings.Index(in[2:], "#}")
	if n < 0 {
		return 0, fmt.Errorf("the comment has no end")
	}
	text := in[2 : 2+n]
	p.add("{#")
	if text != "" && (text[0] == '-' || text[0] == '+') {
		p.add(text[:1])
	}
	p.add(" ")
	if n > 1 && (text[n-1] == '-' || text[n-1] == '+') {
		p.add(text[n-1:])
	}
	p.add("#}")
	return n + 4, nil
}

func (p *source) tag(in string) (int, error) {
	end := "%}"
	if in[1] == '{' {
		end = "}}"
	}
	p.add(in[:2])
	depth := 0
	for at := 2; at < len(in); {
		if depth == 0 && strings.HasPrefix(in[at:], end) {
			p.add(end)
			return at + 2, nil
		}
		c := in[at]
		switch {
		case c == '"' || c == '\'':
			text, n, err := literal(in[at:])
			if err != nil {
				return 0, err
			}
			p.add(`"` + strconv.Itoa(len(p.strings)) + `"`)
			p.strings = append(p.strings, text)
			at += n
			continue
		case c == '(' || c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return 0, fmt.Errorf("brackets are nested more than %d deep", maxNesting)
			}
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == ' ' || c >= '\t' && c <= '\r':
			c = ' '
		case c == '!' && strings.HasPrefix(in[at:], "!="):
		case c < utf8.RuneSelf && strings.IndexByte(known, c) < 0:
			return 0, fmt.Errorf("%q is not expected in a tag", c)
		}
		p.text.WriteByte(c)
		at++
	}
	return 0, fmt.Errorf("the tag has no end")
}

// known are the characters of tags beside strings, brackets and white space.
const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-*/%~|.,:=<>"

// literal reads a string literal: its value and its length in the source.
func literal(in string) (string, int, error) {
	var b strings.Builder
	for at := 1; at < len(in); at++ {
		switch c := in[at]; {
		case c == in[0]:
			return b.String(), at + 1, nil
		case c == '\\' && at+1 < len(in):
			n, err := unescape(&b, in[at:])
			if err != nil {
				return "", 0, err
			}
			at += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, fmt.Errorf("a string has no end")
}

// unescape writes what the escape at the beginning of in stands for in Python,
// and gives its length.
func unescape(b *strings.Builder, in string) (int, error) {
	digits := 0
	switch c := in[1]; c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case '\\', '\'', '"':
		b.WriteByte(c)
	case '\n':
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		b.WriteString(in[:2]) // Python keeps what it does not know
	}
	if digits > 0 {
		if len(in) < 2+digits {
			return 0, fmt.Errorf("an escape has no end")
		}
		r, err := strconv.ParseUint(in[2:2+digits], 16, 32)
		if err != nil {
			return 0, fmt.Errorf("%.10q is no escape", in[:2+digits])
		}
		b.WriteRune(rune(min(r, utf8.MaxRune+1)))
	}
	return 2 + digits, nil
}

// lex cuts a template into tokens, checks the bounds, and rewrites what gonja's
// parser does not know.
func lex(text string, cfg *config.Config) ([]*tokens.Token, error) {
	p, err := prepare(text)
	if err != nil {
		return nil, err
	}
	if len(p.lines) > maxTags {
		return nil, fmt.Errorf("line %d: more than %d tags", p.lines[maxTags], maxTags)
	}
	stream := tokens.LexAll(p.text.String(), cfg)
	var all []*tokens.Token
	begin, tags, line := 0, 0, 1
	for {
		t := stream.Current()
		switch t.Type {
		case tokens.BlockBegin, tokens.VariableBegin, tokens.CommentBegin:
			begin, line = len(all), p.lines[min(tags, len(p.lines)-1)]
			tags++
		case tokens.String:
			n, err := strconv.Atoi(t.Val)
			if err != nil || n >= len(p.strings) {
				return nil, fmt.Errorf("line %d: %q is no string", line, t.Val)
			}
			t.Val = strings.ReplaceAll(p.strings[n], `\`, `\\`) // the parser takes one level of escapes off
		case tokens.Name:
			t.Type = word(t.Val, len(all)-begin)
		case tokens.RightBrace:
			if n := len(all); n > begin && all[n-1].Type == tokens.Comma {
				all = all[:n-1] // {"a": 1,}
			}
		case tokens.BlockEnd, tokens.VariableEnd:
			all = append(all[:begin], conditional(all[begin:])...)
		}
		t.Line = line
		if t.Type == tokens.Error {
			return nil, fmt.Errorf("line %d: %s", t.Line, t.Val)
		}
		if len(all)-begin > maxTagTokens && t.Type != tokens.Data {
			return nil, fmt.Errorf("line %d: a tag has more than %d parts", t.Line, maxTagTokens)
		}
		all = append(all, t)
		if t.Type == tokens.EOF {
			return all, nil
		}
		stream.Next()
	}
}

// word gives the type of a name: gonja's lexer knows operators only before
// white space.
func word(name string, at int) tokens.Type {
	if at > 1 {
		switch name {
		case "and":
			return tokens.And
		case "or":
			return tokens.Or
		case "not":
			return tokens.Not
		case "in":
			return tokens.In
		case "is":
			return tokens.Is
		}
	}
	return tokens.Name
}

// ifName is the function that a conditional expression becomes: gonja knows
// them only at the end of a tag, and one at a time. It is no identifier, so no
// template can name it.
const ifName = "if()"

func isName(t *tokens.Token, name string) bool { return t.Type == tokens.Name && t.Val == name }

// bracket is 1 where t opens one, -1 where it closes one.
func bracket(t *tokens.Token) int {
	switch t.Type {
	case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
		return 1
	case tokens.RightParenthesis, tokens.RightBracket, tokens.RightBrace:
		return -1
	}
	return 0
}

// conditional rewrites a if c else b to if()(c, a, b) in the tokens of one tag,
// from the inside to the outside. The if of a loop or an if tag stays.
func conditional(tag []*tokens.Token) []*tokens.Token {
	if !slices.ContainsFunc(tag[1:], func(t *tokens.Token) bool { return isName(t, "if") }) {
		return tag
	}
	type level struct {
		out  []*tokens.Token
		from int // of the part between two commas that is under way
	}
	whole := tag[0].Type == tokens.VariableBegin || isName(tag[1], "set")
	levels := []level{{}}
	flush := func() {
		at := &levels[len(levels)-1]
		if len(levels) > 1 || whole {
			at.out = append(at.out[:at.from:at.from], rewrite(at.out[at.from:])...)
		}
		at.from = len(at.out)
	}
	for _, t := range tag {
		switch {
		case bracket(t) > 0:
			levels = append(levels, level{})
		case bracket(t) < 0:
			flush()
			top := len(levels) - 1
			if top == 0 {
				return tag // unbalanced: the parser will say so
			}
			in := levels[top].out
			levels = levels[:top]
			levels[top-1].out = append(levels[top-1].out, in...)
		case t.Type == tokens.Comma, t.Type == tokens.Colon, t.Type == tokens.Assign:
			flush()
		}
		at := &levels[len(levels)-1]
		at.out = append(at.out, t)
		if len(at.out) == 1 || t.Type == tokens.Comma || t.Type == tokens.Colon || t.Type == tokens.Assign {
			at.from = len(at.out)
		}
	}
	if len(levels) > 1 {
		return tag
	}
	flush()
	return levels[0].out
}

// rewrite turns a if c else b into a call; brackets inside are done already.
func rewrite(part []*tokens.Token) []*tokens.Token {
	depth, ifAt, elseAt := 0, -1, -1
	for i, t := range part {
		depth += bracket(t)
		switch {
		case depth > 0:
		case ifAt < 0 && isName(t, "if"):
			ifAt = i
		case ifAt >= 0 && elseAt < 0 && isName(t, "else"):
			elseAt = i
		}
	}
	if ifAt <= 0 {
		return part
	}
	mark := part[ifAt]
	token := func(typ tokens.Type, val string) *tokens.Token {
		return &tokens.Token{Type: typ, Val: val, Pos: mark.Pos, Line: mark.Line, Col: mark.Col}
	}
	end := elseAt
	if end < 0 {
		end = len(part)
	}
	out := []*tokens.Token{token(tokens.Name, ifName), token(tokens.LeftParenthesis, "(")}
	out = append(out, part[ifAt+1:end]...)
	out = append(out, token(tokens.Comma, ","))
	out = append(out, part[:ifAt]...)
	if elseAt >= 0 {
		out = append(out, token(tokens.Comma, ","))
		out = append(out, rewrite(part[elseAt+1:])...)
	}
	return append(out, token(tokens.RightParenthesis, ")"))
}
