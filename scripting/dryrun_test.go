package scripting

import (
	"errors"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
)

func TestDryRun(t *testing.T) {
	const toOther = "return to(roles[r.model == 'small' and 2 or 1])\nend\n"
	env := Env{Peers: 2}
	for body, want := range map[string]string{
		"return STAY": "",
		"if r.model == 'large' then return nil end return STAY":           "", // no row gets there
		"if r.model == 'large' then return nil end return to('large')":    "r.lua:2: route returned nil; legal are STAY, HOME, to(role) and an index from 0 to 1; roles: small, large (at large)",
		"if r.first then return to('lrage') end return STAY":              `no role "lrage"`,
		"r.state.f = to return STAY":                                      "r.state.f is a function",
		toOther + "function send(r, d) return { budget = -1 }":            "budget -1",
		toOther + "function receive(m, q) return m.loc":                   "receive returned",
		toOther + "function send(r, d) return { fields = { h = r.pos } }": "",
		"if r.model == 'large' then return r.fields.h > 1 and HOME end\n" + toOther + "function send(r, d) return { fields = { h = r.pos } }": "",
		"if r.model == 'large' then assert(r.state.n == 1 and r.pos > 15) return HOME end\nr.state.n = 1 return to('large'), DROP":            "",
	} {
		p := mustCompile(t, routeOf(body))
		err := DryRun(p, env, nil)
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.File != "r.lua") {
			t.Errorf("%#v names no file", err)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	// Recorded rows, with the state of another router in them.
	row := *sampleRow()
	row.State = mustVM(t, Env{}, routeOf("r.state.n = 'text' return STAY")).Route(sampleRow()).State
	p := mustCompile(t, routeOf("r.state.n = (r.state.n or 0) + 1 return STAY"))
	if err := DryRun(p, env, []Row{row}); err == nil {
		t.Error("a state that the new router cannot read was not found")
	}
	if err := DryRun(mustCompile(t, "local m = to('middle')\n"+routeOf("return m")), env, nil); err == nil {
		t.Error("a missing role was not found")
	}
}

// A dry run takes what works in a session: messages as they come, fields of the
// new router's own send, ids appended on arrival.
func TestDryRunIsLikeASession(t *testing.T) {
	const swing = "function route(r) if r.model == 'large' then return HOME end return to('large') end\n"
	const dropping = "function route(r) if r.model == 'large' then return HOME, DROP end return to('large'), DROP end\n"
	for text, want := range map[string]string{
		swing + `function receive(msg, req)
  assert(msg.status == "new" and msg.loc == 0 and req.held == 0 and msg.count >= 17
    or msg.status == "alive" and msg.loc == req.held and req.token(msg.loc - 1) + msg.token(1) >= 0)
end`: "",
		swing + "function receive(msg, req) return APPEND(msg.suffix) end":                               "",
		swing + "function receive(msg, req) return APPEND({ 3 }) end":                                    "begin with the suffix",
		dropping + "function receive(msg, req) if msg.from == 'large' then return APPEND({ 3 }) end end": "",
		swing + "function receive(msg, req) return msg.suffix[1] + msg.suffix[2] > 0 and COMMIT end":     "between number and nil", // alive: one token
	} {
		err := DryRun(mustCompile(t, text), Env{Peers: 2, Vocab: 50}, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}

	// Rows at the large model under a router that sent nothing along.
	p := mustCompile(t, `
function route(r)
  if r.model == "large" then return r.fields.h > 1 and STAY or HOME end
  return to("large"), DROP
end
function send(req, dest) return { fields = { h = req.entropy } } end`[1:])
	if err := DryRun(p, Env{Self: 1, Peers: 2}, []Row{*sampleRow()}); err != nil {
		t.Errorf("fields of its own: %v", err)
	}
	p = mustCompile(t, "function route(r) return r.fields.h > 1 and STAY or HOME end")
	if err := DryRun(p, Env{Self: 1, Peers: 2}, []Row{*sampleRow()}); err == nil {
		t.Error("fields that nobody sends were not missed")
	}

	// The state of a running request is named, since it is the cause.
	row := *sampleRow()
	row.State = mustVM(t, Env{}, routeOf("r.state.n = 'text' return STAY")).Route(sampleRow()).State
	p = mustCompile(t, routeOf("r.state.n = (r.state.n or 0) + 1 return STAY"))
	err := DryRun(p, Env{Peers: 2}, []Row{row})
	if err == nil || !strings.Contains(err.Error(), `r.lua:2: `) || !strings.Contains(err.Error(), `(at small); r.state of a running request is {n="text"}, left by the router before`) {
		t.Errorf("%v", err)
	}
	// Recorded rows do not stand for the others: here all were first tokens.
	first := *sampleRow()
	first.Pos, first.Step = first.PromptLen, 0
	p = mustCompile(t, routeOf("if not r.first then return 'x' end return STAY"))
	if err := DryRun(p, Env{Peers: 2}, []Row{first}); err == nil || !strings.Contains(err.Error(), `the text "x"`) {
		t.Errorf("%v", err)
	}
	// The second step at the peer is run as well.
	p = mustCompile(t, "function route(r) if r.model == 'large' then return r.is_prefill and STAY or 9 end return to('large'), DROP end")
	if err := DryRun(p, Env{Peers: 2}, nil); err == nil || !strings.Contains(err.Error(), "returned 9") || !strings.Contains(err.Error(), "(at large)") {
		t.Errorf("%v", err)
	}
	if err := DryRun(p, Env{Self: event.Front, Peers: 1}, nil); err == nil {
		t.Error("a role that is absent was not missed")
	}
}
