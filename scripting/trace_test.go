package scripting

import (
	"strings"
	"testing"
)

func TestTrace(t *testing.T) {
	vm := mustVM(t, Env{}, `
local function pick(r)
  return to("large"), DROP
end
function route(r)
  if r.entropy > 1 then
    return pick(r)
  elseif r.entropy > 0.5 then
    return STAY
  elseif r.entropy > 0.4 then
    return to("large")
  elseif r.entropy > 0.3 then
    error("no")
  elseif r.entropy > 0.2 then
    return 9
  end
  r.state.n = 1
end`[1:])
	for _, c := range []struct {
		entropy float32
		line    int
		src     string
	}{
		{2, 2, `return to("large"), DROP`},
		{0.75, 8, "return STAY"},
		{0.45, 10, `return to("large")`},
		{0.35, 12, `error("no")`},
		{0.25, 14, "return 9"},
		{0.1, 17, "end"},
	} {
		row := sampleRow()
		row.Output.Entropy = c.entropy
		line, src, d := Trace(vm.env, vm.p, row)
		if line != c.line || src != c.src {
			t.Errorf("at %v: line %d %q, want %d %q", c.entropy, line, src, c.line, c.src)
		}
		if again := vm.Route(row); again.Dest != d.Dest || again.Action != d.Action || again.Fault != d.Fault {
			t.Errorf("trace says %+v, route %+v", d, again)
		}
	}
}

// A router whose errors all read differently is traced for a bounded number of
// them; the line is then that of route.
func TestTracesAreBounded(t *testing.T) {
	vm := mustVM(t, Env{}, "top = 0\nfunction route(r)\n  return 'x' .. r.pos\nend")
	for i := range maxWrong + 10 {
		row := sampleRow()
		row.Pos = i
		want := "r.lua:3: "
		if i >= maxWrong {
			want = "r.lua:2: "
		}
		if d := vm.Route(row); !strings.HasPrefix(d.Fault, want) {
			t.Fatalf("%d: %s", i, d.Fault)
		}
	}
}
