package scripting

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"
)

// stock runs a chunk in a plain gopher-lua with all libraries and returns what
// it returns, as text.
func stock(t interface{ Fatalf(string, ...any) }, code string) string {
	l := lua.NewState()
	defer l.Close()
	if err := l.DoString(code); err != nil {
		return "error"
	}
	return texts(l)
}

// sandboxed runs the same chunk rewritten, in a router's VM.
func sandboxed(t interface{ Fatalf(string, ...any) }, code string) string {
	vm := mustVMFor(t)
	chunk, err := parseText("r.lua", code, 1)
	if err != nil {
		t.Fatalf("%v\n%s", err, code)
	}
	w := newWalker("r.lua")
	w.push(1)
	chunk = bindGuards(w.stmts(chunk))
	vm.p = &Program{File: "r.lua", assigned: w.assigned}
	proto, err := compileChunk("r.lua", chunk)
	if err != nil {
		t.Fatalf("%v\n%s", err, code)
	}
	vm.meter.begin(MaxInstructions)
	if err := vm.chunk(proto, lua.MultRet); err != nil {
		return "error"
	}
	return texts(vm.l)
}

func mustVMFor(t interface{ Fatalf(string, ...any) }) *VM {
	p, err := Compile("r.lua", routeOf("return STAY"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	vm, err := NewVM(Env{Peers: 2}, p)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return vm
}

func texts(l *lua.LState) string {
	var out []string
	for i := 1; i <= l.GetTop(); i++ {
		out = append(out, l.Get(i).String())
	}
	return strings.Join(out, "|")
}

// The guards do not change what a program means.
func TestRewritingKeepsMeaning(t *testing.T) {
	for _, code := range []string{
		"return 1 .. 2 .. 'x' .. 3.5",
		"local a, b = 'x', 'y'\nreturn (a .. b) .. (b .. a) .. 1",
		"local function f() return 'p', 'q' end\nreturn 'a' .. f(), (f()), f()",
		"local t = setmetatable({}, { __concat = function(a, b) return (type(a) == 'table' and 'T' or a) .. '+' .. (type(b) == 'table' and 'T' or b) end })\nreturn 'a' .. t, t .. 'b', 'x' .. 'y' .. t, 1 .. t .. 2",
		"return nil .. 'x'",
		"local t = {}\nt[1], t[2] = 10, 20\nt[1], t[2] = t[2], t[1]\nreturn t[1], t[2]",
		"local t, i = {}, 1\ni, t[i] = i + 1, 'v'\nreturn i, t[1], t[2]",
		"local t, s = {}, ''\nlocal function k(x) s = s .. x\nreturn x end\nt[k('a')], t[k('b')] = k('c'), k('d')\nreturn s, t.a, t.b",
		"local function f() return 1, 2, 3 end\nlocal t = {}\nt[1], t[2], t[3], t[4] = f()\nreturn t[1], t[2], t[3], t[4]",
		"local function f() return 1, 2, 3 end\nlocal t = {}\nt[f()] = f()\nreturn t[1]",
		"local function f(...) return ... end\nlocal t = { f(1, 2, 3) }\nreturn #t, t[3]",
		"local function f(...) local t = { ... }\nreturn #t, ... end\nreturn f('a', 'b')",
		"local function f(...) return select('#', ...), { n = 1, ... } end\nlocal n, t = f(5, 6)\nreturn n, t[1], t[2], t.n",
		"local t = { [1] = 'a', [2] = 'b', x = 'c', [70] = 'd', ['y z'] = 'e', [true] = 'f' }\nreturn t[1], t[2], t.x, t[70], t['y z'], t[true]",
		"local t = setmetatable({}, { __newindex = function(t, k, v) rawset(t, k, v * 2) end })\nlocal k = 'n'\nt[k] = 4\nt[2] = 5\nreturn t.n, t[2]",
		"local t = setmetatable({}, { __newindex = string })\nreturn (pcall(function() local k = {}\nt[k][k] = 1 end))",
		"local t = {}\nlocal k = 0/0\nreturn (pcall(function() t[k] = 1 end))",
		"local t = {}\nlocal k\nreturn (pcall(function() t[k] = 1 end))",
		"local n, k = nil, 1\nreturn (pcall(function() n[k] = 1 end))",
		"local s = 0\nfor i = 10, 1, -3 do s = s * 10 + i % 10 end\nreturn s",
		"local s = ''\nfor i, v in ipairs({ 'a', 'b', nil, 'c' }) do s = s .. i .. v end\nreturn s",
		"local s = 0\nlocal i = 0\nrepeat local j = i\ni = i + 1\ns = s + j until j >= 3\nreturn s",
		"local s = 0\nfor i = 1, 5 do if i % 2 == 0 then goto continue end\ns = s + i\n::continue:: end\nreturn s",
		"local o = { n = 1 }\nfunction o:inc(d) self.n = self.n + (d or 1)\nreturn self end\nreturn o:inc():inc(5).n",
		"local t = {}\nfunction t.f(x) return x and t.f(not x) or 'end' end\nreturn t.f(true)",
		"return (pcall(error, 'msg'))",
		"return pcall(function() error('m', 0) end)",
		"return xpcall(function() error('m', 0) end, function(e) return e .. '!' end)",
		"return select(2, 'a', 'b', 'c'), select(-1, 'a', 'b')",
		"return tonumber('0x1F'), tonumber(' 12 '), tonumber('1.5'), tonumber('z'), tonumber('ff', 16), tonumber({})",
		"return type(nil), type(1), type('x'), type({}), type(print), type(type)",
		"return rawequal('a', 'a'), rawget({ 5 }, 1)",
		"return unpack({ 1, 2, 3 }), unpack({ 1, 2, 3 }, 2), (unpack({ 1, 2 }))",
		"return math.floor(-1.5), math.ceil(1.2), math.max(1, 3, 2), math.min(4, 2), math.fmod(7, 3), math.abs(-2), math.sqrt(16)",
		"return ('abc'):upper(), ('ABC'):lower(), ('abc'):reverse(), ('abc'):len(), #'abc', ('ab'):rep(3), ('x'):rep(0)",
		"return ('hello'):sub(2, 3), ('hello'):sub(-3), ('hello'):sub(2), ('hello'):sub(0), ('hello'):sub(4, 2), ('hello'):sub(-100, 100)",
		"return ('abc'):byte(), ('abc'):byte(-1), string.char(72, 105)",
		"return string.format('%d %5.2f %s %x %%', 3, 1.234, 'q', 255)",
		"return string.format('%-5s|%5s|%05d|%+d', 'ab', 'cd', 42, 7)",
		"local t = { 3, 1, 2 }\ntable.sort(t)\nreturn table.concat(t, ',')",
		"local t = { 3, 1, 2 }\ntable.sort(t, function(a, b) return a > b end)\nreturn table.concat(t, ',')",
		"local t = { 'b', 'c' }\ntable.insert(t, 'd')\ntable.insert(t, 1, 'a')\nreturn table.concat(t), table.remove(t), table.remove(t, 1), table.concat(t)",
		"return table.concat({ 1, 2, 3 }, '-', 2, 3), table.maxn({ 1, 2 }), table.getn({ 1, 2, 3 })",
		"return next({}), next({ 5 }), (next({ a = 1 }))",
		"local t = {}\nfor w in ('one two  three'):gmatch('%a+') do t[#t + 1] = w end\nreturn table.concat(t, '|')",
		"return ('hello world'):gsub('o', '0'), ('hello'):gsub('l', { l = 'L' }), ('abc'):gsub('%w', function(c) return c .. c end)",
		"return ('key = value'):match('(%w+)%s*=%s*(%w+)'), ('x'):match('y'), ('2026-11'):match('^(%d+)-(%d+)$')",
		"return ('a.b'):find('.', 1, true), ('a.b'):find('%.'), ('abc'):find('b', 3), ('abc'):find('(b)(c)')",
	} {
		want, got := stock(t, code), sandboxed(t, code)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", code, got, want)
		}
	}
}

// What Lua 5.1 says and gopher-lua 1.1.2 does not; the answers are those of the
// reference implementation.
func TestLibraries(t *testing.T) {
	for code, want := range map[string]string{
		"local b, t = 'B', {}\ng, t[1] = 1 + 1, b\nreturn g, t[1]":                                                                                           "2|B",
		"local b, t, a = 'B', {}, 1\ng, t[a] = 1 .. 1, b\nreturn g, t[1]":                                                                                    "11|B",
		"local t, a = {}, 1\na, t[a] = 2, a\nreturn a, t[1]":                                                                                                 "2|1",
		"local a, b, c = 1, 2, 3\na, b, c = c, a, b\nreturn a, b, c":                                                                                         "3|1|2",
		"local a, b = 1\na, b = 5, 6, 7\nreturn a, b":                                                                                                        "5|6",
		"local t = {}\nt.x, t.x = 1, 2\nreturn t.x":                                                                                                          "1",
		"local function f(...) local b, c, d = 0, 5, 6\nb = ...\nreturn b, c, d end\nreturn f(1, 2)":                                                         "1|5|6",
		"local function f(...) local b, c, d = 0, 5, 6\nb = (...)\nreturn b, c, d end\nreturn f(1, 2)":                                                       "1|5|6",
		"local function f(...) local b, c = 0, 5\nb = c and ...\nreturn b, c end\nreturn f(1, 2)":                                                            "1|5",
		"local function f(...) local s = 0\nfor i = 1, 3 do s = ... end\nreturn s end\nreturn f(4, 5)":                                                       "4",
		"local function f(...) local s = 0\nfor k, v in ipairs({ 1, 2 }) do s = ... end\nreturn s end\nreturn f(4)":                                          "4",
		"local function f(...) return #{ ..., 9 }, #{ 9, ... }, (...), ... end\nreturn f(7, 8)":                                                              "2|3|7|7|8",
		"local function f(...) local t = { n = ..., ... }\nreturn t.n, #t end\nreturn f(7, 8)":                                                               "7|2",
		"local function f(...) return ... + 1, - ..., ... .. 'x', not ... end\nreturn f(7, 8)":                                                               "8|-7|7x|false",
		"return '10' + 1, '0x10' * 2, 10 - '3', '7' / '2', '7' % 4, '2' ^ '3', -'4'":                                                                         "11|32|7|3.5|3|8|-4",
		"return pcall(function() return 'x' + 1 end)":                                                                                                        "false|r.lua:1: attempt to perform arithmetic on a string and a number",
		"return math.floor('3.7'), ('x'):rep('3'), tonumber('10', 2), tonumber('zz', 36), tonumber('8', 8)":                                                  "3|xxx|2|1295|nil",
		"return tonumber('1e400'), tonumber(('1'):rep(65)), tonumber('0x'), tonumber('1 2'), tonumber('-0x10')":                                              "+Inf|nil|nil|nil|nil",
		"return xpcall(function() error('m', 0) end, function(e) error(e .. '!', 0) end)":                                                                    "false|m!",
		"local n = 0\nlocal function add() n = n + 1 end\nadd()\npcall(error)\nadd()\nn = n + 10\nadd()\nreturn n":                                           "13",
		"local b\nlocal function q(a)\npcall(function() return b .. 's' end)\nb = 7 return a end\nlocal r = q(1)\nreturn r, b":                               "1|7",
		"local f\npcall(function() local x = 1\nf = function() x = x + 1 return x end\nerror('e') end)\nlocal y, z = 5, 6\nreturn f(), f(), y, z":            "2|3|5|6",
		"return pcall(pcall, pcall, pcall, error, 'x', 0)":                                                                                                   "true|true|true|false|x",
		"local function deep(n) if n == 0 then return 'end' end return select(2, pcall(deep, n - 1)) end\nreturn deep(15), (deep(20):find('nested deeper'))": "end|19",
		"return xpcall(function() return 1, 2 end, print)":                                                                                                   "true|1|2",
		"return pcall(error, { 1 }) == false, select(2, pcall(error, { 7 }))[1], pcall(error)":                                                               "true|7|false|nil",
		"local t = { 3, 1, 2 }\ntable.sort(t, function(a, b) t[1] = nil\nreturn a < b end)\nreturn t[1], t[2], t[3]":                                         "1|2|3",
		"local t = { 1, 2, 3, 4 }\nt[4] = nil\nt[3] = nil\nreturn #t, table.remove(t), #t":                                                                   "2|2|1",
		"local s = ''\nlocal t = { a = 1, b = 2, c = 3 }\nfor k in pairs(t) do t[k] = nil\ns = s .. k end\nreturn s, next(t)":                                "abc|nil",
		"return #'abc', #{ 1, 2 }, #''": "3|2|0",
		"local m = { __lt = function(a, b) return a.n < b.n end }\nlocal a, b = setmetatable({ n = 1 }, m), setmetatable({ n = 2 }, m)\nreturn a < b, a > b": "true|false",
		"local out = {}\nlocal it = ('a1b22'):gmatch('%d+')\nout[1], out[2], out[3] = it(), it(), it()\nreturn out[1], out[2], out[3]":                       "1|22|nil",
		"return math.huge": "+Inf",
		"return tonumber('1e3'), tonumber('inf'), tonumber('')":              "1000|nil|nil",
		"return tostring({}), tostring(print), tostring(nil)":                "table|function|nil",
		"return ('THE (quick) fox'):find('%((%a+)%)')":                       "5|11|quick",
		"return ('THE (quick) fox'):gsub('%f[%a]%a+', 'w')":                  "w (w) w|3",
		"return ('abc'):gsub('', '-')":                                       "-a-b-c-|4",
		"return ('abc'):find('')":                                            "1|0",
		"return ('abc'):gsub('%w', '%0%0', 2)":                               "aabbc|2",
		"return ('hello'):match('()ll()')":                                   "3|5",
		"return ('[[x]]'):match('%b[]')":                                     "[[x]]",
		"return ('abcabc'):match('(abc)%1')":                                 "abc",
		"return string.format('%q', 'a\"b'), string.format('%c%c', 72, 105)": "\"a\\\"b\"|Hi",
		"return string.format('%s %s', true, nil)":                           "true nil",
		"return ('x'):upper(), ('ÄB'):lower()":                               "X|Äb",
	} {
		if got := sandboxed(t, code); got != want {
			t.Errorf("%s\n got %s\nwant %s", code, got, want)
		}
	}
	if got := sandboxed(t, "local k = {}\nreturn pcall(function() local n\nn[k] = 1 end)"); strings.Contains(got, "0x") {
		t.Errorf("a message holds an address: %s", got)
	}
	for _, code := range []string{
		"return ('x'):find('[a')", "return ('x'):find('%')", "return ('x'):find('(x')", "return ('x'):find('.)')",
		"return ('x'):find('%1')", "return ('x'):find('%f')", "return ('x'):find('%b')", "return ('x'):gsub('x', '%2')",
		"return string.format('%d', 'z')", "return string.format('%y', 1)", "return string.format('%', 1)", "return string.char(256)",
		"return ('x'):rep()", "return setmetatable(1, {})", "return table.concat({ {} })", "return table.insert({}, 5, 1)",
		"return ('x'):find(('('):rep(40))", "return string.format('%d', 0/0)", "return select(0)", "return unpack({}, 1, 5000)",
	} {
		if got := sandboxed(t, code); got != "error" {
			t.Errorf("%s gave %s, want an error", code, got)
		}
	}
}

// Patterns agree with gopher-lua's matcher where both are defined.
func TestPatternsAgainstStock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := rapid.SampledFrom([]string{"a", "b", ".", "%a", "%d", "%s", "[ab]", "[^a]", "[a-c1]", "%w"})
		suffix := rapid.SampledFrom([]string{"", "", "*", "+", "-", "?"})
		var pat strings.Builder
		if rapid.Bool().Draw(t, "anchored") {
			pat.WriteString("^")
		}
		open := false
		for i := range rapid.IntRange(1, 5).Draw(t, "items") {
			if !open && rapid.IntRange(0, 3).Draw(t, "open") == 0 {
				pat.WriteString("(")
				open = true
			}
			pat.WriteString(item.Draw(t, fmt.Sprint("item", i)) + suffix.Draw(t, fmt.Sprint("suffix", i)))
			if open && rapid.Bool().Draw(t, "close") {
				pat.WriteString(")")
				open = false
			}
		}
		if open {
			pat.WriteString(")")
		}
		if rapid.Bool().Draw(t, "tail") {
			pat.WriteString("$")
		}
		src := rapid.StringMatching(`[abc12 ]{0,10}`).Draw(t, "src")
		code := fmt.Sprintf("return string.find(%q, %q)", src, pat.String())
		if got, want := sandboxed(t, code), stock(t, code); got != want {
			t.Fatalf("%s\n got %s\nwant %s", code, got, want)
		}
	})
}

// The order of pairs is that of insertion, in every run: a router's decisions
// cannot depend on a hash.
func TestPairsOrder(t *testing.T) {
	code := `
local t = {}
for i = 1, 200 do t["k" .. (i * 7919) % 1009] = i end
for i = 1, 200, 3 do t["k" .. (i * 7919) % 1009] = nil end
t.again = 1
local out = {}
for k, v in pairs(t) do out[#out + 1] = k .. "=" .. v end
for k in pairs(string) do out[#out + 1] = k end
for k in pairs(math) do out[#out + 1] = k end
for k in pairs(_G) do out[#out + 1] = k end
return table.concat(out, " ")`
	first := sandboxed(t, code)
	if !strings.HasPrefix(first, "k703=2 k550=3 k244=5") {
		t.Errorf("not in insertion order: %.60s", first)
	}
	for range 20 {
		if again := sandboxed(t, code); again != first {
			t.Fatalf("the order changed:\n%s\n%s", first, again)
		}
	}
}
