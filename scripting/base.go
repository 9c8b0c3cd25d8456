package scripting

import (
	"errors"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/scripting/near"
)

// init settles two switches of gopher-lua that it keeps in package variables:
// where a table's array part ends, and the old "arg" table of variadic
// functions, which would copy its arguments unseen.
func init() {
	lua.MaxArrayIndex = MaxArray + 1
	lua.CompatVarArg = false
}

// lib names Go functions in a fixed order, so that pairs over a library is the
// same everywhere.
type lib []struct {
	name string
	fn   lua.LGFunction
}

func (b lib) names() []string {
	out := make([]string, len(b))
	for i, f := range b {
		out[i] = f.name
	}
	return out
}

func (b lib) table(l *lua.LState) *lua.LTable {
	t := l.CreateTable(0, len(b))
	for _, f := range b {
		t.RawSetString(f.name, l.NewFunction(f.fn))
	}
	return t
}

// absent explains names that a Lua programmer may miss.
var absent = map[string]string{
	"math.random":     "math.random is absent: its draws could not be repeated; use r.random(k)",
	"math.randomseed": "math.randomseed is absent: r.random(k) is seeded by the session",
	"string.dump":     "string.dump is absent: a router is source text",
	"os":              "os is absent: a router cannot reach the machine",
	"io":              "io is absent: a router cannot reach files; print writes a line to the session's messages",
	"require":         "require is absent: a router is one file",
	"module":          "module is absent: a router is one file",
	"package":         "package is absent: a router is one file",
	"dofile":          "dofile is absent: a router is one file",
	"loadfile":        "loadfile is absent: a router is one file",
	"load":            "load is absent: a router is source text, checked before it runs",
	"loadstring":      "loadstring is absent: a router is source text, checked before it runs",
	"coroutine":       "coroutine is absent: its instructions could not be counted",
	"debug":           "debug is absent",
	"collectgarbage":  "collectgarbage is absent: memory is counted by the runtime",
	"getfenv":         "getfenv is absent",
	"setfenv":         "setfenv is absent",
	"newproxy":        "newproxy is absent",
}

// What exists, for checks and suggestions.
var (
	libNames    map[string][]string
	globalNames []string
)

// openLibs fills the globals of a fresh state.
func openLibs(l *lua.LState) {
	g := l.G.Global
	for _, f := range baseLib {
		g.RawSetString(f.name, l.NewFunction(f.fn))
	}
	g.RawSetString("pairs", l.NewClosure(basePairs, l.NewFunction(baseNext)))
	g.RawSetString("ipairs", l.NewClosure(baseIpairs, l.NewFunction(ipairsStep)))
	g.RawSetString("_G", g)
	g.RawSetString("_VERSION", lua.LString(lua.LuaVersion))

	m := mathLib.table(l)
	m.RawSetString("pi", lua.LNumber(math.Pi))
	m.RawSetString("huge", lua.LNumber(math.Inf(1)))
	s := stringLib.table(l)
	meta := l.NewTable()
	meta.RawSetString("__index", s)
	meta.RawSetString("__metatable", lua.LString("string"))
	l.SetMetatable(lua.LString(""), meta)
	for _, t := range []struct {
		name  string
		funcs *lua.LTable
	}{{"math", m}, {"string", s}, {"table", tableLib.table(l)}} {
		strict(l, t.funcs, func(key string) string { return noFunction(t.name, key) })
		g.RawSetString(t.name, t.funcs)
	}
}

// strict makes reading an absent string key of t an error.
func strict(l *lua.LState, t *lua.LTable, why func(key string) string) {
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		if msg := why(l.Get(2).String()); msg != "" {
			l.RaiseError("%s", msg)
		}
		l.Push(lua.LNil)
		return 1
	}))
	meta.RawSetString("__metatable", lua.LFalse)
	t.Metatable = meta
}

func noFunction(table, key string) string {
	if why, ok := absent[table+"."+key]; ok {
		return why
	}
	return table + " has no function " + strconv.Quote(key) + near.Hint(key, libNames[table])
}

