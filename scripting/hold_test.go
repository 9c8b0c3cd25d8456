package scripting

import (
	"strings"
	"testing"

	"tokenrouter/runtime/event"
)

const looksBack = `
hold(4)
function route(r)
  if r.model ~= "small" then return HOME end
  if r.last or r.pos - r.emitted == 4 then return to("large"), TRUNCATE(math.max(r.emitted, r.pos - 3)) end
  return STAY
end
`

func TestHold(t *testing.T) {
	if p := mustCompile(t, looksBack); p.Hold != 4 {
		t.Errorf("holds %d back", p.Hold)
	}
	if p := mustCompile(t, routeOf("return STAY")); p.Hold != 0 {
		t.Errorf("a router without hold holds %d back", p.Hold)
	}
	vm := mustVM(t, Env{}, looksBack)
	row := sampleRow()
	for _, tc := range []struct {
		pos, emitted int
		last         bool
		want         Decision
	}{
		{12, 10, false, Decision{}},
		{14, 10, false, Decision{Dest: 1, Action: event.Truncate, At: 11}},
		{12, 11, true, Decision{Dest: 1, Action: event.Truncate, At: 11}},
		{12, 12, true, Decision{Dest: 1, Action: event.Truncate, At: 12}},
	} {
		row.Pos, row.Emitted, row.Last = tc.pos, tc.emitted, tc.last
		if d := vm.Route(row); d.Fault != "" || d.Dest != tc.want.Dest || d.Action != tc.want.Action || d.At != tc.want.At {
			t.Errorf("%+v: %+v", tc, d)
		}
	}
}

// What cannot be held or taken back is an error before the file runs, where that
// can be told.
func TestHoldErrors(t *testing.T) {
	for text, want := range map[string]string{
		routeOf("return 1, TRUNCATE(r.pos)"):                                      "r.lua:2: TRUNCATE takes back tokens that were written, so the router must hold some: write hold(n) at the top of the file",
		"local cut = TRUNCATE\n" + routeOf("return 1, cut(3)"):                    "r.lua:1: TRUNCATE takes back",
		routeOf("hold(3) return STAY"):                                            "r.lua:2: hold() declares how many tokens are held back, so it belongs at the top of the file",
		"local function f() hold(3) end\nf()\n" + routeOf("return STAY"):          "r.lua:1: hold() declares",
		"hold(3)\nhold(3)\n" + routeOf("return STAY"):                             "r.lua:2: hold() is declared twice",
		"hold(0)\n" + routeOf("return STAY"):                                      "r.lua:1: hold(0): give how many tokens are held back, a whole number from 1 to 64",
		"hold(65)\n" + routeOf("return STAY"):                                     "hold(65)",
		"hold(2.5)\n" + routeOf("return STAY"):                                    "hold(2.5)",
		"hold('3')\n" + routeOf("return STAY"):                                    `hold("3")`,
		"hold()\n" + routeOf("return STAY"):                                       "hold(nil)",
		"hold = 3\n" + routeOf("return STAY"):                                     "hold belongs to the interface of routers",
		"hold(3)\n" + routeOf("TRUNCATE = 1 return STAY"):                         "TRUNCATE belongs to the interface of routers",
		"hold(3)\n" + routeOf("r.emitted = 4 return STAY"):                        "r.emitted cannot be assigned",
		"local h = _G.hold\n" + routeOf("h(3) return STAY") + "\nlocal x = h(70)": "hold(70)",
	} {
		if p, err := Compile("r.lua", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", text, p, err, want)
		}
	}
	// A name of one's own is no declaration.
	if p := mustCompile(t, "local hold = 5\n"+routeOf("local hold = hold + 1 return hold == 6 and STAY or 9")); p.Hold != 0 {
		t.Errorf("holds %d back", p.Hold)
	}
}

