package scripting

import (
	"errors"
	"strings"
	"testing"
)

// Case I5, the text's side: what is wrong, where, and what was meant.
func TestCompileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":        "r.lua: the file is empty",
		" \n\t\n": "r.lua: the file is empty",
		"x = 1":   "r.lua: there is no function route(r); a router must define one",
		"function route(r)\n  if r.entropy > 1\n    return STAY\n  end\nend": `r.lua:3: syntax error near "return"`,
		"function route(r)\n  return STAY\n":                                 `r.lua:2: syntax error: the file ends too early`,
		"function route(r)\n  return 'abc\nend":                              "r.lua:2: unterminated string",
		"function route(r) return 7 // 2 end":                                "r.lua:1: syntax error",
		"function route(r) break end":                                        "r.lua:1: no loop to break",
		"function route(r) goto x end":                                       "r.lua:1: no visible label",
		"local function route(r)\n return STAY end":                          "r.lua:1: route is local, so the runtime cannot see it",
		"local route\nroute = function(r) return STAY end":                   "there is no function route(r)",
		"route = 5":                           "route is a number; it must be a function",
		"route = to":                          "route is a function; it must be a function of the file",
		"function rout(r)\n return STAY end":  `r.lua:1: function "rout" is never called and looks like a misspelt "route"`,
		"function Route(r)\n return STAY end": `looks like a misspelt "route"`,
		"function route(r) return STAY end\nfunction snd(r, d) return {} end":                         `r.lua:2: function "snd" is never called and looks like a misspelt "send"`,
		"function route(r) return STAY end\nrecieve = function(m) end":                                `r.lua:2: function "recieve" is never called and looks like a misspelt "receive"`,
		"function route(r)\n  if r.entropy > 1 then\n    return r.entropi\n  end\n  return STAY\nend": `r.lua:3: r has no field "entropi"; did you mean "entropy"?`,
		"function route(x) return x:topK(3) end":                                                      `x has no field "topK"; did you mean "topk"?`,
		"route = function(q)\n return function() return q.magrin end end":                             `r.lua:2: q has no field "magrin"; did you mean "margin"?`,
		"function route(r) r.entropy = 1 end":                                                         "r.entropy cannot be assigned; only r.state can",
		"function route(r) return STAY end\nfunction send(req, d) return { budget = req.bugdet } end": `req has no field "bugdet"`,
		"function route(r) return STAY end\nfunction receive(msg, req) return msg.sufix end":          `msg has no field "sufix"; did you mean "suffix"?`,
		"function route(r) return STAY end\nfunction receive(msg, req) msg.loc = 1 end":               "msg.loc cannot be assigned; it is read-only",
		"function route(r) return STAY end\nfunction receive(msg, req) return req.hold end":           `req has no field "hold"; did you mean "held"?`,
		"function route(r)\n  return HMOE\nend":                                                       `r.lua:2: there is no global "HMOE"; did you mean "HOME"?`,
		"function route(r)\n  return to_large()\nend":                                                 `r.lua:2: there is no global "to_large"`,
		"local t = parm('x', { default = 1 })\nfunction route(r) return STAY end":                     `r.lua:1: there is no global "parm"; did you mean "param"?`,
		"function route(r) return math.flor(1) end":                                                   `math has no function "flor"; did you mean "floor"?`,
		"function route(r) return string.subb('x') end":                                               `string has no function "subb"; did you mean "sub"?`,
		"STAY = 1\nfunction route(r) return STAY end":                                                 "r.lua:1: STAY belongs to the interface",
		"function to() end\nfunction route(r) return STAY end":                                        "to belongs to the interface",
		"function route(r) return STAY end\nerror('at load')":                                         "r.lua:2: at load",
		"function route(r) return STAY end\nwhile true do end":                                        "r.lua:2: more than 100000 VM instructions",
		"function route(r) return STAY end\nlocal x = nil\nx.y = 1":                                   "r.lua:3: attempt to index a non-table object(nil) with key 'y'",
		"\x1bLua":                   "r.lua: is compiled Lua",
		"\xff\xfef\x00u\x00n\x00":   "r.lua: is UTF-16; save it as UTF-8",
		"function rou\x00te(r) end": `r.lua:1: Invalid token near "\x00"`,
		"function route(r) return STAY end\r\n\r\nlocal x = HMOE\r\n":                                     `r.lua:3: there is no global "HMOE"`,
		"function route(r)\n r = {} return STAY end":                                                      "r.lua:2: r is what the runtime gave and cannot be assigned",
		"function route(r) return STAY end\nx = [[" + strings.Repeat("x", MaxString+1) + "]]":             "r.lua:2: a text of 16385 bytes; a router's strings end at 16384",
		"function route(r) return STAY end\n" + strings.Repeat("do\n", 300) + strings.Repeat("end ", 300): "r.lua:202: blocks are nested deeper than 200 levels",
		strings.Repeat(" ", MaxText) + "x":                                                                "r.lua: the file has 65537 bytes; a router may have 65536",
		"function route(r) return STAY end\nlocal t = {" + strings.Repeat("1,", 10_001) + "}":             "r.lua:2: a table constructor may have 10000 fields",
	} {
		p, err := Compile("some/dir/r.lua", text)
		if err == nil {
			t.Errorf("compiled, hash %s:\n%s", p.Hash, cut(text, 200))
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %s\nwant %s", cut(text, 200), err, want)
		}
		var e *Error
		if !errors.As(err, &e) || e.File != "r.lua" || strings.Contains(e.Msg, "\n") {
			t.Errorf("%#v is not one line about r.lua", err)
		}
	}
}

