package scripting

import (
	"runtime"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
)

// What a router can do wrong or on purpose, and the end of it (cases I1, I3).
var bombs = map[string]struct{ body, want string }{
	"loop":           {"while true do end", "VM instructions"},
	"repeat":         {"repeat until false", "VM instructions"},
	"goto":           {"::a:: goto a", "VM instructions"},
	"for":            {"for i = 1, math.huge do end", "VM instructions"},
	"pcall loop":     {"while true do pcall(function() while true do end end) end", "VM instructions"},
	"pcall errors":   {"while true do pcall(error, 'x') end", "VM instructions"},
	"xpcall":         {"while true do xpcall(function() error('x') end, function(e) while true do end end) end", "VM instructions"},
	"deep errors":    {"local function f(n) if n > 0 then return 1 + f(n - 1) end error('x') end\nwhile true do pcall(f, 90) end", "VM instructions"},
	"recursion":      {"local function f() return 1 + f() end\nf()", "stack overflow"},
	"tail calls":     {"local function f() return f() end\nf()", "VM instructions"},
	"index loop":     {"local t = setmetatable({}, {})\ngetmetatable(t).__index = t\nreturn t.x", "too many recursions"},
	"meta recursion": {"local t = setmetatable({}, { __index = function(t, k) return t[k .. 'x'] end })\nreturn t.x", "stack overflow"},
	"rep":            {"return string.rep('x', 1e9)", "a string of"},
	"rep overflow":   {"return string.rep(string.rep('x', 16000), 1e18)", "a string of"},
	"concat":         {"local s = 'x'\nwhile true do s = s .. s end", "a string of"},
	"concat kept":    {"local s, t = string.rep('x', 8000), {}\nwhile true do t[#t + 1] = s .. #t end", "memory"},
	"concat caught":  {"local s, t = string.rep('x', 8000), {}\nwhile true do pcall(function() t[#t + 1] = s .. #t end) end", "memory"},
	"table.concat":   {"local t = {}\nfor i = 1, 1000 do t[i] = 'xxxxxxxxxxxxxxxx' end\nreturn table.concat(t, 'y')", "a string of"},
	"format":         {"return string.format('%99999d', 1)", "invalid format"},
	"format many":    {"local s = string.rep('%99d', 4000)\nreturn string.format(s, unpack({}, 1, 200))", "number expected"},
	"gsub":           {"local s = string.rep('x', 4000)\nreturn s:gsub('x', s)", "a string of"},
	"gsub self":      {"local s = string.rep('x', 4000)\nreturn s:gsub('.', '%0%0%0%0%0')", "a string of"},
	"pattern":        {"local s = string.rep('a', 10000)\nreturn s:find('.-.-.-.-.-b')", "VM instructions"},
	"pattern set":    {"local s = string.rep('a', 10000)\nreturn s:match('[^b]*[^b]*[^b]*c')", "VM instructions"},
	"pattern balance": {
		"local s = string.rep('(', 10000)\nwhile true do s:find('%b()') end", "VM instructions",
	},
	"grow":          {"local t = {}\nwhile true do t[#t + 1] = 1 end", "VM instructions"},
	"grow over":     {"local t = {}\nfor i = 16380, 16390 do t[i] = i end", "an array of more than 16384 values"},
	"grow many":     {"local all = {}\nwhile true do local t = {}\nall[#all + 1] = t\nfor i = 1, 1000 do t[i] = i end end", "VM instructions"},
	"far index":     {"local all = {}\nwhile true do local t = {}\nt[16000] = 1\nall[#all + 1] = t end", "memory"},
	"far rawset":    {"local all = {}\nwhile true do local t = {}\nrawset(t, 16000, 1)\nall[#all + 1] = t end", "memory"},
	"far key":       {"local all = {}\nwhile true do all[#all + 1] = { [16000] = 1 } end", "memory"},
	"far parallel":  {"local all, i = {}, 16000\nwhile true do local t = {}\nt[i], all[#all + 1] = 1, t end", "memory"},
	"insert":        {"local t = {}\nwhile true do table.insert(t, 1, 1) end", "VM instructions"},
	"unpack":        {"return select('#', unpack({}, 1, 1e9))", "unpack of"},
	"unpack grows":  {"local function f(x, ...) return f(x, x, ...) end\nf(unpack({}, 1, 200))", "endless recursion with many arguments"},
	"pack":          {"local all = {}\nlocal function f(...) while true do all[#all + 1] = { ..., ... } end end\nf(unpack({}, 1, 250))", "memory"},
	"nested tables": {"local t = {}\nwhile true do t = { t } end", "VM instructions"},
	"closures":      {"local t = {}\nwhile true do t = (function() local u = t\nreturn function() return u end end)() end", "VM instructions"},
	"sort":          {"local t = {}\nfor i = 1, 5000 do t[i] = 5000 - i end\nwhile true do table.sort(t, function() return true end) end", "VM instructions"},
	"sort plain":    {"local t = {}\nfor i = 1, 2000 do t[i] = (i * 7919) % 2003 end\nwhile true do table.sort(t) end", "VM instructions"},
	"topk":          {"local t = {}\nwhile true do t[#t + 1] = r.topk(3) end", "memory"},
	"load":          {"local t = {}\nwhile true do t[#t + 1] = r.load('large') end", "VM instructions"},
	"state":         {"local s = {}\nr.state = s\nwhile true do s[#s + 1] = {} end", "VM instructions"},
	"tostring":      {"local t = setmetatable({}, { __tostring = function() while true do end end })\nreturn tostring(t)", "VM instructions"},
	"error object":  {"error({})", "error() was called with a table"},
	"error level 0": {"error('plain', 0)", "r.lua: plain"},
	"lower":         {"local s = string.rep('X', 16000)\nwhile true do s:lower() end", "memory"},
	"ghost keys":    {"local t = {}\nfor i = 1, 4000 do t['k' .. i] = i\nt['k' .. i] = nil end\nt.x = 1\nwhile true do next(t) end", "VM instructions"},
	"arithmetic":    {"return ('1'):rep(1000) + 1", "arithmetic on a string and a number"},
	"index chain":   {"local t = {}\nfor i = 1, 30 do t = setmetatable({}, { __index = t }) end\nreturn t.x", "too many recursions"},
	"escape codes":  {"error('\\27[2J\\8\\7 \\226\\128\\174 end', 0)", "r.lua: [2J end"},
	"gmatch":        {"while true do for w in string.rep('a b ', 4000):gmatch('%a+') do end end", "VM instructions"},
}

