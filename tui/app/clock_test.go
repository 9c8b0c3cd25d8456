package app

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tokenrouter/tui/internal/synth"
)

// Keys that do nothing under a clock or a load say why, in the last line, in the
// help and when they are pressed.
func TestClocksSayWhatIsOff(t *testing.T) {
	for _, c := range []struct {
		name     string
		set      func(*Status)
		arrivals string
		key      string
		said     string // when it is pressed
		hint     string
	}{
		{"sim", func(s *Status) { s.Clock = "sim" }, "", "c", "clock is off: virtual time stays virtual", "c clock (virtual)"},
		{"emulated", func(s *Status) { s.Clock = "emulated" }, "", "c", "clock is off: no model is here that could run live", "c clock (no models here)"},
		{"sim at no bound", func(s *Status) { s.Clock, s.Speed = "sim", 0 }, "", "+", "faster is off: no further", "-/+ speed"},
		{"open loop", func(*Status) {}, "poisson:2", "]", "more is off: requests come by poisson:2", "[/] concurrency (by arrivals)"},
	} {
		m, fake := still(t, synth.Paper())
		m.info.Arrivals = c.arrivals
		fake.set(c.name, c.set)
		m.Update(frameMsg{})
		m.Update(tea.WindowSizeMsg{Width: 240, Height: 60})
		if last := ansi.Strip(m.hints().S); !strings.Contains(last, c.hint) {
			t.Errorf("%s: no %q in the last line %q", c.name, c.hint, last)
		}
		m.Update(keyMsg("?"))
		_, why, _ := strings.Cut(c.said, ": ")
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, why) {
			t.Errorf("%s: the help does not say %q:\n%s", c.name, why, text)
		}
		m.Update(keyMsg("?"))
		m.Update(keyMsg(c.key))
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, c.said) {
			t.Errorf("%s: %s does not say %q:\n%s", c.name, c.key, c.said, text)
		}
	}
}

// In virtual time the speed goes far beyond that of the wall, and the help leaves
// out what drawn tokens have not.
func TestVirtualTimeKeys(t *testing.T) {
	m, fake := still(t, synth.Paper())
	fake.set("clock", func(s *Status) { s.Clock, s.Speed = "sim", 16 })
	m.info.Tokens = "drawn"
	m.Update(frameMsg{})
	m.Update(tea.WindowSizeMsg{Width: 170, Height: 60})
	for _, want := range []float64{32, 64, 125} {
		m.Update(keyMsg("+"))
		if got := fake.Status().Speed; got != want {
			t.Fatalf("speed %g, want %g", got, want)
		}
	}
	m.Update(keyMsg("?"))
	text := ansi.Strip(m.View().Content)
	for _, gone := range []string{"answers checked since", "paced steps for which"} {
		if strings.Contains(text, gone) {
			t.Errorf("the help says %q:\n%s", gone, text)
		}
	}
	for _, want := range []string{"slower or faster, now ×125", "as fast as ours virtual time passes", "which no model wrote; their text means nothing"} {
		if !strings.Contains(text, want) {
			t.Errorf("the help does not say %q:\n%s", want, text)
		}
	}
}

// In virtual time the last line tells of the speed also where there is little room.
func TestVirtualTimeHintsSpeed(t *testing.T) {
	m, fake := still(t, synth.Paper())
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if last := ansi.Strip(m.hints().S); strings.Contains(last, "speed") {
		t.Errorf("paced: %q", last)
	}
	fake.set("clock", func(s *Status) { s.Clock = "sim" })
	m.Update(frameMsg{})
	if last := ansi.Strip(m.hints().S); !strings.HasPrefix(last, " space pause  -/+ speed  e edit") {
		t.Errorf("sim: %q", last)
	}
	m.Update(keyMsg("x"))
	if last := ansi.Strip(m.hints().S); !strings.HasPrefix(last, " export as: j JSONL") {
		t.Errorf("menu: %q", last)
	}
	m.Update(keyMsg("esc"))
	m.Update(keyMsg("p"))
	if last := ansi.Strip(m.hints().S); !strings.Contains(last, "p close") {
		t.Errorf("plan: %q", last)
	}
}
