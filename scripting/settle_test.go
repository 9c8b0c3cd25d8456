package scripting

import (
	"strings"
	"testing"

	"tokenrouter/runtime/event"
)

// thresholds is a scorer that knows what heads were calibrated for.
type thresholds map[string]float64

func (thresholds) Check(string) error                  { return nil }
func (thresholds) Score(string, *Row) (float64, error) { return 0.5, nil }

func (s thresholds) Threshold(head string) (float64, bool) {
	t, ok := s[head]
	return t, ok
}

const settled = `local tau = param("tau", { default = 0.9, min = 0.1, max = 1, head = "a" })
function route(r)
  if r.score("a") >= tau() then return HOME end
  if r.score("b") >= 1 then return HOME end
  return STAY
end`

// A knob has its default from the head's manifest where there is one, within its
// range, in every machine that loads the program and in the record; else from the
// file, as with a scorer that knows of no thresholds.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		scorer Scorer
		want   float64
		source string
	}{
		{thresholds{"a": 0.25, "b": 0.4}, 0.25, "head"},
		{thresholds{"a": 0.01}, 0.1, "head"},
		{thresholds{"b": 0.4}, 0.9, "file"},
		{&fakeScorer{}, 0.9, "file"},
		{nil, 0.9, "file"},
	} {
		p := mustCompile(t, settled)
		p.Settle(c.scorer)
		knobs := NewKnobs()
		if rec := knobs.Declare(p); len(rec) != 1 || rec[0].Default != c.want || rec[0].New != c.want || rec[0].Source != c.source {
			t.Errorf("%v: %+v, want %v by %s", c.scorer, rec, c.want, c.source)
		}
		for _, k := range []*Knobs{knobs, nil} { // shared, or of the machine's own
			vm, err := NewVM(Env{Self: event.Front, Peers: 2, Knobs: k, Scorer: thresholds{}}, p)
			if err != nil {
				t.Fatal(err)
			}
			if v := vm.declared[0]; v.Default != c.want || v.Head != "a" {
				t.Errorf("%v: the machine has %+v", c.scorer, v)
			}
			if k != nil {
				if err := k.Set("tau", 0.7, "slider"); err != nil {
					t.Fatal(err)
				}
				if d := vm.Route(sampleRow()); d.Fault != "" {
					t.Error(d.Fault)
				}
				if s := k.slot(p, vm.declared[0]); s.get() != 0.7 {
					t.Errorf("%v: the machine's knob is not the one that was moved", c.scorer)
				}
			}
			vm.Close()
		}
	}
}

// On reload a value that was set holds while the default is the same one, from
// wherever it came; another default wins.
func TestSettledReload(t *testing.T) {
	load := func(text string, s thresholds) *Program {
		p := mustCompile(t, text)
		p.Settle(s)
		return p
	}
	knobs := NewKnobs()
	knobs.Declare(load(settled, thresholds{"a": 0.25}))
	if err := knobs.Set("tau", 0.7, "slider"); err != nil {
		t.Fatal(err)
	}
	if rec := knobs.Declare(load(settled+"\n", thresholds{"a": 0.25})); len(rec) != 0 {
		t.Errorf("nothing has moved: %+v", rec)
	}
	// The number in the file is not the default here.
	if knobs.Declare(load(strings.Replace(settled, "0.9", "0.8", 1), thresholds{"a": 0.25})); knobs.List()[0].Value != 0.7 {
		t.Errorf("%+v", knobs.List())
	}
	rec := knobs.Declare(load(strings.Replace(settled, `head = "a"`, `head = "b"`, 1), thresholds{"a": 0.25, "b": 0.5}))
	if len(rec) != 1 || rec[0].Old != 0.7 || rec[0].New != 0.5 || rec[0].Source != "head" {
		t.Errorf("another head: %+v", rec)
	}
	rec = knobs.Declare(load(strings.Replace(settled, `, head = "a"`, "", 1), nil))
	if len(rec) != 1 || rec[0].New != 0.9 || rec[0].Source != "file" {
		t.Errorf("no head: %+v", rec)
	}
}

func TestHeadOfKnob(t *testing.T) {
	route := "\nfunction route(r) if r.score('good') > 0.5 then return HOME end return STAY end"
	for option, want := range map[string]string{
		"head = 3":      `head of "x" is 3; it must be the name of a head`,
		"head = ''":     "it must be the name of a head",
		"head = 'goof'": `"goof", which the file does not ask for; did you mean "good"`,
		"haed = 'good'": `unknown option "haed"; did you mean "head"`,
		"head = 'good'": "",
	} {
		_, err := Compile("r.lua", "param('x', { default = 0.5, "+option+" })"+route)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", option, err, want)
		}
	}
	// Where names are made at run time, nobody knows which are asked for.
	if _, err := Compile("r.lua", "param('x', { default = 0.5, head = 'any' })\nlocal n = 'an' .. 'y'\nfunction route(r) if r.score(n) > 0 then return HOME end return STAY end"); err != nil {
		t.Error(err)
	}
}
