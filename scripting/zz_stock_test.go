package scripting

import (
	lua "github.com/yuin/gopher-lua"
	"testing"
)

func TestZZStock(t *testing.T) {
	for _, c := range []string{
		"local function run(...) local b = 0 for i=1,2 do b = (...) end return b end return run('v', 4)",
		"local function run(...) local b = 0 for i,v in ipairs({1,2}) do b = (...) end return b end return run('v', 4)",
		"local function run(...) local b = 0 b = (...) return b end return run('v', 4)",
		"local function run(...) local b = 0 do local x = 1 b = (...) end return b end return run('v', 4)",
		"local function f() return 7, 8 end local b, c = 0, 5 b = (f()) return b, c",
		"local function f(...) local b, c, d = 0, 5, 6 b = (...) return b, c, d end return f(1,2,3)",
		"local function f(...) local b, c, d = 0, 5, 6 b = ... return b, c, d end return f(1,2,3)",
		"local function f(...) local b, c, d = 0, 5, 6 c = 1 + (...) return b, c, d end return f(1,2,3)",
		"local function f(...) local b, c, d = 0, 5, 6 local e = (...) return b, c, d, e end return f(1,2,3)",
		"local function f(...) local b, c, d = 0, 5, 6 print((...)) return (...), c, d, e end return f(1,2,3)",
	} {
		l := lua.NewState()
		err := l.DoString(c)
		t.Logf("%q stock %s (%v) ours %s real %s", c, stock(t, c), err, sandboxed(t, c), real51(c))
	}
}
