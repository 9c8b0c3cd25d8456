package scripting

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/scripting/near"
)

// init settles switches of gopher-lua that it keeps in package variables: where
// a table's array part ends, how many __index tables one access walks through,
// and the old "arg" table of variadic functions, which would copy its arguments
// unseen.
func init() {
	lua.MaxArrayIndex = MaxArray + 1
	lua.MaxTableGetLoop = 16
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
	"io":              "io is absent: a router cannot reach files",
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
	libNames = map[string][]string{
		"math": append(mathLib.names(), "pi", "huge"), "string": stringLib.names(), "table": tableLib.names(),
	}
	globalNames = append(append(baseLib.names(), "ipairs", "pairs", "pcall", "xpcall", "math", "string", "table", "_G", "_VERSION"), apiNames...)
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
	for _, op := range textArith {
		meta.RawSetString(op.name, l.NewFunction(op.fn))
	}
	l.SetMetatable(lua.LString(""), meta)
	for _, t := range []struct {
		name  string
		funcs *lua.LTable
	}{{"math", m}, {"string", s}, {"table", tableLib.table(l)}} {
		strict(l, t.funcs, func(key string) string { return noFunction(t.name, key) })
		g.RawSetString(t.name, t.funcs)
	}
}

// textArith is arithmetic on texts that are numerals. gopher-lua would read them
// itself, of any length.
var textArith = lib{
	{"__add", ofTexts(func(x, y float64) float64 { return x + y })},
	{"__sub", ofTexts(func(x, y float64) float64 { return x - y })},
	{"__mul", ofTexts(func(x, y float64) float64 { return x * y })},
	{"__div", ofTexts(func(x, y float64) float64 { return x / y })},
	{"__mod", ofTexts(func(x, y float64) float64 { return x - math.Floor(x/y)*y })},
	{"__pow", ofTexts(math.Pow)},
	{"__unm", ofTexts(func(x, _ float64) float64 { return -x })},
}

func ofTexts(f func(x, y float64) float64) lua.LGFunction {
	return func(l *lua.LState) int {
		x, xok := numeral(l.Get(1))
		y, yok := numeral(l.Get(l.GetTop()))
		if !xok || !yok {
			l.RaiseError("attempt to perform arithmetic on a %s and a %s", l.Get(1).Type(), l.Get(l.GetTop()).Type())
		}
		l.Push(lua.LNumber(f(x, y)))
		return 1
	}
}

// strict makes reading an absent string key of t an error.
func strict(l *lua.LState, t *lua.LTable, why func(key string) string) {
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		if key, ok := l.Get(2).(lua.LString); ok {
			if msg := why(string(key)); msg != "" {
				l.RaiseError("%s", msg)
			}
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