var baseLib lib

func init() {
	baseLib = lib{
		{"assert", baseAssert},
		{"error", baseError},
		{"getmetatable", baseGetMetatable},
		{"next", baseNext},
		{"pcall", basePCall},
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
		{"xpcall", baseXPCall},
	}
	libNames = map[string][]string{
		"math": append(mathLib.names(), "pi", "huge"), "string": stringLib.names(), "table": tableLib.names(),
	}
	globalNames = append(baseLib.names(), "ipairs", "pairs", "math", "string", "table", "_G", "_VERSION")
	globalNames = append(globalNames, apiNames...)
}

func charge(l *lua.LState, n int) { l.Context().(*meter).charge(l, n) }
func alloc(l *lua.LState, n int)  { l.Context().(*meter).alloc(l, n) }

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
	l.Error(l.CheckAny(1), l.OptInt(2, 1))
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
	if key == lua.LNil {
		l.Push(lua.LNil)
		return 1
	}
	if i, ok := key.(lua.LNumber); ok { // holes were skipped
		j, _ := from.(lua.LNumber)
		charge(l, clampInt(float64(i-j))/costPiece)
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
	i := l.CheckInt(2) + 1
	v := l.CheckTable(1).RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	l.Push(lua.LNumber(i))
	l.Push(v)
	return 2
}

func basePCall(l *lua.LState) int {
	l.CheckAny(1)
	n := l.GetTop() - 1
	if err := l.PCall(n, lua.MultRet, nil); err != nil {
		return failed(l, err)
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

func baseXPCall(l *lua.LState) int {
	fn, handler := l.CheckFunction(1), l.CheckFunction(2)
	l.SetTop(0)
	l.Push(fn)
	if err := l.PCall(0, lua.MultRet, handler); err != nil {
		return failed(l, err)
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

func failed(l *lua.LState, err error) int {
	charge(l, costFailure)
	l.SetTop(0)
	l.Push(lua.LFalse)
	var e *lua.ApiError
	if errors.As(err, &e) && e.Object.Type() != lua.LTString {
		l.Push(e.Object)
		return 2
	}
	msg := err.Error()
	if e != nil {
		msg = e.Object.String() // without the traceback
	}
	l.Push(lua.LString(withoutAddresses(cut(msg, MaxString))))
	return 2
}

func basePrint(l *lua.LState) int {
	parts := make([]string, l.GetTop())
	for i := range parts {
		parts[i] = toText(l, l.Get(i+1))
	}
	if m := l.Context().(*meter); m.print != nil {
		charge(l, costFailure)
		m.print(oneLine(strings.Join(parts, " ")))
	}
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
	i, n := l.CheckInt(1), l.GetTop()
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
	base := l.OptInt(2, 10)
	if n, ok := v.(lua.LNumber); ok && base == 10 {
		l.Push(n)
		return 1
	}
	if n, ok := toNumber(v.String(), base); ok && v.Type() == lua.LTString {
		l.Push(n)
	} else {
		l.Push(lua.LNil)
	}
	return 1
}

func toNumber(s string, base int) (lua.LNumber, bool) {
	s = strings.TrimSpace(s)
	if base != 10 {
		if base < 2 || base > 36 {
			return 0, false
		}
		n, err := strconv.ParseInt(s, base, 64)
		return lua.LNumber(n), err == nil
	}
	if h, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		n, err := strconv.ParseUint(h, 16, 64)
		return lua.LNumber(n), err == nil
	}
	if strings.ContainsAny(s, "_xXiIpP") || strings.EqualFold(s, "nan") {
		return 0, false // ParseFloat knows more than Lua
	}
	n, err := strconv.ParseFloat(s, 64)
	return lua.LNumber(n), err == nil
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
	i, j := clampInt(float64(l.OptNumber(2, 1))), 0
	if l.Get(3) == lua.LNil {
		j = t.Len()
	} else {
		j = clampInt(float64(l.CheckNumber(3)))
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
