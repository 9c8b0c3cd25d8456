package scripting

import (
	"math"
	"strings"
	"sync"
	"testing"
)

func knobRouter(defaults string) string {
	return "local tau = param('tau', { default = " + defaults + ", min = 0, max = 4, help = 'nats' })\n" +
		"local rate = param('rate', { default = 0.5 })\n" +
		"function route(r) if r.entropy >= tau() then return to('large'), DROP end return STAY end"
}

func TestKnobs(t *testing.T) {
	k := NewKnobs()
	p := mustCompile(t, knobRouter("0.5"))
	changes := k.Declare(p)
	if len(changes) != 2 || changes[0].Knob != "tau" || changes[0].New != 0.5 || changes[0].Source != "file" || changes[0].Help != "nats" || changes[0].Hash != p.Hash {
		t.Fatalf("%+v", changes)
	}
	if changes := k.Declare(p); len(changes) != 0 {
		t.Errorf("nothing moved, and yet %+v", changes)
	}
	if err := k.Set("tau", 0.8, "slider"); err != nil {
		t.Fatal(err)
	}
	vm := mustVM(t, Env{Knobs: k}, p.Text)
	if d := vm.Route(sampleRow()); d.Dest != 0 {
		t.Errorf("0.75 nats went to %d at 0.8", d.Dest)
	}
	if err := k.Set("tau", 0.75, "flag"); err != nil {
		t.Fatal(err)
	}
	if d := vm.Route(sampleRow()); d.Dest != 1 {
		t.Errorf("0.75 nats went to %d at 0.75", d.Dest)
	}

	// A set value holds while the file's default stays, whatever else changes.
	p2 := mustCompile(t, knobRouter("0.5")+"\n-- more")
	if changes := k.Declare(p2); len(changes) != 0 {
		t.Errorf("%+v", changes)
	}
	if v, _ := k.Get("tau"); v != 0.75 {
		t.Errorf("tau is %v", v)
	}
	// The file's default changes: the file wins.
	p3 := mustCompile(t, knobRouter("1.5"))
	changes = k.Declare(p3)
	if len(changes) != 1 || changes[0].Old != 0.75 || changes[0].New != 1.5 || changes[0].Source != "file" {
		t.Errorf("%+v", changes)
	}
	if l := k.List(); len(l) != 2 || l[0].Value != 1.5 || l[0].Source != "file" || l[1].Name != "rate" {
		t.Errorf("%+v", l)
	}
	// A narrower range pulls a set value in.
	if err := k.Set("tau", 3, "slider"); err != nil {
		t.Fatal(err)
	}
	p4 := mustCompile(t, strings.Replace(p3.Text, "max = 4", "max = 2", 1))
	if changes := k.Declare(p4); len(changes) != 1 || changes[0].New != 2 {
		t.Errorf("%+v", changes)
	}
}

