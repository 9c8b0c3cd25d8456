package scripting

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

func TestDestinations(t *testing.T) {
	for _, c := range []struct {
		ret    string
		self   event.Peer
		dest   event.Peer
		action event.Action
	}{
		{"STAY", 0, 0, event.Keep},
		{"STAY", 2, 2, event.Keep},
		{"0", 0, 0, event.Keep},
		{"0", 1, 1, event.Keep}, // 0 is STAY wherever it is said
		{"1", 0, 1, event.Keep},
		{"2", 0, 2, event.Keep},
		{"HOME", 0, 0, event.Keep},
		{"HOME", 2, 0, event.Keep},
		{"to('small')", 2, 0, event.Keep},
		{"to('middle')", 0, 1, event.Keep},
		{"to('large'), DROP", 0, 2, event.Drop},
		{"to('large'), KEEP", 0, 2, event.Keep},
		{"to(0)", 1, 0, event.Keep},
		{"to(2), DROP", 1, 2, event.Drop},
		{"to(HOME)", 1, 0, event.Keep},
		{"to(STAY)", 1, 1, event.Keep},
		{"HOME, DROP", 1, 0, event.Drop},
		{"to(roles[#roles])", 0, 2, event.Keep},
		{"to('small') == HOME and to(1) or nil", 0, 1, event.Keep},
		{"STAY, KEEP, 'more', 'values'", 1, 1, event.Keep},
	} {
		vm := mustVM(t, Env{Self: c.self, Peers: 3}, routeOf("return "+c.ret))
		if d := vm.Route(sampleRow()); d.Fault != "" || d.Dest != c.dest || d.Action != c.action {
			t.Errorf("return %s at %d: %+v", c.ret, c.self, d)
		}
	}
}

// Case I8: a wrong value is a fault that names the line and the legal values.
func TestWrongReturns(t *testing.T) {
	const legal = "legal are STAY, HOME, to(role) and an index from 0 to 1; roles: small, large"
	for ret, want := range map[string]string{
		"nil":                "r.lua:3: route returned nil; " + legal,
		"":                   "r.lua:3: route returned nil; " + legal,
		"0/0":                "r.lua:3: route returned NaN; " + legal,
		"7":                  "r.lua:3: route returned 7; " + legal,
		"-1":                 "r.lua:3: route returned -1; " + legal,
		"0.5":                "r.lua:3: route returned 0.5; " + legal,
		"1e300":              "r.lua:3: route returned 1e+300; " + legal,
		"true":               "r.lua:3: route returned true; " + legal,
		"{}":                 "r.lua:3: route returned a table; " + legal,
		"route":              "r.lua:3: route returned a function; " + legal,
		"r":                  "r.lua:3: route returned userdata; " + legal,
		"DROP":               "r.lua:3: route returned DROP; " + legal,
		"'llm'":              `r.lua:3: route returned the text "llm"; ` + legal,
		"'lrage'":            `r.lua:3: route returned the text "lrage"; legal are STAY, HOME, to(role) and an index from 0 to 1; did you mean "large"? roles: small, large`,
		"'large'":            `r.lua:3: route returned the text "large"; write to("large")`,
		"STAY, 1":            "r.lua:3: route returned the action 1; legal are KEEP, DROP and TRUNCATE(pos)",
		"STAY, 'DROP'":       `r.lua:3: route returned the action "DROP"; legal are KEEP, DROP and TRUNCATE(pos)`,
		"HOME, HOME":         "r.lua:3: route returned the action HOME; legal are KEEP, DROP and TRUNCATE(pos)",
		"STAY, DROP":         "r.lua:3: route returned DROP with the own subserver as destination",
		"to('lrage')":        `r.lua:3: no role "lrage"; did you mean "large"? roles: small, large`,
		"to('middle')":       `r.lua:3: no role "middle"; roles: small, large`,
		"to(2)":              "r.lua:3: no subserver 2; there are 0 to 1: small, large",
		"to()":               "r.lua:3: nil is no subserver; give a role (small, large) or an index",
		"to(KEEP)":           "r.lua:3: KEEP is no subserver",
		"r[KEEP]":            "r.lua:3: r has no field",
		"r['entro' .. 'pi']": `r.lua:3: r has no field "entropi"; did you mean "entropy"?`,
		"_G['HO' .. 'EM']":   `r.lua:3: there is no global "HOEM"; did you mean "HOME"?`,
		"r.topk(9)":          "r.lua:3: r.topk(9): a row carries its 3 most likely tokens",
		"r.random(-1)":       "r.lua:3: r.random(-1): draws are numbered from 0",
		"r.load('midle')":    `r.lua:3: no role "midle"`,
		"r.entropy.x":        "r.lua:3: attempt to index a non-table object(number) with key 'x'",
		"r.entropy .. nil":   "r.lua:3: attempt to concatenate a nil value",
		"nosuch.x":           "",
	} {
		body := "local x = r.pos\nreturn " + ret
		if want == "" {
			if _, err := Compile("r.lua", routeOf(body)); err == nil {
				t.Errorf("%s compiled", ret)
			}
			continue
		}
		vm := mustVM(t, Env{Self: 1}, routeOf(body))
		for range 2 { // the line is found once and remembered
			d := vm.Route(sampleRow())
			if !strings.Contains(d.Fault, want) || d.Dest != event.Front || d.Action != event.Keep {
				t.Errorf("return %s\n got %+v\nwant %s", ret, d, want)
			}
		}
	}
	// At home the default is STAY.
	if d := mustVM(t, Env{Self: 0}, routeOf("return nil")).Route(sampleRow()); d.Dest != 0 || d.Fault == "" {
		t.Errorf("%+v", d)
	}
}

