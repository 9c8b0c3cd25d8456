package board

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// Long names of routers and knobs are cut before they push anything out: the
// router keeps a name beside its hash, knobs that differ at their ends can be told
// apart, and the list says how many there are.
func TestLongNames(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	s := statusOf(synth.Paper())
	s.Router = "a_router_with_a_very_long_name_that_somebody_gave_it.lua"
	s.Knobs = nil
	for i := range 16 {
		s.Knobs = append(s.Knobs, KnobState{Name: fmt.Sprintf("long_knob_name_%d", i+1), Help: "a threshold", Value: 1, Max: float64(i + 1)})
	}
	m.SetStatus(s)
	for _, size := range []struct{ w, h int }{{60, 20}, {80, 24}, {100, 30}, {120, 36}, {200, 60}} {
		text := Text(m, size.w, size.h, c.Now(), true)
		check(t, text, size.w, size.h)
		rows := strings.Split(text, "\n")
		if !strings.Contains(rows[0], " a_router_w") || !strings.Contains(rows[0], "@3f2a") || !strings.Contains(rows[0], "rec ") {
			t.Errorf("%dx%d: the head is %q", size.w, size.h, rows[0])
		}
		for _, want := range []string{" knobs  a_rout", " of 16 ", "long_knob_name_1 "} {
			if !strings.Contains(text, want) {
				t.Errorf("%dx%d: no %q in\n%s", size.w, size.h, want, text)
			}
		}
	}
}

// What a key was answered is seen whole, though it takes more than a line.
func TestLongAnswerIsSeenWhole(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	m.Say("passed over citer, collm: citer.lua:10: the head citer was made for another large model: its hash is c5dc5ff9c309, this one has 51b0aa12ffee; tokenrouter head train makes one for it", true)
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 36}} {
		text := Text(m, size.w, size.h, c.Now(), true)
		check(t, text, size.w, size.h)
		if !strings.Contains(text, " ! passed over") || !strings.Contains(text, "makes one for it") {
			t.Errorf("%dx%d: it is cut:\n%s", size.w, size.h, text)
		}
	}
}
