package scripting

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Lua patterns (Lua 5.1 manual, section 5.4.1) by backtracking, with every
// step charged to the call: a pattern like ".-.-.-.-x" is polynomial in the
// subject, so the number of VM instructions alone would not bound it.

const (
	maxCaptures = 32
	maxPattern  = 1 << 10 // bytes; bounds the recursion

	capOpen     = -1 // capture not closed yet
	capPosition = -2 // "()": the position itself
)

type matcher struct {
	l        *lua.LState
	meter    *meter
	src, pat string
	level    int
	caps     [maxCaptures]struct{ at, len int }
}

func newMatcher(l *lua.LState, src, pat string) *matcher {
	if len(pat) > maxPattern {
		l.RaiseError("a pattern of %d bytes; patterns end at %d", len(pat), maxPattern)
	}
	return &matcher{l: l, meter: l.Context().(*meter), src: src, pat: pat}
}

func (m *matcher) step() {
	if m.meter.left--; m.meter.left < 0 {
		m.meter.charge(m.l, 0)
	}
}

// look pays for walking over the class pat[p:end]; the next step stops.
func (m *matcher) look(p, end int) { m.meter.left -= int64(end-p) / costLook }

// match tries the pattern from p on at position s; it returns the end of the
// match, or -1.
func (m *matcher) match(s, p int) int {
	for p < len(m.pat) {
		m.step()
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, capPosition)
			}
			return m.open(s, p+1, capOpen)
		case ')':
			return m.close(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) {
				switch c := m.pat[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					end := m.classEnd(p + 2)
					if m.pat[p+2] != '[' {
						m.l.RaiseError("missing '[' after %%f in pattern")
					}
					var before, after byte
					m.look(p, end)
					if s > 0 {
						before = m.src[s-1]
					}
					if s < len(m.src) {
						after = m.src[s]
					}
					if m.inSet(before, p+2, end-1) || !m.inSet(after, p+2, end-1) {
						return -1
					}
					p = end
					continue
				case c >= '0' && c <= '9':
					i := m.closedCapture(c)
					word := m.src[m.caps[i].at : m.caps[i].at+m.caps[i].len]
					m.meter.charge(m.l, len(word)/costPiece)
					if !strings.HasPrefix(m.src[s:], word) {
						return -1
					}
					s += len(word)
					p += 2
					continue
				}
			}
		}
		end := m.classEnd(p)
		m.look(p, end)
		var suffix byte
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if m.one(s, p, end) {
				if r := m.match(s+1, end+1); r >= 0 {
					return r
				}
			}
			p = end + 1
		case '*':
			return m.most(s, p, end)
		case '+':
			if !m.one(s, p, end) {
				return -1
			}
			return m.most(s+1, p, end)
		case '-':
			return m.least(s, p, end)
		default:
			if !m.one(s, p, end) {
				return -1
			}
			s++
			p = end
		}
	}
	return s
}

func (m *matcher) open(s, p, what int) int {
	if m.level >= maxCaptures {
		m.l.RaiseError("too many captures in pattern")
	}
	m.caps[m.level].at, m.caps[m.level].len = s, what
	m.level++
	r := m.match(s, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) close(s, p int) int {
	i := m.level - 1
	for ; i >= 0 && m.caps[i].len != capOpen; i-- {
	}
	if i < 0 {
		m.l.RaiseError("')' without '(' in pattern")
	}
	m.caps[i].len = s - m.caps[i].at
	r := m.match(s, p)
	if r < 0 {
		m.caps[i].len = capOpen
	}
	return r
}

func (m *matcher) closedCapture(digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.caps[i].len < 0 {
		m.l.RaiseError("invalid capture index %%%c in pattern", digit)
	}
	return i
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.l.RaiseError("%%b in a pattern needs two characters")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.step()
		switch m.src[i] {
		case m.pat[p+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case m.pat[p]:
			depth++
		}
	}
	return -1
}

func (m *matcher) most(s, p, end int) int {
	n := 0
	for m.one(s+n, p, end) {
		m.step()
		n++
	}
	for ; n >= 0; n-- {
		if r := m.match(s+n, end+1); r >= 0 {
			return r
		}
		m.step()
	}
	return -1
}

func (m *matcher) least(s, p, end int) int {
	for {
		m.step()
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		if !m.one(s, p, end) {
			return -1
		}
		s++
	}
}

// classEnd returns the position behind the single-character class at p.
func (m *matcher) classEnd(p int) int {
	if p >= len(m.pat) {
		m.l.RaiseError("the pattern ends too early")
	}
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.l.RaiseError("the pattern ends with %%")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p < len(m.pat) && m.pat[p] != ']'; first = false {
			if p < len(m.pat) && m.pat[p] == '%' {
				p++
			}
			p++
		}
		if p >= len(m.pat) {
			m.l.RaiseError("missing ']' in pattern")
		}
		return p + 1
	}
	return p
}

// one says whether the character at s is in the class pat[p:end].
func (m *matcher) one(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		m.look(p, end)
		return m.inSet(c, p, end-1)
	}
	return m.pat[p] == c
}

// inSet looks c up in a set; p is at '[' and end at the closing ']'.
func (m *matcher) inSet(c byte, p, end int) bool {
	p++
	in := true
	if p < end && m.pat[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%' && p+1 < end:
			p++
			if inClass(c, m.pat[p]) {
				return in
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

// inClass knows %a, %d, ...; an upper-case letter is the complement, any other
// character stands for itself.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isAlpha(c)
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = c > 0x20 && c < 0x7f && !isAlpha(c) && !isDigit(c)
	case 's':
		in = c == ' ' || 0x09 <= c && c <= 0x0d
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = isAlpha(c) || isDigit(c)
	case 'x':
		in = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !isAlpha(class) {
		return class == c
	}
	return in == (class&0x20 != 0)
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// capture returns capture i as a value; the whole match when there is none.
func (m *matcher) capture(i, start, end int) lua.LValue {
	if i >= m.level {
		if i > 0 {
			m.l.RaiseError("invalid capture index %%%d", i+1)
		}
		return m.piece(start, end)
	}
	switch c := m.caps[i]; c.len {
	case capPosition:
		return lua.LNumber(c.at + 1)
	case capOpen:
		m.l.RaiseError("unfinished capture in pattern")
		return lua.LNil
	default:
		return m.piece(c.at, c.at+c.len)
	}
}

// piece copies a part of the subject, so that it does not hold the whole.
func (m *matcher) piece(from, to int) lua.LValue {
	m.meter.text(m.l, to-from)
	return lua.LString(strings.Clone(m.src[from:to]))
}

// pushCaptures pushes all captures, or the whole match if whole is set and
// there are none.
func (m *matcher) pushCaptures(start, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.l.Push(m.capture(i, start, end))
	}
	return n
}

// find runs the pattern from position from on; start is -1 when nothing matches.
func (m *matcher) find(from int) (start, end int) {
	p, anchored := 0, strings.HasPrefix(m.pat, "^")
	if anchored {
		p = 1
	}
	for s := from; s <= len(m.src); s++ {
		m.level = 0
		m.step()
		if e := m.match(s, p); e >= 0 {
			return s, e
		}
		if anchored {
			break
		}
	}
	return -1, -1
}