func TestRowFields(t *testing.T) {
	env := Env{
		Self: 1, Peers: 3, Seed: 99, Vocab: 100,
		Text: func(t event.Token) string { return map[event.Token]string{5: " five", 9: " nine"}[t] },
		Load: func(p event.Peer) (int, int, time.Duration, bool) {
			return int(p) + 3, int(p) + 1, 1500 * time.Microsecond, p != 2
		},
	}
	row := sampleRow()
	var e encoder
	if b, err := e.encode("fields", mustVM(t, Env{}, routeOf("return STAY")).l.NewTable()); err != nil || b != nil {
		t.Fatal("an empty table is not no bytes")
	}
	check(t, env, row, `
assert(r.model == "middle" and r.peers == 3 and #roles == 3 and roles[3] == "large")
assert(r.token == 5 and r.text == " five")
assert(r.entropy == 0.75 and r.entropy_norm == 0.125 and r.top1 == 0.5 and r.top2 == 0.25 and r.margin == 0.25 and r.logsumexp == 3)
assert(r.pos == 12 and r.step == 2 and not r.is_prefill and not r.first)
assert(r.ready == 4 and r.batch == 2)
local l = r.load("small")
assert(l.ready == 3 and l.batch == 1 and l.age_ms == 1.5)
l = r.load("large")
assert(l.ready == 0 and l.age_ms == math.huge)
assert(r.load(0).ready == 3 and r.load(HOME).ready == 3 and r:load(STAY).ready == 4)
local k = r.topk(2)
assert(#k == 2 and k[1].token == 5 and k[2].text == " nine" and k[1].logprob == -0.5 and k[1].prob == math.exp(-0.5))
assert(#r:topk() == 3 and #r.topk(5) == 3 and #r.topk(0) == 0)
assert(next(r.state) == nil and next(r.fields) == nil)
`)
	row.Pos, row.Prefill = 10, true
	check(t, env, row, "assert(r.first and r.is_prefill)")

	key := rng.Key{Seed: 99, Req: 7, Pos: 10, Model: 1, Purpose: rng.Router}
	vm := mustVM(t, env, "function route(r) draws = { r.random(), r.random(0), r.random(3), r:random(3) } return STAY end")
	if d := vm.Route(row); d.Fault != "" {
		t.Fatal(d.Fault)
	}
	for i, k := range []int{0, 0, 3, 3} {
		got := vm.l.GetField(vm.l.G.Global, "draws")
		if v := vm.l.GetTable(got, lnum(i+1)).String(); v != lnumf(key.Float64(k)).String() {
			t.Errorf("draw %d is %s, want %v", k, v, key.Float64(k))
		}
	}
	// Without an environment there is a text and a load all the same.
	check(t, Env{}, sampleRow(), `assert(r.text == "<5>" and r.ready == 0 and r.load("small").age_ms == math.huge)`)
}

