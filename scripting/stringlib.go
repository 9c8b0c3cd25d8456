package scripting

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// stringLib is Lua's string library on bytes; dump is absent. Every function
// charges for the bytes it reads or makes.
var stringLib = lib{
	{"byte", stringByte},
	{"char", stringChar},
	{"find", func(l *lua.LState) int { return stringFind(l, true) }},
	{"format", stringFormat},
	{"gmatch", stringGmatch},
	{"gsub", stringGsub},
	{"len", func(l *lua.LState) int {
		l.Push(lua.LNumber(len(l.CheckString(1))))
		return 1
	}},
	{"lower", func(l *lua.LState) int { return mapBytes(l, 'A', 'Z') }},
	{"match", func(l *lua.LState) int { return stringFind(l, false) }},
	{"rep", stringRep},
	{"reverse", stringReverse},
	{"sub", stringSub},
	{"upper", func(l *lua.LState) int { return mapBytes(l, 'a', 'z') }},
}

// mapBytes flips the case of the letters lo..hi.
func mapBytes(l *lua.LState, lo, hi byte) int {
	b := []byte(l.CheckString(1))
	for i, c := range b {
		if lo <= c && c <= hi {
			b[i] = c ^ 0x20
		}
	}
	return pushText(l, string(b))
}

// span converts Lua's i, j (1-based, negative from the end, inclusive) to a
// half-open Go range within n.
func span(i, j, n int) (from, to int) {
	if i < 0 {
		i = max(n+i+1, 1)
	} else if i == 0 {
		i = 1
	}
	if j < 0 {
		j = n + j + 1
	} else if j > n {
		j = n
	}
	if i > j {
		return 0, 0
	}
	return i - 1, j
}

func stringByte(l *lua.LState) int {
	s := l.CheckString(1)
	i := optInt(l, 2, 1)
	from, to := span(i, optInt(l, 3, i), len(s))
	if to-from > maxValues {
		l.RaiseError("string.byte of %d bytes; a call takes at most %d", to-from, maxValues)
	}
	charge(l, to-from)
	for _, c := range []byte(s[from:to]) {
		l.Push(lua.LNumber(c))
	}
	return to - from
}

func stringChar(l *lua.LState) int {
	b := make([]byte, l.GetTop())
	for i := range b {
		n := checkInt(l, i+1)
		if n < 0 || n > 255 {
			l.ArgError(i+1, "a byte lies between 0 and 255")
		}
		b[i] = byte(n)
	}
	return pushText(l, string(b))
}

func stringRep(l *lua.LState) int {
	s, n := l.CheckString(1), checkInt(l, 2)
	if n <= 0 || s == "" {
		return pushText(l, "")
	}
	if n > MaxString { // len(s)*n below cannot overflow
		n = MaxString + 1
	}
	l.Context().(*meter).text(l, len(s)*n)
	l.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

func stringReverse(l *lua.LState) int {
	s := l.CheckString(1)
	b := make([]byte, len(s))
	for i := range len(s) {
		b[len(s)-1-i] = s[i]
	}
	return pushText(l, string(b))
}

func stringSub(l *lua.LState) int {
	s := l.CheckString(1)
	from, to := span(checkInt(l, 2), optInt(l, 3, -1), len(s))
	return pushText(l, strings.Clone(s[from:to])) // a piece does not hold the whole
}

func stringFind(l *lua.LState, positions bool) int {
	s, pat := l.CheckString(1), l.CheckString(2)
	init := optInt(l, 3, 1)
	if init < 0 {
		init = max(len(s)+init+1, 1)
	}
	init = max(init-1, 0)
	if init > len(s) {
		l.Push(lua.LNil)
		return 1
	}
	if positions && (l.ToBool(4) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		charge(l, len(s)/costPiece)
		i := strings.Index(s[init:], pat)
		if i < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(init + i + 1))
		l.Push(lua.LNumber(init + i + len(pat)))
		return 2
	}
	m := newMatcher(l, s, pat)
	start, end := m.find(init)
	if start < 0 {
		l.Push(lua.LNil)
		return 1
	}
	if !positions {
		return m.pushCaptures(start, end, true)
	}
	l.Push(lua.LNumber(start + 1))
	l.Push(lua.LNumber(end))
	return 2 + m.pushCaptures(start, end, false)
}

// stringGmatch makes a closure over subject, pattern and position, where an
// audit sees what it holds.
func stringGmatch(l *lua.LState) int {
	src, pat := lua.LString(l.CheckString(1)), lua.LString(l.CheckString(2))
	l.Push(l.NewClosure(gmatchStep, src, pat, lua.LNumber(0)))
	return 1
}

func gmatchStep(l *lua.LState) int {
	src, pat := lua.LVAsString(l.Get(lua.UpvalueIndex(1))), lua.LVAsString(l.Get(lua.UpvalueIndex(2)))
	at := int(lua.LVAsNumber(l.Get(lua.UpvalueIndex(3))))
	if at > len(src) {
		return 0
	}
	m := newMatcher(l, src, pat)
	start, end := m.find(at)
	next := max(end, at)
	switch {
	case start < 0:
		next = len(src) + 1
	case start == end:
		next++
	}
	l.Replace(lua.UpvalueIndex(3), lua.LNumber(next))
	if start < 0 {
		return 0
	}
	return m.pushCaptures(start, end, true)
}

