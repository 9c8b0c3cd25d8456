package scripting

import (
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
	catalogue "tokenrouter/scripting/api"
)

// luaType is the type that a value of an entry has in Lua.
func luaType(e *catalogue.Entry) string {
	switch {
	case e.IsFunction():
		return "function"
	case e.Type == "integer" || e.Type == "number":
		return "number"
	case e.Type == "boolean":
		return "boolean"
	case e.Type == "string" || e.Type == "Role" || strings.HasPrefix(e.Type, `"`):
		return "string"
	case e.Type == "table" || strings.HasSuffix(e.Type, "[]"):
		return "table"
	}
	return "userdata"
}

// probe asserts in Lua that name has the fields that the catalogue says.
func probe(name string, entries []catalogue.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(`assert(type(` + name + e.Name + `) == "` + luaType(&e) + `", "` + e.Name + ` is a " .. type(` + name + e.Name + "))\n")
	}
	return b.String()
}

// Everything in the catalogue is there, with the type that the catalogue says; and
// of numbers the walker knows which they are.
func TestCatalogueIsTrue(t *testing.T) {
	env := Env{Peers: 2, Text: func(event.Token) string { return "x" }}
	mustVM(t, env, probe("", catalogue.Globals())+routeOf("return STAY"))
	check(t, env, sampleRow(), probe("r.", catalogue.Row()))
	vm := mustVM(t, env, routeOf("return STAY")+"\nfunction receive(msg, req)\n"+
		probe("msg.", catalogue.Message())+probe("req.", catalogue.Held())+"end")
	msg := event.PeerReq{ID: 1, From: 1, Status: event.Alive, Suffix: []event.Token{3}, Loc: 1, Limits: event.Limits{PromptLen: 1}}
	if v := vm.Receive(&msg, []event.Token{5}); v.Fault != "" {
		t.Error(v.Fault)
	}
	for _, e := range catalogue.Row() {
		if number := e.Type == "integer" || e.Type == "number"; number != slices.Contains(rowNumbers, e.Name) {
			t.Errorf("r.%s: %s in the catalogue, among rowNumbers %v", e.Name, e.Type, !number)
		}
	}
	for _, h := range catalogue.Hooks() {
		if !slices.Contains(hookNames, h.Name) || len(h.Params) != max(len(hooks[h.Name]), 1) {
			t.Errorf("%+v", h)
		}
	}
	for name, want := range map[string][]string{"Sent": sendKeys, "KnobOptions": paramKeys} {
		for _, c := range catalogue.Classes() {
			if got := catalogue.Names(c.Fields); c.Name == name && !slices.Equal(got, want) {
				t.Errorf("%s has %v, the code takes %v", name, got, want)
			}
		}
	}
}

// The annotations are Lua that can be read, without an annotation that is cut.
func TestAnnotationsAreLua(t *testing.T) {
	text := string(catalogue.Annotations())
	if _, err := Parse("tokenrouter.lua", text); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "](") || strings.HasPrefix(line, "---@") && strings.HasSuffix(strings.TrimSpace(line), ":") {
			t.Errorf("%q", line)
		}
	}
}

// What r.topk and r.load give is as the catalogue says, and nothing else.
func TestCatalogueOfTables(t *testing.T) {
	for name, expr := range map[string]string{"Candidate": `r.topk(1)[1]`, "Load": `r.load("large")`} {
		for _, c := range catalogue.Classes() {
			if c.Name == name {
				body := "local n, v = 0, " + expr + "\nfor _ in pairs(v) do n = n + 1 end\nassert(n == " + lua.LNumber(len(c.Fields)).String() + ", n)\n"
				check(t, Env{Peers: 2}, sampleRow(), body+probe("v.", c.Fields))
			}
		}
	}
}