// A knob of another router is another knob, and a router that comes back finds
// its own value.
func TestKnobsOfOtherRouters(t *testing.T) {
	k := NewKnobs()
	a, err := Compile("a.lua", knobRouter("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Compile("b.lua", knobRouter("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	k.Declare(a)
	if err := k.Set("tau", 2, "flag"); err != nil {
		t.Fatal(err)
	}
	k.Declare(b)
	if v, _ := k.Get("tau"); v != 0.5 {
		t.Errorf("b has %v", v)
	}
	k.Declare(a)
	if v, _ := k.Get("tau"); v != 2 {
		t.Errorf("a has %v", v)
	}
}

func TestKnobErrors(t *testing.T) {
	k := NewKnobs()
	if err := k.Set("tau", 1, "flag"); err == nil || !strings.Contains(err.Error(), "no router is loaded") {
		t.Errorf("%v", err)
	}
	k.Declare(mustCompile(t, knobRouter("0.5")))
	nan := 0.0
	nan /= nan
	for _, c := range []struct {
		name string
		v    float64
		want string
	}{
		{"tua", 1, `r.lua has no knob "tua"; did you mean "tau"? knobs: tau, rate`},
		{"zzz", 1, `r.lua has no knob "zzz"; knobs: tau, rate`},
		{"tau", 5, `knob "tau" cannot be 5: it ranges from 0 to 4`},
		{"tau", -0.1, `knob "tau" cannot be -0.1: it ranges from 0 to 4`},
		{"tau", nan, `knob "tau" cannot be NaN: it ranges from 0 to 4`},
	} {
		if err := k.Set(c.name, c.v, "flag"); err == nil || err.Error() != c.want {
			t.Errorf("Set(%s, %v): %v, want %s", c.name, c.v, err, c.want)
		}
	}
	k.Declare(mustCompile(t, routeOf("return STAY")))
	if err := k.Set("tau", 1, "flag"); err == nil || !strings.Contains(err.Error(), "declares none") {
		t.Errorf("%v", err)
	}
}

func TestParamErrors(t *testing.T) {
	for call, want := range map[string]string{
		"param('x')":                                                            `"x" needs a table`,
		"param('x', {})":                                                        `"x" has no default`,
		"param('x', { default = 2 })":                                           "the default 2 of \"x\" lies outside 0..1",
		"param('x', { defualt = 2 })":                                           `unknown option "defualt"; did you mean "default"?`,
		"param('x', { default = 'a' })":                                         `default of "x" is "a"; it must be a number`,
		"param('x', { default = 0/0 })":                                         `default of "x" is NaN`,
		"param('x', { default = 1, min = 3, max = 2 })":                         "min must be smaller",
		"param('x', { default = 1, min = -1e308, max = 1e308 })":                "is too wide",
		"param('x', { default = 1, max = math.huge })":                          `max of "x" is +Inf`,
		"param('x', { default = 1, help = print })":                             `help of "x" is a function; it must be a text`,
		"param('x', { default = 1, [print] = 1 })":                              `unknown option "function"`,
		"param('x', setmetatable({}, { __index = { default = 1 } }))":           `"x" has no default`,
		"param('a b', { default = 1 })":                                         `"a b" is no name`,
		"param('x', { default = 1 })\nparam('x', { default = 1 })":              "declared twice",
		"for i = 1, 17 do param('x' .. i, { default = 1 }) end":                 "may declare 16 knobs",
		"function send(req) param('x', { default = 1 }) end\nsend()":            "",
		"local f = function() return param('late', { default = 1 }) end\nf()\n": "",
	} {
		_, err := Compile("r.lua", call+"\n"+routeOf("return STAY"))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", call, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "r.lua:") {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}
	p := mustCompile(t, "param('x', { default = -0.0, help = 'two\\nlines \\27[2J' })\n"+routeOf("return STAY"))
	if p.Params[0].Help != "two lines [2J" || math.Signbit(p.Params[0].Default) {
		t.Errorf("%+v", p.Params[0])
	}
	if fault := faultOf(t, Env{}, "param('late', { default = 1 })"); !strings.Contains(fault, "belongs at the top of the file") {
		t.Error(fault)
	}
}

// Case I12: two subservers run the same program at the same time while knobs
// move and programs change; the race detector watches.
func TestTwoSubserversAtOnce(t *testing.T) {
	p := mustCompile(t, knobRouter("0.5"))
	q := mustCompile(t, knobRouter("0.6"))
	k := NewKnobs()
	k.Declare(p)
	var wg sync.WaitGroup
	for self := range 2 {
		vm, err := NewVM(Env{Self: 0, Peers: 2, Knobs: k, Seed: uint64(self)}, p)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer vm.Close()
			for i := range 2000 {
				if d := vm.Route(sampleRow()); d.Fault != "" {
					t.Error(d.Fault)
				}
				if i%500 == 250 {
					if err := vm.Swap([]*Program{p, q}[i/500%2]); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			if err := k.Set("tau", float64(i%4), "slider"); err != nil {
				t.Error(err)
			}
			k.List()
			k.Declare([]*Program{p, q}[i%2])
		}
	})
	wg.Wait()
}