// r is read-only but for state, protected, and over when the call is.
func TestRowIsGuarded(t *testing.T) {
	for body, want := range map[string]string{
		"local q = r\nq.entropy = 1":            "r.entropy cannot be assigned",
		"local q = r\nq.entropi = 1":            `r has no field "entropi"; did you mean "entropy"?`,
		"local q = r\nq[1] = 1":                 "r has no field",
		"setmetatable(r, {})":                   "table expected, got userdata",
		"getmetatable(r).__index = nil":         "attempt to index a non-table object(boolean)",
		"local m = getmetatable(STAY)\nm.x = 1": "attempt to index a non-table object(nil)",
	} {
		if got := faultOf(t, Env{}, body); !strings.Contains(got, want) {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
	vm := mustVM(t, Env{}, "local old\nfunction route(r)\nif old then return old.step and STAY end\nold = r.random\nreturn STAY\nend")
	if d := vm.Route(sampleRow()); d.Fault != "" {
		t.Fatal(d.Fault)
	}
	vm = mustVM(t, Env{}, "local old\nfunction route(r) old = r return STAY end\nfunction receive(m, q) return old.entropy and COMMIT end")
	vm.Route(sampleRow())
	if v := vm.Receive(&event.PeerReq{Status: event.Alive}, nil); !strings.Contains(v.Fault, "this r is over") {
		t.Errorf("%+v", v)
	}
}

func TestSend(t *testing.T) {
	vm := mustVM(t, Env{}, `
function route(r) r.state.n = 1 return to("large") end
function send(req, dest)
  if req.token == 1 then return nil end
  if req.token == 2 then return { budget = 0 } end
  if req.token == 3 then return { budget = 1.5 } end
  if req.token == 4 then return { fields = 7 } end
  if req.token == 6 then return { buget = 1 } end
  if req.token == 7 then return "x" end
  if req.token == 8 then return { fields = { f = to } } end
  if req.token == 9 then req.state = {} end
  if req.token == 10 then return req['no' .. 'pe'] end
  return { budget = 3, fields = { h = req.entropy, dest = dest, n = req.state.n } }
end`[1:])
	row := sampleRow()
	d := vm.Route(row)
	budget, fields, fault := vm.Send(row, d.Dest) // sees what the decision left, though row.State is older
	if budget != 3 || FormatData(fields) != `{dest="large", h=0.75, n=1}` || fault != "" {
		t.Errorf("%d %s %s", budget, FormatData(fields), fault)
	}
	for token, want := range map[event.Token]string{
		1: "", 2: "r.lua:2: send returned the budget 0; it is a whole number of tokens from 1", 3: "budget 1.5", 4: "send returned 7 as fields",
		6: `unknown field "buget"; did you mean "budget"?`, 7: `send returned "x"; legal are nil and a table`,
		8: "r.lua:2: fields.f is a function", 10: `r has no field "nope"; fields: model, token, text`, 9: "r.lua:10: r.state can be assigned only in route",
	} {
		row.Output.Token = token
		budget, fields, fault := vm.Send(row, 1)
		if budget != 0 || fields != nil || want == "" && fault != "" || !strings.Contains(fault, want) {
			t.Errorf("token %d: %d %s %q, want %q", token, budget, FormatData(fields), fault, want)
		}
	}
	// After a fault of route, send sees the state that stays.
	faulty := mustVM(t, Env{Self: 1}, "function route(r) r.state.f = to return STAY end\nfunction send(req) return { fields = { n = req.state.n } } end")
	row = sampleRow()
	row.State = vm.Route(sampleRow()).State
	if d := faulty.Route(row); d.Fault == "" || FormatData(d.State) != "{n=1}" {
		t.Errorf("%+v", d)
	}
	if _, f, fault := faulty.Send(row, 0); FormatData(f) != "{n=1}" || fault != "" {
		t.Errorf("%s %s", FormatData(f), fault)
	}
	// What send gave is what the receiver's route reads.
	row = sampleRow()
	row.Fields = fields
	check(t, Env{Self: 1}, row, `assert(r.fields.h == 0.75 and r.fields.dest == "large" and r.fields.n == 1)`)
	if b, f, fault := mustVM(t, Env{}, routeOf("return 1")).Send(row, 1); b != 0 || f != nil || fault != "" {
		t.Error("no send is not nothing")
	}
}

func TestReceive(t *testing.T) {
	vm := mustVM(t, Env{Self: 1, Vocab: 50}, `
function route(r) return STAY end
function receive(msg, req)
  assert(msg.from == "small" and msg.status == "alive" and msg.loc == 2 and msg.count == 3 and #msg.suffix == 3)
  assert(msg.token(1) == 7 and msg.suffix[3] == 9 and msg.token(4) == nil and msg.token(0) == nil)
  assert(req.model == "large" and req.held == 2 and req.token(0) == 1 and req.token(1) == 2 and req.token(2) == nil and req.prompt_len == 3)
  assert(msg.state.n == 5 and next(msg.fields) == nil)
  if msg.budget == 1 then return COMMIT end
  if msg.budget == 2 then return APPEND({ 4, 5 }) end
  if msg.budget == 3 then return APPEND{} end
  if msg.budget == 4 then return APPEND({ 4, 50 }) end
  if msg.budget == 5 then return 1 end
  if msg.budget == 6 then return STAY end
  if msg.budget == 7 then while true do end end
  if msg.budget == 8 then return APPEND({ 7, 8, 9, 10 }) end
  if msg.budget == 9 then return APPEND(msg.suffix) end
  if msg.budget == 10 then return APPEND({ 7, 8, 10 }) end
end`[1:])
	probe := mustVM(t, Env{}, routeOf("r.state.n = 5 return STAY"))
	state := probe.Route(sampleRow()).State
	msg := &event.PeerReq{
		From: 0, Status: event.Alive, Loc: 2, Suffix: []event.Token{7, 8, 9}, State: state, Limits: event.Limits{PromptLen: 3},
	}
	for _, c := range []struct {
		budget int
		kind   event.VerdictKind
		ids    int
		fault  string
	}{
		{0, event.Commit, 0, ""},
		{1, event.Commit, 0, ""},
		{2, event.Commit, 0, "r.lua:2: receive returned APPEND of 2 ids that do not begin with the 3 emitted from position 2 on; begin with the suffix"},
		{3, event.Commit, 0, "APPEND of 0 ids"},
		{4, event.Commit, 0, "r.lua:10: APPEND: 50 at 2 is no token id; ids lie between 0 and 49"},
		{5, event.Commit, 0, "r.lua:2: receive returned 1; legal are COMMIT (the default) and APPEND{ids}"},
		{6, event.Commit, 0, "receive returned STAY"},
		{7, event.Commit, 0, "r.lua:13: more than 100000 VM instructions"},
		{8, event.Append, 4, ""},
		{9, event.Append, 3, ""},
		{10, event.Commit, 0, "do not begin with"},
	} {
		msg.Budget = c.budget
		v := vm.Receive(msg, []event.Token{1, 2})
		if v.Kind != c.kind || len(v.Ids) != c.ids || !strings.Contains(v.Fault, c.fault) || c.fault == "" && v.Fault != "" {
			t.Errorf("budget %d: %+v", c.budget, v)
		}
	}
	// What this subserver holds beyond the suffix has been emitted as well.
	all := mustVM(t, Env{}, "function route(r) return STAY end\nfunction receive(msg, req) return APPEND(msg.state.ids) end")
	for _, c := range []struct {
		loc          int
		suffix, held []event.Token
		ids, fault   string
	}{
		{2, []event.Token{7}, []event.Token{1, 2}, "7", ""},
		{2, []event.Token{7}, []event.Token{1, 2, 7, 8}, "7, 8, 9", ""},
		{2, []event.Token{7}, []event.Token{1, 2, 7, 8}, "7, 9", "APPEND of 2 ids that do not begin with the 2 emitted"},
		{2, []event.Token{7}, []event.Token{1, 2, 6, 8}, "7, 9", ""}, // a tail that the suffix replaces
		{2, nil, []event.Token{1, 2}, "3", ""},
		{2, nil, []event.Token{1, 2, 4}, "3", "do not begin with"},
		{5, []event.Token{7}, []event.Token{1, 2}, "3", ""}, // a gap: nothing is taken over
	} {
		probe := mustVM(t, Env{}, routeOf("r.state.ids = { "+c.ids+" } return STAY"))
		v := all.Receive(&event.PeerReq{
			Status: event.Alive, Loc: c.loc, Suffix: c.suffix, State: probe.Route(sampleRow()).State,
		}, c.held)
		if !strings.Contains(v.Fault, c.fault) || c.fault == "" && (v.Fault != "" || v.Kind != event.Append) {
			t.Errorf("%+v: %+v", c, v)
		}
	}
	// Lists are made once a call, so a loop over them is cheap.
	loop := mustVM(t, Env{}, "function route(r) return STAY end\nfunction receive(msg, req)\nlocal sum = 0\nfor i = 1, #msg.suffix do sum = sum + msg.suffix[i] + #msg.fields + #msg.state end\nassert(sum == 3000)\nreturn COMMIT end")
	if v := loop.Receive(&event.PeerReq{Status: event.New, Suffix: slices.Repeat([]event.Token{1}, 3000)}, nil); v.Fault != "" {
		t.Error(v.Fault)
	}
	for _, s := range []event.Status{event.Finished, event.Abort, event.Error, event.Resend} {
		if v := vm.Receive(&event.PeerReq{Status: s}, nil); v.Fault != "" || v.Kind != event.Commit {
			t.Errorf("%v was shown to receive: %+v", s, v)
		}
	}
}

// A swap starts module variables afresh; a program that cannot be loaded leaves
// the old one.
func TestSwap(t *testing.T) {
	a := mustCompile(t, "local n = 0\nfunction route(r) n = n + 1 return n > 1 and to('large') or STAY end")
	b := mustCompile(t, routeOf("return to('large')"))
	c := mustCompile(t, "local role = to('middle')\n"+routeOf("return role"))
	vm, err := NewVM(Env{Peers: 2}, a)
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	want := func(what string, dest event.Peer) {
		t.Helper()
		if d := vm.Route(sampleRow()); d.Dest != dest || d.Fault != "" {
			t.Errorf("%s: %+v", what, d)
		}
	}
	want("first", 0)
	want("second", 1)
	if err := vm.Swap(c); err == nil || !strings.Contains(err.Error(), `no role "middle"`) {
		t.Errorf("%v", err)
	}
	if vm.Program() != a {
		t.Error("the broken program took over")
	}
	want("after a failed swap", 1)
	if err := vm.Swap(b); err != nil || vm.Program() != b {
		t.Fatal(err)
	}
	want("b", 1)
	if err := vm.Swap(a); err != nil {
		t.Fatal(err)
	}
	want("a again", 0)
}

// A router without any state of its own decides without allocating more than
// the numbers it reads.
func TestRouteAllocations(t *testing.T) {
	vm := mustVM(t, Env{}, routeOf("if r.entropy >= 0.5 then return to('large'), DROP end return STAY"))
	row := sampleRow()
	if n := testing.AllocsPerRun(200, func() { vm.Route(row) }); n > 4 {
		t.Errorf("%v allocations a decision", n)
	}
	if math.IsNaN(float64(row.Output.Entropy)) {
		t.Error("the row was changed")
	}
}
