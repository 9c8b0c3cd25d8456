package scripting

import (
	"errors"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// baseLib is Lua's base library as far as a router needs it; pairs and ipairs
// are closures, made by openLibs, and pcall and xpcall belong to a VM.
var baseLib = lib{
	{"assert", baseAssert},
	{"error", baseError},
	{"getmetatable", baseGetMetatable},
	{"next", baseNext},
	{"print", basePrint},
	{"rawequal", baseRawEqual},
	{"rawget", baseRawGet},
	{"rawset", baseRawSet},
	{"select", baseSelect},
	{"setmetatable", baseSetMetatable},
	{"tonumber", baseToNumber},
	{"tostring", baseToString},
	{"type", baseType},
	{"unpack", baseUnpack},
}

func charge(l *lua.LState, n int) { l.Context().(*meter).charge(l, n) }
func alloc(l *lua.LState, n int)  { l.Context().(*meter).alloc(l, n) }

// checkNumber is argument n as a number; a numeral counts as one.
func checkNumber(l *lua.LState, n int) float64 {
	x, ok := numeral(l.Get(n))
	if !ok {
		l.TypeError(n, lua.LTNumber)
	}
	return x
}

// checkInt is argument n as a whole number, def when it is absent.
func checkInt(l *lua.LState, n int) int { return clampInt(checkNumber(l, n)) }

func optInt(l *lua.LState, n, def int) int {
	if l.Get(n) == lua.LNil {
		return def
	}
	return checkInt(l, n)
}

// pushText pushes a string that was made, and pays for it.
func pushText(l *lua.LState, s string) int {
	l.Context().(*meter).text(l, len(s))
	l.Push(lua.LString(s))
	return 1
}

func baseAssert(l *lua.LState) int {
	if !l.ToBool(1) {
		l.RaiseError("%s", l.OptString(2, "assertion failed!"))
	}
	return l.GetTop()
}

func baseError(l *lua.LState) int {
	l.Error(l.Get(1), optInt(l, 2, 1))
	return 0
}

func baseGetMetatable(l *lua.LState) int {
	l.Push(l.GetMetatable(l.CheckAny(1)))
	return 1
}

func baseSetMetatable(l *lua.LState) int {
	t := l.CheckTable(1)
	l.CheckTypes(2, lua.LTNil, lua.LTTable)
	if m, ok := t.Metatable.(*lua.LTable); ok && m.RawGetString("__metatable") != lua.LNil {
		l.RaiseError("this table's metatable is protected")
	}
	t.Metatable = l.Get(2)
	l.SetTop(1)
	return 1
}

func baseNext(l *lua.LState) int {
	t := l.CheckTable(1)
	from := l.Get(2)
	key, value := t.Next(from)
	charge(l, skipped(t, from, key)/costLook)
	if key == lua.LNil {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(key)
	l.Push(value)
	return 2
}

func basePairs(l *lua.LState) int {
	t := l.CheckTable(1)
	l.Push(l.Get(lua.UpvalueIndex(1)))
	l.Push(t)
	l.Push(lua.LNil)
	return 3
}

func baseIpairs(l *lua.LState) int {
	t := l.CheckTable(1)
	l.Push(l.Get(lua.UpvalueIndex(1)))
	l.Push(t)
	l.Push(lua.LNumber(0))
	return 3
}

func ipairsStep(l *lua.LState) int {
	i := checkInt(l, 2) + 1
	v := l.CheckTable(1).RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	l.Push(lua.LNumber(i))
	l.Push(v)
	return 2
}

func basePrint(l *lua.LState) int {
	m := l.Context().(*meter)
	if m.print == nil {
		return 0
	}
	charge(l, costFailure)
	parts := make([]string, l.GetTop())
	for i := range parts {
		parts[i] = toText(l, l.Get(i+1))
		charge(l, len(parts[i])/costLook)
	}
	m.print(oneLine(strings.Join(parts, " ")))
	return 0
}

func baseRawEqual(l *lua.LState) int {
	l.Push(lua.LBool(l.RawEqual(l.CheckAny(1), l.CheckAny(2))))
	return 1
}

func baseRawGet(l *lua.LState) int {
	l.Push(l.CheckTable(1).RawGet(l.CheckAny(2)))
	return 1
}

func baseRawSet(l *lua.LState) int {
	t, k, v := l.CheckTable(1), l.CheckAny(2), l.CheckAny(3)
	payStore(l, t, k)
	l.RawSet(t, k, v)
	l.SetTop(1)
	return 1
}

func baseSelect(l *lua.LState) int {
	if s, ok := l.Get(1).(lua.LString); ok && s == "#" {
		l.Push(lua.LNumber(l.GetTop() - 1))
		return 1
	}
	i, n := checkInt(l, 1), l.GetTop()
	if i < 0 {
		i += n
	}
	if i < 1 {
		l.ArgError(1, "index out of range")
	}
	return max(n-i, 0)
}

func baseToNumber(l *lua.LState) int {
	v := l.CheckAny(1)
	n, ok := numeral(v)
	if base := optInt(l, 2, 10); base != 10 {
		n, ok = digits(lua.LVAsString(v), base)
	}
	if ok {
		l.Push(lua.LNumber(n))
	} else {
		l.Push(lua.LNil)
	}
	return 1
}

// maxNumeral is the length of the longest text that is read as a number.
const maxNumeral = 64

// numeral reads a number, or a text that is one.
func numeral(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		if len(v) > maxNumeral {
			return 0, false
		}
		s := strings.ToLower(strings.TrimSpace(string(v)))
		if h, ok := strings.CutPrefix(s, "0x"); ok {
			return digits(h, 16)
		}
		if strings.Trim(s, "+-.e0123456789") != "" {
			return 0, false // ParseFloat knows more than Lua
		}
		n, err := strconv.ParseFloat(s, 64)
		return n, err == nil || errors.Is(err, strconv.ErrRange)
	}
	return 0, false
}

// digits reads a whole number in another base than ten.
func digits(s string, base int) (float64, bool) {
	if len(s) > maxNumeral || base < 2 || base > 36 {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), base, 64)
	return float64(n), err == nil
}

