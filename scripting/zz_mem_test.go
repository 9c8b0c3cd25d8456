package scripting

import (
	"runtime"
	"testing"
)

func TestZZMem(t *testing.T) {
	for name, text := range map[string]string{
		"empty tables":    "keep[n % 16000 + 1] = {}",
		"one field ctor":  "keep[n % 16000 + 1] = {x = 1}",
		"one field set":   "local t = {} t.x = 1 keep[n % 16000 + 1] = t",
		"five fields set": "local t = {} t.a = 1 t.b = 1 t.c = 1 t.d = 1 t.e = 1 keep[n % 16000 + 1] = t",
		"9 fields ctor":   "keep[n % 16000 + 1] = {a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9}",
		"one elem ctor":   "keep[n % 16000 + 1] = {1}",
		"one elem set":    "local t = {} t[1] = 1 keep[n % 16000 + 1] = t",
		"five elem":       "keep[n % 16000 + 1] = {1,2,3,4,5}",
		"float elems":     "keep[n % 16000 + 1] = {1.5,2.5,3.5,4.5,5.5}",
		"bool key":        "local t = {} t[true] = 1 keep[n % 16000 + 1] = t",
		"neg key":         "local t = {} t[-1] = 1 keep[n % 16000 + 1] = t",
		"closures":        "local u = n keep[n % 16000 + 1] = function() return u end",
		"closures0":       "keep[n % 16000 + 1] = function() return 1 end",
		"short strings":   "keep[n % 16000 + 1] = 'k' .. n",
		"long strings":    "keep[n % 16000 + 1] = ('x'):rep(100) .. n",
		"gmatch":          "keep[n % 16000 + 1] = (('x'):rep(1000) .. n):gmatch('x')",
		"numbers":         "keep[n % 16000 + 1] = n + 0.5",
		"APPEND":          "keep[n % 16000 + 1] = APPEND({1,2,3})",
		"topk":            "keep[n % 16000 + 1] = r.topk(3)",
		"load":            "keep[n % 16000 + 1] = r.load(0)",
		"state":           "r.state.x = {} keep[n % 16000 + 1] = r.state r.state = nil",
	} {
		p, err := Compile("r.lua", "keep, n = {}, 0\nfunction route(r) for i = 1, 100 do n = n + 1 "+text+" end return STAY end")
		if err != nil {
			t.Error(name, err)
			continue
		}
		vm, _ := NewVM(Env{Peers: 2}, p)
		vm.Route(sampleRow())
		measure := func() (uint64, int) {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			a := newAuditor()
			a.value(vm.l.G.Global.RawGetString("keep"))
			a.walk()
			return m.HeapAlloc, a.size
		}
		h0, a0 := measure()
		var fault string
		for range 100 {
			if f := vm.Route(sampleRow()).Fault; f != "" {
				fault = f
			}
		}
		h1, a1 := measure()
		t.Logf("%-18s real %6.0f  counted %6.0f per entry %s", name, float64(int64(h1-h0))/1e4, float64(a1-a0)/1e4, fault)
		vm.Close()
	}
}