// What is legal stays legal.
func TestCompiles(t *testing.T) {
	for _, text := range []string{
		"function route(r) return 0 end",
		"route = function(r) return 1 end",
		"_G.route = function(r) return STAY end",
		"_G.helper = function() return STAY end\nfunction route(r) return helper() end",
		"function route(r) count = (count or 0) + 1 return STAY end",
		"function route(r) local r = { entropi = 1 } return r.entropi and STAY end",
		"function route(r) local math = { flor = to } return STAY end",
		"function route(r) return pick(r) end\nfunction pick(r) return STAY end",
		"function seed() return 1 end\nfunction route(r) return seed() and STAY end",
		"local function route2(r) return STAY end\nfunction route(r) return route2(r) end",
		"function route() return STAY end",
		"function route(r, extra) return STAY end",
		"-- only\nlocal here = to('middle')\nfunction route(r) return here end",
		"\ufefffunction route(r) return STAY end",
		"local x = 1\r\nfunction route(r)\r\n  return STAY\r\nend\r\n",
		"function route(r) if r.pos == 0 then " + strings.Repeat("elseif r.pos == 1 then ", 1000) + "end return STAY end",
		"function route(r)\n return STAY end -- \xe4\xf6 in Latin-1",
		"local t = {}\nfunction t.send(x) return x.bugdet end\nfunction route(r) return STAY end",
		"local M = {}\nfunction M:route(r) return r.nonsense end\nfunction route(r) return STAY end",
	} {
		if _, err := Compile("r.lua", text); err != nil {
			t.Errorf("%v\n%s", err, cut(text, 200))
		}
	}
}

func TestProgram(t *testing.T) {
	p := mustCompile(t, "local a = param('a', { default = 2, min = 1, max = 3, help = 'what' })\nfunction route(r) return STAY end\nfunction send(r, d) end")
	if p.Hash != "047878c7c5db" {
		t.Errorf("hash %q", p.Hash)
	}
	if len(p.Params) != 1 || p.Params[0] != (Param{Name: "a", Help: "what", Default: 2, Min: 1, Max: 3}) {
		t.Errorf("%+v", p.Params)
	}
	if q := mustCompile(t, p.Text); q.Hash != p.Hash {
		t.Error("the hash is not a function of the text")
	}
}