func baseToString(l *lua.LState) int { return pushText(l, toText(l, l.CheckAny(1))) }

// toText is tostring. Tables and functions have no address in it: a router
// must not depend on where memory lies.
func toText(l *lua.LState, v lua.LValue) string {
	if f, ok := l.GetMetaField(v, "__tostring").(*lua.LFunction); ok {
		l.Push(f)
		l.Push(v)
		l.Call(1, 1)
		s := l.Get(-1)
		l.Pop(1)
		return plainText(s)
	}
	return plainText(v)
}

func plainText(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString, lua.LNumber, lua.LBool, *lua.LNilType:
		return v.String()
	case *lua.LUserData:
		if d, ok := v.Value.(interface{ Lua() string }); ok {
			return d.Lua()
		}
	}
	return v.Type().String()
}

func baseType(l *lua.LState) int {
	l.Push(lua.LString(l.CheckAny(1).Type().String()))
	return 1
}

func baseUnpack(l *lua.LState) int {
	t := l.CheckTable(1)
	i, j := optInt(l, 2, 1), 0
	if l.Get(3) == lua.LNil {
		j = length(l, t)
	} else {
		j = checkInt(l, 3)
	}
	n := j - i + 1
	if n <= 0 {
		return 0
	}
	if n > maxValues {
		l.RaiseError("unpack of %d values; a call takes at most %d", n, maxValues)
	}
	charge(l, n)
	for ; i <= j; i++ {
		l.Push(t.RawGetInt(i))
	}
	return n
}

// clampInt converts as a platform-independent int: NaN is 0, and what does not
// fit saturates.
func clampInt(f float64) int {
	const limit = 1 << 53
	switch {
	case math.IsNaN(f):
		return 0
	case f > limit:
		return limit
	case f < -limit:
		return -limit
	}
	return int(f)
}
