package app

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/keys"
)

// P goes through the policies in a circle; fixed takes B* over, and is left out
// where that would be eager again. What the runtime refuses is said.
func TestPolicies(t *testing.T) {
	m, fake := still(t, synth.Paper())
	seen := []string{m.a.board.Status().Policy}
	for range 5 {
		m.Update(keyMsg("P"))
		s := m.a.board.Status()
		seen = append(seen, s.Policy)
		if s.Policy == "fixed" && !slices.Equal(s.B, []int{1, 3}) {
			t.Errorf("fixed begins with %v, not with B*", s.B)
		}
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, "policy "+s.Policy) {
			t.Errorf("the answer to P does not name %s:\n%s", s.Policy, text)
		}
	}
	if want := []string{"table", "look-ahead", "lock-step", "eager", "fixed", "table"}; !slices.Equal(seen, want) {
		t.Errorf("P goes through %v, want %v", seen, want)
	}

	a, err := New(fake, Config{}) // it has seen no record, so no plan
	if err != nil {
		t.Fatal(err)
	}
	bare := newModel(a)
	if err := fake.SetPolicy("eager"); err != nil {
		t.Fatal(err)
	}
	bare.status()
	if got := bare.nextPolicy(); got != "table" {
		t.Errorf("without a plan eager is followed by %s", got)
	}
	bare.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	bare.Update(keyMsg("P"))
	if text := ansi.Strip(bare.View().Content); !strings.Contains(text, "policy table: acts eagerly until there is a plan") {
		t.Errorf("without a plan:\n%s", text)
	}
	fake.refuse = errors.New("this session is only shown")
	bare.Update(keyMsg("P"))
	if text := ansi.Strip(bare.View().Content); !strings.Contains(text, "! this session is only shown") {
		t.Errorf("a refusal is not said:\n%s", text)
	}
	bare.info.Models = bare.info.Models[:1]
	bare.Update(keyMsg("P"))
	if text := ansi.Strip(bare.View().Content); !strings.Contains(text, "policy is off: one subserver waits for nobody") {
		t.Errorf("one subserver:\n%s", text)
	}
}

// Moving B by hand ends any other policy and says so; below 1 it does not go.
func TestMovingBSetsFixed(t *testing.T) {
	for _, c := range []struct{ from, key, want string }{
		{"table", "}", "policy fixed, B 1,4 in place of table"},
		{"table", "{", "policy fixed, B 1,2 in place of table"},
		{"eager", "}", "policy fixed, B 1,2 in place of eager"},
		{"eager", "{", "lower B is off: 1 is the least"},
		{"look-ahead", "}", "policy fixed, B 1,2 in place of look-ahead"},
	} {
		m, fake := still(t, synth.Paper())
		if err := fake.SetPolicy(c.from); err != nil {
			t.Fatal(err)
		}
		m.Update(frameMsg{})
		m.Update(keyMsg("?"))
		if text := ansi.Strip(m.View().Content); c.key == "}" && !strings.Contains(text, "set B of large (fixed), now") {
			t.Errorf("%s: the help does not tell:\n%s", c.from, text)
		}
		m.Update(keyMsg("?"))
		m.Update(keyMsg(c.key))
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, c.want) {
			t.Errorf("%s and %s: no %q on\n%s", c.from, c.key, c.want, text)
		}
		m.Update(keyMsg("}"))
		if text := ansi.Strip(m.View().Content); m.a.board.Status().Policy != "fixed" || c.key == "}" && strings.Contains(text, "in place of") {
			t.Errorf("%s: a further move says\n%s", c.from, text)
		}
	}
}

// The plan opens over the board and over the closer look, scrolls to its end in
// a small window, and closes to where it was opened.
func TestPlanOpens(t *testing.T) {
	for open, c := range map[string]keys.Context{"": keys.Board, "enter": keys.Inspector} {
		m, _ := still(t, synth.Paper())
		m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		if open != "" {
			m.Update(keyMsg(open))
		}
		m.View()
		m.Update(keyMsg("p"))
		seen := ""
		for range 30 {
			fits(t, m)
			seen += ansi.Strip(m.View().Content)
			m.Update(keyMsg("down"))
		}
		for _, want := range []string{"measured", "predicted", "lock-step", "B* at", "geometric", "by guard", "were cached", "longer than the guard W, 55.8 ms", "notes of the plan", "P next policy"} {
			if !strings.Contains(seen, want) {
				t.Errorf("the plan does not say %q", want)
			}
		}
		m.Update(keyMsg("esc"))
		if m.at != c {
			t.Errorf("esc leads from the plan to context %d, not %d", m.at, c)
		}
		m.Update(keyMsg("p"))
		m.Update(keyMsg("P"))
		if m.at != keys.Planning || m.a.board.Status().Policy != "look-ahead" {
			t.Errorf("P over the plan: context %d, policy %s", m.at, m.a.board.Status().Policy)
		}
		m.Update(keyMsg("p"))
		if m.at != c {
			t.Errorf("p leads from the plan to context %d, not %d", m.at, c)
		}
	}
}