// Cases I1 and I3: whatever a call does, it ends in a fault with file and line
// and the default decision; the process lives, the VM decides on, and the same
// call ends the same way again.
func TestBombs(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			vm := mustVM(t, Env{Self: 1}, "function route(r)\nif r.token == 1 then return STAY end\n"+bomb.body+"\nend")
			var first string
			for i := range 3 {
				d := vm.Route(sampleRow())
				if d.Fault == "" || d.Dest != event.Front || d.Action != event.Keep {
					t.Fatalf("decision %+v", d)
				}
				if !strings.HasPrefix(d.Fault, "r.lua:") || !strings.Contains(d.Fault, bomb.want) {
					t.Fatalf("fault %q does not tell %q", d.Fault, bomb.want)
				}
				if i == 0 {
					first = d.Fault
				} else if d.Fault != first {
					t.Fatalf("call %d ended differently:\n%s\n%s", i, first, d.Fault)
				}
				row := sampleRow()
				row.Output.Token = 1
				if d := vm.Route(row); d.Fault != "" || d.Dest != 1 {
					t.Fatalf("the VM is not usable after the fault: %+v", d)
				}
			}
		})
	}
}

// Case I3 over many calls: what a router keeps is bounded too. The variables
// start afresh and the process holds no more than before.
func TestLeak(t *testing.T) {
	for name, text := range map[string]string{
		"strings":  "local keep = {}\nfunction route(r) for i = 1, 900 do keep[#keep % 16000 + 1] = string.rep('x', 16000) .. #keep end return STAY end",
		"tables":   "local keep, n = {}, 0\nfunction route(r) for i = 1, 2000 do n = n + 1\nkeep['k' .. n] = { n } end return STAY end",
		"closures": "local last\nfunction route(r) for i = 1, 5000 do local l = last\nlast = function() return l end end return STAY end",
		"pieces":   "local keep, n = {}, 0\nfunction route(r) for i = 1, 500 do n = n + 1\nkeep['k' .. n] = (string.rep('x', 16000) .. n):sub(1, 40) end return STAY end",
		"gmatch":   "local keep, n = {}, 0\nfunction route(r) for i = 1, 400 do n = n + 1\nkeep[n % 16000 + 1] = (string.rep('x', 16000) .. n):gmatch('x') end return STAY end",
	} {
		t.Run(name, func(t *testing.T) {
			vm := mustVM(t, Env{}, text)
			faults := 0
			for range 40 {
				if d := vm.Route(sampleRow()); d.Fault != "" {
					if !strings.Contains(d.Fault, "start afresh") && !strings.Contains(d.Fault, "memory") {
						t.Fatal(d.Fault)
					}
					faults++
				}
			}
			if faults == 0 && name != "pieces" {
				t.Error("the leak was not found")
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if limit := uint64(2*MaxHeld + MaxCallMemory + 64<<20); m.HeapAlloc > limit {
				t.Errorf("the heap has %d MiB, more than %d", m.HeapAlloc>>20, limit>>20)
			}
		})
	}
}

// What an audit counts is what the heap holds, within a factor of three, so that
// the limit is one: tables of every shape, closures, strings, iterators.
func TestAuditCountsWhatIsHeld(t *testing.T) {
	for name, make := range map[string]string{
		"empty":    "{}",
		"field":    "{ x = 1 }",
		"set":      "(function() local t = {} t.x = 1 return t end)()",
		"fields":   "(function() local t = {} t.a, t.b, t.c, t.d, t.e = 1, 2, 3, 4, 5 return t end)()",
		"many":     "{ a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9 }",
		"list":     "{ 1.5, 2.5, 3.5 }",
		"element":  "(function() local t = {} t[1] = 1 return t end)()",
		"odd keys": "{ [true] = 1, [-1] = 2 }",
		"closure":  "(function() local u = n return function() return u end end)()",
		"text":     "('x'):rep(100) .. n",
		"gmatch":   "(('x'):rep(1000) .. n):gmatch('x')",
		"verdict":  "APPEND({ 1, 2, 3 })",
		"topk":     "r.topk(3)",
		"load":     "r.load(0)",
	} {
		vm := mustVM(t, Env{}, "keep, n = {}, 0\n"+routeOf("for i = 1, 100 do n = n + 1 keep[n] = "+make+" end return STAY"))
		measure := func() (heap, counted int) {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			a := newAuditor()
			a.value(vm.l.G.Global.RawGetString("keep"))
			a.walk()
			return int(m.HeapAlloc), a.size
		}
		vm.Route(sampleRow())
		h0, c0 := measure()
		for range 30 {
			if d := vm.Route(sampleRow()); d.Fault != "" {
				t.Fatal(name, d.Fault)
			}
		}
		h1, c1 := measure()
		if held, counted := h1-h0, c1-c0; held > 3*counted || counted > 3*held+200_000 {
			t.Errorf("%s: %d bytes are counted as %d", name, held/3000, counted/3000)
		}
	}
}

// The top of a file is bounded like a call, and so is what it leaves behind.
func TestLoadIsBounded(t *testing.T) {
	_, err := Compile("r.lua", "local h\nfor i = 1, 16000 do local n = {}\nn.next = h\nh = n end\nkeep = h\n"+routeOf("return STAY"))
	if err == nil || !strings.Contains(err.Error(), "the top of the file fills variables with") {
		t.Errorf("%v", err)
	}
	_, err = Compile("r.lua", "local function f(x, ...) return f(x, x, ...) end\nf(1)\n"+routeOf("return STAY"))
	if err == nil || !strings.Contains(err.Error(), "many arguments") {
		t.Errorf("%v", err)
	}
}

// Whatever an operation costs unseen is charged: a loop over it ends after so
// few rounds that the call ends in a moment. Long texts and arrays are the
// largest there are.
func TestHiddenCostsAreCharged(t *testing.T) {
	const text = "local a = ('1'):rep(16000)\nlocal b = ('1'):rep(16000)\n"
	const holes = "local t = {}\nt[16000] = 1\nt[16000] = nil\n"
	const ghosts = "local t = {}\nfor i = 1, 3000 do local k = 'k' .. i\nt[k] = 1\nt[k] = nil end\nt.x = 1\n"
	for body, most := range map[string]int{
		text + "while true do n = n + 1 local c = a < b end":                                                     100,
		text + "while true do n = n + 1 local c = a >= b end":                                                    100,
		text + "while true do n = n + 1 local c = r.text .. a < b end":                                           100,
		text + "local t = { a, b, a, b }\nwhile true do n = n + 1 table.sort(t) end":                             20,
		text + "while true do n = n + 1 pcall(error, a) end":                                                     100,
		"while true do n = n + 1 print(1) end":                                                                   100,
		text + "while true do n = n + 1 print(a, b) end":                                                         30,
		"local a, p = ('x'):rep(100), '[' .. ('abcd'):rep(250) .. ']y'\nwhile true do n = n + 1 a:find(p) end":   20,
		"local a, p = ('x'):rep(100), '%f[' .. ('abcd'):rep(250) .. ']y'\nwhile true do n = n + 1 a:find(p) end": 20,
		"while true do n = n + 1 pcall(error, 'x') end":                                                          100,
		holes + "while true do n = n + 1 local c = #t end":                                                       100,
		holes + "while true do n = n + 1 table.getn(t) end":                                                      100,
		holes + "while true do n = n + 1 table.maxn(t) end":                                                      100,
		holes + "while true do n = n + 1 table.concat(t) end":                                                    100,
		holes + "while true do n = n + 1 table.insert(t, 1)\nt[1] = nil end":                                     100,
		holes + "while true do n = n + 1 next(t) end":                                                            100,
		ghosts + "while true do n = n + 1 next(t) end":                                                           300,
		"while true do n = n + 1 local s = ('%.99f'):format(1e300) end":                                          6000,
	} {
		env := Env{Print: func(string) {}}
		vm := mustVM(t, env, "n = 0\n"+routeOf(body))
		if d := vm.Route(sampleRow()); !strings.Contains(d.Fault, "VM instructions") {
			t.Errorf("%s\n%q", body, d.Fault)
		}
		if n := int(lua.LVAsNumber(vm.l.G.Global.RawGetString("n"))); n > most {
			t.Errorf("%s\nran %d times, more than %d", body, n, most)
		}
	}
	// What is not long is not charged: numbers, and the ends of full arrays.
	vm := mustVM(t, Env{}, "n = 0\n"+routeOf("local t = {}\nfor i = 1, 1000 do t[i] = i end\nwhile #t > 0 and n < 3000 and r.entropy < 9 and t[1] < t[2] do n = n + 1 end\nreturn STAY"))
	if d := vm.Route(sampleRow()); d.Fault != "" {
		t.Error(d.Fault)
	}
}

// Nothing that a router can read tells where in memory something lies.
func TestNoAddresses(t *testing.T) {
	vm := mustVM(t, Env{}, `
local function seen(s)
  s = tostring(s)
  if s:find("0x") then error("an address: " .. s:gsub("0x", "0 x"), 0) end
end
function route(r)
  local t, f = {}, function() end
  local v = ({ t, f, r, STAY })[r.step + 1]
  seen(v)
  seen(string.format("%s", v))
  for _, wrong in ipairs({
    function() return r[v] end, function() r[v] = 1 end, function() return nil .. v end, function() return to(v) end,
    function() local n n[v] = 1 end, function() local n return n[v] end, function() return v < 1 end, function() return -v end,
    function() return ("x"):rep(v) end, function() error(tostring(v)) end, function() return r.random(v) end, function() return STAY[v] end,
    function() return roles[1][v] end, function() return math[v].x end,
  }) do
    seen(select(2, pcall(wrong)))
    seen(select(2, xpcall(wrong, function(e) return e end)))
  end
  return STAY
end`)
	for step := range 4 {
		row := sampleRow()
		row.Step = step
		if d := vm.Route(row); d.Fault != "" {
			t.Error(d.Fault)
		}
	}
}

// A table whose keys come and go keeps the live ones only, and their order.
func TestDeletedKeysAreDropped(t *testing.T) {
	vm := mustVM(t, Env{}, `
local seen, n = { a = 1, b = 2 }, 0
function route(r)
  for i = 1, 1000 do
    n = n + 1
    seen["k" .. n] = true
    seen["k" .. n] = nil
  end
  seen.last = n
  local keys = {}
  for k in pairs(seen) do keys[#keys + 1] = k end
  if table.concat(keys, ",") ~= "a,b,last" then error(table.concat(keys, ",")) end
  r.state.seen = nil
  _G.probe = seen
  return STAY
end`)
	for range 100 {
		if d := vm.Route(sampleRow()); d.Fault != "" {
			t.Fatal(d.Fault)
		}
	}
	probe := vm.l.G.Global.RawGetString("probe")
	a := newAuditor()
	a.value(probe)
	a.walk()
	if a.size > 16<<10 {
		t.Errorf("a table with 3 keys is held as %d bytes", a.size)
	}
}

// Case I4: nothing of the machine is in reach; the message says what to do.
func TestAbsent(t *testing.T) {
	for _, expr := range []string{
		"os.exit()", "io.open('/etc/passwd')", "os.execute('x')", "require('os')", "dofile('x')", "load('x')",
		"loadstring('x')", "loadfile('x')", "coroutine.wrap(f)", "debug.getinfo(1)", "collectgarbage()", "newproxy()",
		"getfenv()", "setfenv(1, {})", "module('x')", "package.loaded.os", "math.random()", "math.randomseed(1)", "string.dump(f)",
	} {
		_, err := Compile("r.lua", routeOf("local f\nlocal x = "+expr+"\nreturn STAY"))
		name, _, _ := strings.Cut(expr, "(")
		if err == nil || !strings.HasPrefix(err.Error(), "r.lua:3: ") || !strings.Contains(err.Error(), "is absent") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The same by a name that only exists at run time.
	for _, name := range []string{"os", "io", "require", "load", "debug", "coroutine", "package", "_printregs", "dofile", "setfenv"} {
		fault := faultOf(t, Env{}, "local name = '"+name+"'\nreturn _G[name].x")
		if !strings.Contains(fault, "absent") && !strings.Contains(fault, "there is no global") {
			t.Errorf("%s: %s", name, fault)
		}
	}
	for _, body := range []string{
		"local f = math['ran' .. 'dom']\nf()", "local f = string['du' .. 'mp']\nf()",
		"setmetatable(_G, nil)\nreturn os", "local m = getmetatable('')\nm.__index = nil",
		"local m = getmetatable(r)\nm.x = 1", "rawset(getmetatable(string), '__index', nil)",
	} {
		faultOf(t, Env{}, body)
	}
}

// print goes to the environment, one line a call, and nowhere else.
func TestPrint(t *testing.T) {
	var lines []string
	env := Env{Print: func(s string) { lines = append(lines, s) }}
	check(t, env, sampleRow(), "print('a', 1, nil, true, {}, 'b\\nc')")
	if len(lines) != 1 || lines[0] != "a 1 nil true table b c" {
		t.Errorf("lines %q", lines)
	}
	check(t, Env{}, sampleRow(), "print('nowhere')")
}

// The same file ends the same way in every VM: 100,000 instructions are counted,
// so what a router got done before the end is the same too.
func TestBudgetIsCounted(t *testing.T) {
	done := func() string {
		vm := mustVM(t, Env{}, "n = 0\n"+routeOf("while true do n = n + 1 end"))
		vm.Route(sampleRow())
		return vm.l.G.Global.RawGetString("n").String()
	}
	first := done()
	if first == "0" {
		t.Fatal("nothing ran")
	}
	for range 3 {
		if again := done(); again != first {
			t.Fatalf("%s steps, then %s", first, again)
		}
	}
}
