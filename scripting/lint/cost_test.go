package lint_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
	"tokenrouter/scripting/lint"
)

const counting = `
function route(r)
  if r.model == "large" then return HOME end
  for i = 1, 1000 do end
  return to("large"), DROP
end
function send(req, dest)
  return { fields = { pos = req.pos } }
end`

// A cost is counted for every function at every model that it is called at, and a
// loop of a thousand turns takes as many instructions.
func TestMeasure(t *testing.T) {
	p, found := lint.Check("r.lua", counting, lint.Options{})
	if p == nil {
		t.Fatal(found)
	}
	costs, err := lint.Measure(p, scripting.Env{Peers: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]lint.Cost{}
	for _, c := range costs {
		got[c.Hook+" "+c.Model] = c
		if c.Ns <= 0 || c.Calls < 20 {
			t.Errorf("%+v", c)
		}
	}
	if len(got) != 4 {
		t.Fatalf("%v", got)
	}
	small, large, send := got["route small"], got["route large"], got["send small"]
	if small.Instructions < 1000 || small.Instructions > 1100 || large.Instructions > 20 {
		t.Errorf("route takes %v and %v instructions", small.Instructions, large.Instructions)
	}
	if small.Ns < large.Ns {
		t.Errorf("a thousand turns take %v ns, none %v", small.Ns, large.Ns)
	}
	if send.Allocs < 1 || send.Bytes < 16 {
		t.Errorf("a table is made of %v allocations, %v bytes", send.Allocs, send.Bytes)
	}
	again, err := lint.Measure(p, scripting.Env{Peers: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		if again[i].Instructions != costs[i].Instructions || again[i].Calls != costs[i].Calls {
			t.Errorf("%+v and %+v", costs[i], again[i])
		}
	}
}

// Of recorded rows the calls about them count, not those of built-in ones.
func TestMeasureRows(t *testing.T) {
	p, err := scripting.Compile("r.lua", counting)
	if err != nil {
		t.Fatal(err)
	}
	rows := []scripting.Row{
		{Req: 1, Output: &event.Output{Entropy: 1}, Pos: 30, PromptLen: 20, Step: 10},
		{Req: 2, Output: &event.Output{Entropy: 2}, Pos: 31, PromptLen: 20, Step: 11},
	}
	costs, err := lint.Measure(p, scripting.Env{Peers: 2}, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costs {
		if c.Model != "small" || c.Calls != 2 {
			t.Errorf("%+v", c)
		}
	}
	if len(costs) != 2 {
		t.Errorf("%+v", costs)
	}
	bad, err := scripting.Compile("r.lua", "function route(r) return r.state.x.y end")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lint.Measure(bad, scripting.Env{Peers: 2}, nil); err == nil {
		t.Error("a fault is no error")
	}
}

// Whatever the text, a check ends, its lines lie in the text, and it says the same
// again.
func FuzzCheck(f *testing.F) {
	f.Add(counting)
	f.Add("local a = param('a', {default=1}) function route(r) repeat local x = a until x goto out ::out:: return a, DROP end")
	f.Add("function route(...) return ... end function send() return { [1] = 2, fields = 3, budget = -1 } end")
	f.Add("route = function(r) for k in next, r.state do r.state[k] = nil end return to(r.peers - 1) end")
	f.Add("local t = {} function t.f(r) t.x = r end function t:g() self.y = 1 end function route(r) t:g() return HOME end")
	f.Add("function route(r) do return end end receive = function(m) return m.status == 'x' end")
	f.Fuzz(func(t *testing.T, text string) {
		lines := 1
		for _, c := range text {
			if c == '\n' {
				lines++
			}
		}
		_, found := lint.Check("r.lua", text, lint.Options{Models: []int{2}})
		_, again := lint.Check("r.lua", text, lint.Options{Models: []int{2}})
		if len(found) != len(again) {
			t.Fatalf("%d findings, then %d", len(found), len(again))
		}
		for i := range found {
			if found[i] != again[i] {
				t.Fatalf("%v, then %v", &found[i], &again[i])
			}
			if found[i].Line < 0 || found[i].Line > lines {
				t.Fatalf("line %d of %d: %s", found[i].Line, lines, &found[i])
			}
		}
	})
}
