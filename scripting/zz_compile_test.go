package scripting

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestZZCompile(t *testing.T) {
	rt := "function route(r) return STAY end\n"
	var names, unknown strings.Builder
	for i := 0; names.Len() < 30000; i++ {
		fmt.Fprintf(&names, "zaa%d=1 ", i)
		fmt.Fprintf(&unknown, "f(yaa%d) ", i)
	}
	for name, text := range map[string]string{
		"do nest":      rt + strings.Repeat("do ", 9000) + strings.Repeat(" end", 9000),
		"do nest read": rt + strings.Repeat("do local x=1 ", 190) + strings.Repeat("y=x ", 10000) + strings.Repeat(" end", 190),
		"fn nest":      rt + "x=" + strings.Repeat("function() return ", 2800) + "1" + strings.Repeat(" end", 2800),
		"fn nest 150":  rt + "x=" + strings.Repeat("function() return ", 150) + "1" + strings.Repeat(" end", 150),
		"paren":        rt + "x=" + strings.Repeat("(", 31000) + "1" + strings.Repeat(")", 31000),
		"minus":        rt + "x=" + strings.Repeat("- ", 31000) + "1",
		"not":          rt + "x=" + strings.Repeat("not ", 15000) + "1",
		"len":          rt + "x=" + strings.Repeat("#", 60000) + "'x'",
		"table nest":   rt + "x=" + strings.Repeat("{", 31000) + "1" + strings.Repeat("}", 31000),
		"call chain":   rt + "x=f" + strings.Repeat("()", 31000),
		"dot chain":    rt + "x=_G" + strings.Repeat(".a", 31000),
		"concat":       rt + "x='a'" + strings.Repeat("..'a'", 12000),
		"add":          rt + "x=1" + strings.Repeat("+1", 31000),
		"and":          rt + "x=1" + strings.Repeat(" and 1", 10000),
		"if chain":     rt + "if x then " + strings.Repeat("elseif x then ", 4000) + " end",
		"pow":          rt + "x=1" + strings.Repeat("^1", 31000),
		"unknown":      rt + names.String() + unknown.String(),
		"long names":   rt + strings.Repeat("a", 30000) + "=1 " + "x=" + strings.Repeat("a", 29999),
		"args":         rt + "f = print f(" + strings.Repeat("1,", 3000) + "1)",
		"locals":       rt + strings.Repeat("local a=1 ", 6000),
		"returns":      rt + "function f() return " + strings.Repeat("1,", 3000) + "1 end",
		"params":       rt + "function f(" + strings.Repeat("a,", 3000) + "b) end",
		"upvalues":     rt + strings.Repeat("local a=1 ", 100),
		"gotos":        rt + strings.Repeat("do ::a:: goto a end ", 3000),
		"labels": rt + func() string {
			var b strings.Builder
			for i := range 4000 {
				fmt.Fprintf(&b, "::l%d:: ", i)
			}
			return b.String()
		}(),
		"labels goto": rt + func() string {
			var b strings.Builder
			for i := range 2500 {
				fmt.Fprintf(&b, "goto l%d ::l%d:: ", i, i)
			}
			return b.String()
		}(),
		"comment open":     rt + "--[[" + strings.Repeat("x", 60000),
		"long string":      rt + "x = [[" + strings.Repeat("x", 60000) + "]]",
		"eqs":              rt + "x = [" + strings.Repeat("=", 60000) + "[",
		"nul":              rt + "x = '\x00' -- \x00",
		"nul raw":          rt + "x = \x00 1",
		"nul in":           "function rou\x00te(r) return STAY end",
		"bom":              "\xef\xbb\xbf" + rt,
		"utf16":            "\xff\xfef\x00u\x00n\x00",
		"crlf":             strings.ReplaceAll("-- a\nlocal x = 1\n\nfunction route(r)\n return HMOE\nend\n", "\n", "\r\n"),
		"crlf syntax":      strings.ReplaceAll("-- a\nlocal x = 1\n\nfunction route(r)\n return return\nend\n", "\n", "\r\n"),
		"cr only":          strings.ReplaceAll("-- a\nlocal x = 1\n\nfunction route(r)\n return HMOE\nend\n", "\n", "\r"),
		"latin1":           rt + "x = '\xe4\xf6' -- \xff",
		"latin1 name":      rt + "x\xe4 = 1",
		"shebang":          "#!/usr/bin/lua\n" + rt,
		"multi assign":     rt + strings.Repeat("a,", 5000) + "b = 1",
		"multi assign idx": rt + "t={} k=1 " + strings.Repeat("t[k],", 5000) + "b = 1",
		"semicolons":       rt + strings.Repeat(";", 1000),
		"numbers":          rt + "x = 0x" + strings.Repeat("f", 1000),
		"numbers2":         rt + "x = 1e999999 y = 0/0 z = 1" + strings.Repeat("0", 5000),
		"escape":           rt + "x = '\\300'",
		"escape2":          rt + "x = '\\q\\x41\\u{1F600}'",
		"1MB":              strings.Repeat("x", 1<<20),
		"load bomb":        rt + "local h while true do local n = {} n.next = h h = n end",
		"load bomb kept":   rt + "h = nil for i = 1, 24000 do local n = {} n.next = h h = n end",
		"load concat":      rt + "s = 'x' while true do s = s .. s end",
		"params many":      "for i = 1, 10000 do param('k'..i, {default=0}) end\n" + rt,
		"param pcall":      "for i = 1, 10000 do pcall(param, 'k'..i, {default=0}) end\n" + rt,
		"param meta":       "param('k', setmetatable({}, {__index=function() return 1 end}))\n" + rt,
		"param help":       "param('k', {default=0, help=print})\n" + rt,
		"param key":        "param('k', {default=0, [print]=1})\n" + rt,
		"param neg0":       "param('k', {default=-0.0})\n" + rt,
		"param huge":       "param('k', {default=0, max=math.huge})\n" + rt,
		"param minmax":     "param('k', {default=0, min=-1e308, max=1e308})\n" + rt,
		"param name":       "param('default', {default=0})\nparam('a.b', {default=0})" + rt,
		"param help nl":    "param('k', {default=0, help='a\\nb\\27[31m'})\n" + rt,
	} {
		done := make(chan string, 1)
		var m0, m1 runtime.MemStats
		runtime.ReadMemStats(&m0)
		t0 := time.Now()
		go func() {
			defer func() {
				if r := recover(); r != nil {
					done <- fmt.Sprint("PANIC ", r)
				}
			}()
			p, err := Compile("r.lua", text)
			if err != nil {
				done <- cut(err.Error(), 150)
				return
			}
			done <- fmt.Sprintf("ok %+v", p.Params)
		}()
		select {
		case s := <-done:
			runtime.ReadMemStats(&m1)
			t.Logf("%-16s %8s %5d MiB %s", name, time.Since(t0).Round(time.Millisecond), (m1.TotalAlloc-m0.TotalAlloc)>>20, s)
		case <-time.After(20 * time.Second):
			t.Errorf("%s: HANG", name)
		}
	}
}