// The program says how much is held back, for all subservers and whatever the
// cluster: a number that comes out as another one when the file is loaded is refused.
func TestHoldIsOneNumber(t *testing.T) {
	byRoles := mustCompile(t, "hold(#roles)\n"+routeOf("return STAY"))
	byKnob := mustCompile(t, `local k = param("k", { default = 3, min = 1, max = 9 })`+"\nhold(k())\n"+routeOf("return STAY"))
	for _, tc := range []struct {
		p     *Program
		peers int
		k     float64
		want  string
	}{
		{byRoles, 3, 0, ""},
		{byRoles, 2, 0, "r.lua: hold(3) became hold(2) here"},
		{byKnob, 2, 3, ""},
		{byKnob, 2, 6, "r.lua: hold(3) became hold(6) here"},
	} {
		env := Env{Peers: tc.peers, Knobs: NewKnobs()}
		env.Knobs.Declare(tc.p)
		if tc.k > 0 {
			if err := env.Knobs.Set("k", tc.k, "flag"); err != nil {
				t.Fatal(err)
			}
		}
		vm, err := NewVM(env, tc.p)
		switch {
		case err == nil:
			vm.Close()
			if tc.want != "" {
				t.Errorf("%+v is loaded", tc)
			}
		case tc.want == "" || !strings.HasPrefix(err.Error(), tc.want):
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

func TestTruncateFaults(t *testing.T) {
	for ret, want := range map[string]string{
		`to("large"), TRUNCATE(9)`:           "r.lua:3: route returned TRUNCATE(9), but what lies before position 10 has been emitted; give r.emitted at least, or hold more back",
		`to("large"), TRUNCATE(13)`:          "r.lua:3: route returned TRUNCATE(13) at position 12; it takes back what was written before, so give r.pos at most",
		`STAY, TRUNCATE(11)`:                 "r.lua:3: route returned TRUNCATE(11) with the own subserver as destination; TRUNCATE needs another one",
		`to("large"), TRUNCATE`:              "r.lua:3: route returned the action a function; legal are KEEP, DROP and TRUNCATE(pos)",
		`to("large"), TRUNCATE()`:            "r.lua:3: TRUNCATE(nil): give a position, as r.pos counts them",
		`to("large"), TRUNCATE(11.5)`:        "TRUNCATE(11.5)",
		`to("large"), TRUNCATE(-1)`:          "TRUNCATE(-1)",
		`to("large"), TRUNCATE(0/0)`:         "TRUNCATE(NaN)",
		`to("large"), TRUNCATE("11")`:        `TRUNCATE("11")`,
		`TRUNCATE(11)`:                       "route returned TRUNCATE(11); legal are STAY",
		`TRUNCATE(11), to("large")`:          "route returned TRUNCATE(11); legal are STAY",
		`to("large"), COMMIT`:                "route returned the action COMMIT",
		`to("large"), tostring(TRUNCATE(9))`: `the action "TRUNCATE(9)"`,
	} {
		vm := mustVM(t, Env{}, "hold(2) function route(r)\nlocal x = r.pos\nreturn "+ret+"\nend")
		row := sampleRow()
		row.Emitted = 10
		if d := vm.Route(row); !strings.Contains(d.Fault, want) || d.Dest != event.Front || d.Action != event.Keep || d.At != 0 {
			t.Errorf("return %s\n got %+v\nwant %s", ret, d, want)
		}
	}
	// Through _G the walk cannot see it, and the call finds nothing held back.
	vm := mustVM(t, Env{}, routeOf("return 1, _G.TRUNCATE(11)"))
	if d := vm.Route(sampleRow()); !strings.Contains(d.Fault, "nothing is held back; write hold(n)") {
		t.Errorf("%+v", d)
	}
	if d := vm.Route(&Row{Pos: 11, PromptLen: 10, Output: &event.Output{}}); d.Fault != "" || d.Action != event.Truncate || d.At != 11 {
		t.Errorf("to the own position it is a DROP: %+v", d)
	}
}

// A trial follows a draft to its end: a router that holds back less than it takes
// back is refused before it decides anything.
func TestDryRunTakesBack(t *testing.T) {
	draft := func(hold string) string {
		return hold + `
function route(r)
  if r.model ~= "small" then return HOME end
  local s = r.state
  s.n = (s.n or 0) + 1
  if not s.over and r.entropy > 1 then s.over = r.pos end
  if s.n < 6 and not r.last then return STAY end
  local over = s.over
  r.state = nil
  if over then return to("large"), TRUNCATE(over) end
  return STAY
end
`
	}
	env := Env{Peers: 2}
	if err := DryRun(mustCompile(t, draft("hold(5)")), env, nil); err != nil {
		t.Error(err)
	}
	if err := DryRun(mustCompile(t, draft("hold(4)")), env, nil); err == nil || !strings.Contains(err.Error(), "has been emitted; give r.emitted at least, or hold more back (at small)") {
		t.Errorf("%v", err)
	}
	// Rows that another router has decided, which held nothing back.
	row := *sampleRow()
	row.Emitted = row.Pos
	if err := DryRun(mustCompile(t, draft("hold(5)")), env, []Row{row}); err != nil {
		t.Error(err)
	}
	// The end of an answer is tried, with and without a hold.
	for _, text := range []string{routeOf("return r.last and 9 or STAY"), "hold(2)\n" + routeOf("return r.last and 9 or STAY")} {
		if err := DryRun(mustCompile(t, text), env, nil); err == nil || !strings.Contains(err.Error(), "returned 9") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// receive sees the text as the message tells it: what was taken back is not held
// any more.
func TestReceiveBehindACut(t *testing.T) {
	vm := mustVM(t, Env{Self: 1, Vocab: 50}, routeOf("return STAY")+`
function receive(msg, req)
  if req.held ~= 4 or req.token(4) then error("holds " .. req.held) end
  return APPEND({ msg.token(1), 9 })
end`)
	held := []event.Token{1, 2, 3, 4, 5, 6}
	m := &event.PeerReq{Status: event.Alive, Loc: 3, Suffix: []event.Token{4}, Cut: true}
	if v := vm.Receive(m, held); v.Fault != "" || len(v.Ids) != 2 {
		t.Errorf("%+v", v)
	}
}
