package scripting

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"testing"
	"time"
)

var attacks = map[string]string{
	"honest loop":      "while true do end",
	"honest table":     "local t = {}\nwhile true do t = {} t.x = 1 end",
	"len trailing nil": "local t = {}\nt[16000] = 1\nt[16000] = nil\nwhile true do local n = #t end",
	"insert trailing":  "local t = {}\nt[16000] = 1\nt[16000] = nil\nlocal ins = table.getn\nwhile true do ins(t) end",
	"next trailing":    "local t = {}\nt[16000] = 1\nt[16000] = nil\nlocal nx = next\nwhile true do nx(t) end",
	"next ghosts":      "local t = {}\nfor i = 1, 5000 do local k = 'k' .. i\nt[k] = 1\nt[k] = nil end\nt.x = 1 local nx = next\nwhile true do nx(t) end",
	"compare lt":       "local a = ('x'):rep(4096 )\nlocal b = a .. '' \nwhile true do local c = a < b end",
	"compare lt flat":  "local a = ('x'):rep(4096)\nlocal b = ('x'):rep(4096)\nfor i = 1, 1e9 do local c = a < b c = a < b c = a < b c = a < b c = a < b c = a < b c = a < b c = a < b end",
	"compare eq":       "local a = ('x'):rep(MAXS-1) .. 'a'\nlocal b = ('x'):rep(MAXS-1) .. 'b'\nfor i = 1, 1e9 do local c = a == b c = a == b c = a == b c = a == b c = a == b c = a == b c = a == b end",
	"compare lt max":   "local a = ('x'):rep(MAXS-1) .. 'a'\nlocal b = ('x'):rep(MAXS-1) .. 'b'\nfor i = 1, 1e9 do local c = a < b c = a < b c = a < b c = a < b c = a < b c = a < b c = a < b end",
	"arith string":     "local a = ('1'):rep(MAXS)\nfor i = 1, 1e9 do local c = a + a c = a + a c = a + a c = a + a c = a + a c = a + a c = a + a end",
	"arith string exp": "local a = ('1'):rep(MAXS-5) .. 'e-20'\nfor i = 1, 1e9 do local c = a + a c = a + a c = a + a c = a + a c = a + a c = a + a c = a + a end",
	"unm string":       "local a = '0.' .. ('1'):rep(MAXS-10) .. 'e10'\nfor i = 1, 1e9 do local c = -a c = -a c = -a c = -a c = -a c = -a c = -a end",
	"floor string":     "local a, f = ('1'):rep(MAXS), math.floor\nwhile true do f(a) end",
	"math.max strings": "local a, f = ('1'):rep(MAXS), math.max\nwhile true do f(a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a) end",
	"for string":       "local a, f = ('1'):rep(MAXS), math.max\nwhile true do for i = a, a do break end end",
	"key hash":         "local a = ('x'):rep(MAXS)\nlocal t = {[a]=1}\nfor i = 1, 1e9 do local c = t[a] c = t[a] c = t[a] c = t[a] c = t[a] c = t[a] c = t[a] c = t[a] end",
	"key set":          "local a = ('x'):rep(MAXS)\nlocal t = {[a]=1}\nwhile true do t[a] = 1 t[a] = 2 t[a] = 3 end",
	"tonumber":         "local a, f = ('1'):rep(MAXS), tonumber\nwhile true do f(a) end",
	"tonumber inv":     "local a, f = ('1'):rep(MAXS-1)..'x', tonumber\nwhile true do f(a) end",
	"tonumber16":       "local a, f = ('1'):rep(MAXS-1)..'x', tonumber\nwhile true do f(a, 36) end",
	"vararg":           "local function f(...) local s = select while true do local n = s('#', ...) end end f(unpack({}, 1, 4000))",
	"vararg flat":      "local function f(...) while true do local a = ... a = ... a = ... a = ... end end f(unpack({}, 1, 4000))",
	"vararg call":      "local function g() end local function f(...) while true do g(...) end end f(unpack({}, 1, 4000))",
	"vararg tail":      "local function f(a, ...) return f(...) end local function h(...) while true do f2(...) end end local u = unpack while true do pcall(f, u({}, 1, 2000)) end",
	"unpack":           "local u, t = unpack, {}\nwhile true do u(t, 1, 4000) end",
	"sort strings":     "local t = {}\nlocal base = ('x'):rep(MAXS-5)\nfor i = 1, 300 do t[i] = base .. (i * 7919 % 307) end\nwhile true do table.sort(t) t[1], t[50], t[200] = t[200], t[1], t[50] end",
	"sort rawequal":    "local t = {}\nfor i = 1, 5000 do t[i] = i * 7919 % 5003 end\nwhile true do table.sort(t, rawequal) end",
	"sort small":       "local t = {3,2,1}\nlocal s = table.sort while true do s(t) end",
	"longname global":  "local n = ('x'):rep(MAXS)\nwhile true do pcall(function() return _G[n] end) end",
	"longname field":   "local n = ('x'):rep(MAXS)\nwhile true do pcall(function() return r[n] end) end",
	"longname role":    "local n = ('x'):rep(MAXS)\nwhile true do pcall(to, n) end",
	"role":             "while true do pcall(to, 'lrage') end",
	"pcall errors":     "while true do pcall(error, 'x') end",
	"pcall deep":       "local function f(n) if n > 0 then return 1 + f(n - 1) end error('x') end\nwhile true do pcall(f, 100) end",
	"overflow":         "local function f() return 1 + f() end while true do pcall(f) end",
	"error cat":        "local a = ('x'):rep(MAXS)\nwhile true do pcall(error, a) end",
	"pattern set":      "local a = ('x'):rep(MAXS)\nlocal p = '[' .. ('abcdefgh'):rep(120) .. ']*y'\nwhile true do a:find(p) end",
	"pattern set one":  "local a = ('x'):rep(MAXS)\nlocal p = '[' .. ('abcdefgh'):rep(120) .. ']y'\nwhile true do a:find(p) end",
	"pattern frontier": "local a = ('x'):rep(MAXS)\nlocal p = '%f[' .. ('abcdefgh'):rep(120) .. ']y'\nwhile true do a:find(p) end",
	"find plain":       "local a = ('x'):rep(MAXS)\nlocal f, b = string.find, ('x'):rep(600) .. 'y' .. ('x'):rep(600) while true do f(a, b, 1, true) end",
	"find init":        "local a = ('x'):rep(MAXS)\nlocal f = string.find while true do f(a, 'y', 1, true) end",
	"format":           "local f = string.format while true do f('%99.99f', 1e300) end",
	"format e":         "local f = string.format while true do f('%.99e %.99e %.99e %.99e', 1e300, 1e-300, 1e200, 1e-300) end",
	"format q":         "local a, f = ('\\1'):rep(MAXS/4-10), string.format while true do pcall(f, '%q', a) end",
	"format s pad":     "local a, f = ('x'):rep(MAXS-10), string.format while true do f('%s', a) end",
	"numstr":           "local f = tostring while true do f(1e300) end",
	"concat nums":      "while true do local s = 1e300 .. 1e300 .. 1e300 .. 1e300 end",
	"gmatch":           "local a = ('x'):rep(MAXS)\nwhile true do for w in a:gmatch('x+') do end end",
	"gsub fn":          "local a = ('x'):rep(MAXS)\nwhile true do a:gsub('.', string.upper) end",
	"gsub nest":        "local function g(s) return (s:gsub('.', g)) end\nwhile true do pcall(g, 'xxx') end",
	"print":            "local a = ('x '):rep(MAXS/2)\nwhile true do print(a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a) end",
	"topk":             "local f = r.topk while true do f(3) end",
	"load":             "local f = r.load while true do f(0) end",
	"text":             "while true do local x = r.text end",
	"random":           "local f = r.random while true do f(3) end",
	"remove hole":      "local t = {}\nfor i = 1, 8000 do t[i] = i end\nwhile true do t[8001] = 1 table.remove(t, 1) end",
	"insert front":     "local t = {}\nfor i = 1, 4000 do t[i] = i end\nwhile true do table.insert(t, 1, 1) table.remove(t, 1) end",
	"maxn":             "local t = {}\nt[16000] = 1\nt[16000] = nil\nwhile true do table.maxn(t) end",
	"metachain":        "local t = {}\nfor i = 1, 90 do t = setmetatable({}, {__index = t}) end\nwhile true do local x = t.x x = t.x x = t.x x = t.x x = t.x end",
	"closure":          "while true do local f = function() return r end end",
	"string keys":      "local t = {}\nlocal i = 0 while true do i = i + 1 t['k' .. i] = i end",
	"tables kept":      "local h while true do local n = {} n.next = h h = n end",
	"state big":        "for i = 1, 2000 do r.state['k'..i] = nil end\nfor i = 1, 200 do r.state[i] = {} end",
	"concat meta":      "local t = setmetatable({}, {__concat = function(a, b) return b end})\nwhile true do local s = t .. t .. t end",
	"append":           "local t = {} for i = 1, 10 do t[i] = i end while true do APPEND(t) end",
	"concat table":     "local t = {} for i = 1, 4000 do t[i] = '' end while true do table.concat(t) end",
	"concat hole":      "local t = {} t[16000]=1 t[16000]=nil local c = table.concat while true do c(t) end",
	"eq meta":          "local m = {__eq = rawequal}\nlocal a, b = setmetatable({}, m), setmetatable({}, m) while true do local c = a == b end",
	"loadnil":          "while true do local a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,s,t,u,v,w,x,y,z end",
}

