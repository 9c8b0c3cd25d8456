package scripting

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
)

func mustCompile(t testing.TB, text string) *Program {
	t.Helper()
	p, err := Compile("r.lua", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func mustVM(t testing.TB, env Env, text string) *VM {
	t.Helper()
	p := mustCompile(t, text)
	if env.Peers == 0 {
		env.Peers = 2
	}
	if env.Knobs == nil {
		env.Knobs = NewKnobs()
		env.Knobs.Declare(p)
	}
	vm, err := NewVM(env, p)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Cleanup(vm.Close)
	return vm
}

// routeOf wraps statements into a router.
func routeOf(body string) string { return "function route(r)\n" + body + "\nend" }

func sampleRow() *Row {
	return &Row{
		Req: 7, Pos: 12, PromptLen: 10, Step: 2,
		Output: &event.Output{
			Token: 5, Entropy: 0.75, EntropyNorm: 0.125, Top1: 0.5, Top2: 0.25, LogSumExp: 3,
			TopK: []event.TokenProb{{Token: 5, Logprob: -0.5}, {Token: 9, Logprob: -1.5}, {Token: 2, Logprob: -4}},
		},
	}
}

// check runs statements as the body of route, which report by returning STAY
// or by error().
func check(t *testing.T, env Env, row *Row, body string) {
	t.Helper()
	vm := mustVM(t, env, routeOf(body+"\nreturn STAY"))
	if d := vm.Route(row); d.Fault != "" {
		t.Errorf("%s\n%s", d.Fault, body)
	}
}

// faultOf runs statements as the body of route and returns the fault.
func faultOf(t *testing.T, env Env, body string) string {
	t.Helper()
	vm := mustVM(t, env, routeOf(body))
	d := vm.Route(sampleRow())
	if d.Fault == "" {
		t.Errorf("no fault:\n%s", body)
		return ""
	}
	if d.Dest != event.Front || d.Action != event.Keep {
		t.Errorf("a fault at %d gave %d %s", env.Self, d.Dest, d.Action)
	}
	if strings.Contains(d.Fault, "\n") || len(d.Fault) > 400 {
		t.Errorf("fault is not one short line: %q", d.Fault)
	}
	return d.Fault
}

func lnum(i int) lua.LNumber      { return lua.LNumber(i) }
func lnumf(f float64) lua.LNumber { return lua.LNumber(f) }
