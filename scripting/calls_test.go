package scripting

import (
	"strings"
	"testing"

	"tokenrouter/runtime/event"
)

// Everything that is wrong is told at once, and Compile says the first of it.
func TestCompileAll(t *testing.T) {
	const text = `local tau = param("t", { default = 0.5 })
function route(r)
  if r.entropi > tua() then return HMOE end
  r.pos = 3
  return os.time()
end`
	p, errs := CompileAll("dir/r.lua", text)
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{
		`r.lua:3: r has no field "entropi"; did you mean "entropy"?`,
		`r.lua:4: r.pos cannot be assigned; only r.state can`,
		`r.lua:3: there is no global "tua"; did you mean "tau"?`,
		`r.lua:3: there is no global "HMOE"; did you mean "HOME"?`,
		`r.lua:5: os is absent: a router cannot reach the machine`,
	}
	if p != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, got\n%s", p, strings.Join(got, "\n"))
	}
	if _, err := Compile("r.lua", text); err == nil || err.Error() != want[0] {
		t.Error(err)
	}
	many := "function route(r)\n" + strings.Repeat("x = y1\n", 300) + "end"
	if _, errs := CompileAll("r.lua", many); len(errs) != maxErrors {
		t.Errorf("%d errors", len(errs))
	}
	if p, errs := CompileAll("r.lua", "function route(r) return STAY end"); p == nil || errs != nil {
		t.Error(p, errs)
	}
}

// The calls of a dry run can be made again, and answer the same: the router marks
// by a fault what it was given.
func TestCallsAreRepeated(t *testing.T) {
	p := mustCompile(t, `
		function route(r)
			r.state.n = (r.state.n or 0) + 1
			if r.model == "large" then return HOME end
			return to("large"), DROP
		end
		function send(req, dest)
			if req.model == "small" then return { fields = { at = req.pos, n = req.state.n, dest = dest } } end
		end
		function receive(msg, req)
			if req.model == "large" then assert(msg.fields.dest == "large" and msg.state.n % 2 == 1 and req.prompt_len == 16) end
		end`)
	calls, err := Calls(p, Env{Peers: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	vms := map[event.Peer]*VM{}
	for at := range event.Peer(2) {
		vm, err := NewVM(Env{Self: at, Peers: 2}, p)
		if err != nil {
			t.Fatal(err)
		}
		defer vm.Close()
		vms[at] = vm
	}
	for i := range calls {
		c := &calls[i]
		count[c.Hook+" at "+event.Role(c.At, 2)]++
		for range 2 {
			if fault := vms[c.At].Repeat(c); fault != "" {
				t.Fatalf("%s at %d: %s", c.Hook, c.At, fault)
			}
			if n := vms[c.At].Spent(); n < 1 || n > 100 {
				t.Errorf("%s took %d instructions", c.Hook, n)
			}
		}
		if c.Hook == "send" && string(c.State) == string(c.Row.State) {
			t.Errorf("send has the state before route: %s", FormatData(c.State))
		}
	}
	// Each of the 20 built-in rows: route and send there, and back; with the
	// suffix alone, and as if nothing were held.
	for what, want := range map[string]int{"route at small": 20, "send at small": 20, "receive at large": 20, "route at large": 20, "send at large": 20} {
		if count[what] < want {
			t.Errorf("%s: %d calls", what, count[what])
		}
	}
	if _, err := Calls(mustCompile(t, `function route(r) error("no") end`), Env{Peers: 2}, nil); err == nil {
		t.Error("a fault is not told")
	}
}