func TestZZAttacks(t *testing.T) {
	only := os.Getenv("ATTACK")
	type res struct {
		name string
		d    time.Duration
		mb   uint64
		f    string
	}
	var out []res
	for name, body := range attacks {
		if only != "" && only != name {
			continue
		}
		p, err := Compile("r.lua", fmt.Sprintf("local MAXS = %d\n", MaxString)+routeOf(body+"\nreturn STAY"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		vm, err := NewVM(Env{Peers: 2, Print: func(string) {}}, p)
		if err != nil {
			t.Error(err)
			continue
		}
		vm.Route(sampleRow())
		best := time.Hour
		var m0, m1 runtime.MemStats
		var f string
		runtime.ReadMemStats(&m0)
		for range 2 {
			t0 := time.Now()
			d := vm.Route(sampleRow())
			best = min(best, time.Since(t0))
			f = d.Fault
		}
		runtime.ReadMemStats(&m1)
		out = append(out, res{name, best, (m1.TotalAlloc - m0.TotalAlloc) / 2 >> 20, f})
		vm.Close()
	}
	sort.Slice(out, func(i, j int) bool { return out[i].d > out[j].d })
	for _, r := range out {
		t.Logf("%-18s %10s %5d MiB  %s", r.name, r.d.Round(10*time.Microsecond), r.mb, r.f)
	}
}
