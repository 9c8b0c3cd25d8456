package template

import (
	"encoding/json"
	"os"
	"testing"
)

type golden struct {
	Source   string      `json:"source"`
	Messages [][2]string `json:"messages"`
	Prompt   bool        `json:"prompt"`
	Want     string      `json:"want"`
	Error    string      `json:"error"`
}

func (g *golden) vars() Vars {
	v := Vars{BOS: "<s>", EOS: "</s>", NoPrompt: !g.Prompt}
	for _, m := range g.Messages {
		v.Messages = append(v.Messages, Message{m[0], m[1]})
	}
	return v
}

func goldens(t testing.TB) []golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestJinja2 compares with Jinja2 itself; testdata/cases.py makes the cases.
func TestJinja2(t *testing.T) {
	for _, c := range goldens(t) {
		tmpl, err := Parse(c.Source)
		if err != nil {
			t.Errorf("%s: %v", c.Source, err)
			continue
		}
		got, err := tmpl.Render(c.vars())
		if (err != nil) != (c.Error != "") {
			t.Errorf("%s: error %v, want %q", c.Source, err, c.Error)
		}
		if got != c.Want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.Source, got, c.Want)
		}
	}
}