func stringGsub(l *lua.LState) int {
	s, pat := l.CheckString(1), l.CheckString(2)
	l.CheckTypes(3, lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction)
	repl, limit := l.Get(3), optInt(l, 4, len(s)+1)
	m := newMatcher(l, s, pat)
	var b strings.Builder
	at, n := 0, 0
	for n < limit {
		start, end := m.find(at)
		if start < 0 {
			break
		}
		n++
		b.WriteString(s[at:start])
		b.WriteString(m.replacement(repl, start, end))
		if at = end; end == start {
			if at < len(s) {
				b.WriteByte(s[at])
			}
			at++
		}
		if b.Len() > MaxString {
			break // the text below refuses
		}
		if at > len(s) || strings.HasPrefix(pat, "^") {
			break
		}
	}
	if at < len(s) {
		b.WriteString(s[at:])
	}
	pushText(l, b.String())
	l.Push(lua.LNumber(n))
	return 2
}

func (m *matcher) replacement(repl lua.LValue, start, end int) string {
	var v lua.LValue
	switch r := repl.(type) {
	case *lua.LTable:
		v = m.l.GetTable(r, m.capture(0, start, end))
	case *lua.LFunction:
		level, caps := m.level, m.caps // the function may use patterns itself, not this one
		m.l.Push(r)
		n := m.pushCaptures(start, end, true)
		m.l.Call(n, 1)
		m.level, m.caps = level, caps
		v = m.l.Get(-1)
		m.l.Pop(1)
	default:
		return m.expand(repl.String(), start, end)
	}
	if lua.LVIsFalse(v) {
		return m.src[start:end]
	}
	if !lua.LVCanConvToString(v) {
		m.l.RaiseError("invalid replacement value (a %s)", v.Type().String())
	}
	m.meter.charge(m.l, len(v.String())/costPiece)
	return v.String()
}

// expand replaces %0..%9 in a replacement text.
func (m *matcher) expand(r string, start, end int) string {
	m.meter.charge(m.l, len(r)/costPiece)
	if !strings.Contains(r, "%") {
		return r
	}
	var b strings.Builder
	for i := 0; i < len(r); i++ {
		if r[i] != '%' || i+1 == len(r) {
			b.WriteByte(r[i])
			continue
		}
		switch i++; {
		case r[i] == '0':
			b.WriteString(m.src[start:end])
		case isDigit(r[i]):
			b.WriteString(m.capture(int(r[i]-'1'), start, end).String())
		default:
			b.WriteByte(r[i])
		}
		if b.Len() > MaxString {
			m.meter.text(m.l, b.Len())
		}
	}
	return b.String()
}

// stringFormat is C's printf as Lua has it; widths and precisions have at most
// two digits, as in Lua.
func stringFormat(l *lua.LState) int {
	f := l.CheckString(1)
	charge(l, len(f)/costPiece)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		if i++; i < len(f) && f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		start := i
		for i < len(f) && (strings.IndexByte("-+ #0.", f[i]) >= 0 || isDigit(f[i])) {
			i++
		}
		spec := f[start:i]
		if i == len(f) || !plainSpec(spec) {
			l.RaiseError("invalid format %q", cut("%"+f[start:], 20))
		}
		arg++
		charge(l, costFormat)
		b.WriteString(formatOne(l, spec, f[i], arg))
		if b.Len() > MaxString {
			break
		}
	}
	return pushText(l, b.String())
}

// plainSpec accepts flags, then up to two digits, then a dot and up to two more.
func plainSpec(s string) bool {
	s = strings.TrimLeft(s, "-+ #0")
	width, prec, _ := strings.Cut(s, ".")
	return len(width) <= 2 && len(prec) <= 2 && !strings.ContainsAny(width+prec, "-+ #.")
}

func formatOne(l *lua.LState, spec string, verb byte, arg int) string {
	switch verb {
	case 'd', 'i':
		v := checkNumber(l, arg)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			l.ArgError(arg, "number has no integer representation")
		}
		return fmt.Sprintf("%"+spec+"d", int64(clampInt(v)))
	case 'u', 'o', 'x', 'X':
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+spec+string(verb), int64(checkInt(l, arg)))
	case 'c':
		return string([]byte{byte(checkInt(l, arg))})
	case 'e', 'E', 'f', 'F', 'g', 'G':
		return fmt.Sprintf("%"+spec+string(verb), checkNumber(l, arg))
	case 'q':
		return strconv.Quote(l.CheckString(arg))
	case 's':
		return fmt.Sprintf("%"+spec+"s", toText(l, l.CheckAny(arg)))
	}
	l.RaiseError("invalid format %q; Lua knows c d e E f g G i o q s u x X", "%"+spec+string(verb))
	return ""
}
