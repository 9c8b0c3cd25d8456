package board

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// Figures, and where requests stand, change four times a second; tokens show as
// they come.
func TestFiguresAreCalm(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	split := func() (calm, text string) {
		rows := strings.Split(Text(m, 160, 50, c.Now(), true), "\n")
		for _, r := range rows[:24] { // header, cards, figures, chart
			calm += r + "\n"
		}
		for _, r := range rows[24:40] { // requests: id and state, then the text
			cells := []rune(r + strings.Repeat(" ", 160))
			calm += string(cells[:8]) + "\n"
			text += string(cells[leftWide:140]) + "\n"
		}
		return calm, text
	}
	split()
	m.Add(c.Until(c.Now() + figuresEvery + 10e6))
	calm, text := split()
	moved := false
	for range 8 {
		m.Add(c.Until(c.Now() + 30e6))
		now, later := split()
		moved = moved || later != text
		if now != calm {
			t.Fatalf("within %v the figures went from\n%s\nto\n%s", time.Duration(figuresEvery), calm, now)
		}
	}
	if !moved {
		t.Error("no token has come")
	}
	m.Add(c.Until(c.Now() + 30e6))
	if now, _ := split(); now == calm {
		t.Error("the figures stand still")
	}
}

func TestAnswersToKeysGoAway(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	for _, alarm := range []bool{false, true} {
		m.Say("an answer to a key", alarm)
		stays := toastFor
		if alarm {
			stays = alarmFor
		}
		at := c.Now() + 1e9
		for _, look := range []struct {
			after int64
			want  bool
		}{{0, true}, {stays - 1e9, true}, {stays + 1e9, false}} {
			text := frameText(m, at+look.after)
			if got := strings.Contains(text, "an answer to a key"); got != look.want {
				t.Errorf("alarm %v: after %v it is shown: %v", alarm, time.Duration(look.after), got)
			}
		}
	}
}

func frameText(m *Model, now int64) string {
	var b strings.Builder
	for _, r := range m.Draw(120, 36, now, nil) {
		b.WriteString(r.S + "\n")
	}
	return b.String()
}

// What moves in many steps stands in one line: a slider, a threshold.
func TestMovesStandInOneLine(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	knob := func(old, value float64) {
		c.Host(&tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: old, New: value})
		m.Add(c.Until(c.Now() + 1e9))
	}
	before := len(m.events)
	for i := range 5 {
		knob(0.5-0.1*float64(i), 0.4-0.1*float64(i))
	}
	if e := m.events[len(m.events)-1]; len(m.events) != before+1 || e.text != "knob threshold 0.5 -> 0" {
		t.Errorf("%d lines for one move, the last %q", len(m.events)-before, e.text)
	}
	c.SetB(1, 2)
	c.SetB(1, 3)
	c.SetB(1, 4)
	m.Add(c.Until(c.Now() + 1e6))
	if e := m.events[len(m.events)-1]; len(m.events) != before+2 || e.text != "policy fixed, B 1,4" {
		t.Errorf("%d lines, the last %q", len(m.events)-before, e.text)
	}
	knob(0, 0.1)
	m.Add(c.Until(c.Now() + sameMove))
	knob(0.1, 0.2)
	if got := len(m.events) - before; got != 4 {
		t.Errorf("two moves apart in time are %d lines", got-2)
	}
}

// The card says which rule started the batch that runs, and that an idle model
// waits.
func TestCardNamesTheRule(t *testing.T) {
	cfg := synth.Paper()
	m, c := session(cfg, theme.New(theme.Options{}))
	seen := map[string]int{}
	for range 2000 {
		m.Add(c.Until(c.Now() + figuresEvery + 7e6))
		text := Text(m, 120, 36, c.Now(), true)
		k := &m.cores[1]
		want := ""
		switch {
		case len(k.rows) == 0 && k.load.Ready > 0:
			want = "waits by B"
		case len(k.rows) > 0 && k.running.rule == event.RuleB:
			want = "runs by B"
		case len(k.rows) > 0 && k.running.rule == event.RuleGuard:
			want = "runs by guard"
		default:
			continue
		}
		seen[want]++
		if !strings.Contains(text, want) {
			t.Fatalf("no %q on\n%s", want, text)
		}
		if m.figs.snap.Peers[1].ByB == 0 || !strings.Contains(Text(m, 160, 50, c.Now(), true), "by B") {
			t.Fatalf("no share of batches by B")
		}
	}
	for _, want := range []string{"waits by B", "runs by B", "runs by guard"} {
		if seen[want] == 0 {
			t.Errorf("%q was never due: %v", want, seen)
		}
	}
}

// A low large share has its reason on the large model's card: so little is sent
// there.
func TestCardTellsWhyTheShareIsLow(t *testing.T) {
	cfg := synth.Paper()
	cfg.P = 0.03
	c := synth.New(cfg)
	m := New(infoOf(2), theme.New(theme.Options{}))
	m.SetStatus(statusOf(cfg))
	m.Add(c.Until(30e9))
	s := m.figs.snap
	text := Text(m, 160, 50, c.Now(), true)
	s = m.figs.snap
	if share := 100 * s.Peers[1].VisitsPerS / s.Peers[0].RowsPerS; share < 1 || share > 6 {
		t.Fatalf("%.1f %% of the rows were sent, not some 3", share)
	} else if want := fmt.Sprintf("%.0f %% of small's rows come here", share); !strings.Contains(text, want) {
		t.Errorf("no %q on\n%s", want, text)
	}
	m.Add(c.Until(c.Now() + 1e9))
	if text := Text(m, 80, 24, c.Now(), true); !strings.Contains(text, "% of rows") {
		t.Errorf("80 columns do not tell:\n%s", text)
	}
}

// A machine that is too slow for the cost profile says so on the card.
func TestCardTellsThatStepsAreLate(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	profile := []time.Duration{6 * time.Millisecond, 20 * time.Millisecond}
	m.info.Step = func(p event.Peer, _ int) time.Duration { return profile[p] }
	text := Text(m, 160, 50, c.Now(), true)
	if !strings.Contains(text, "27.9 ms  ! late, paced 20.0") || strings.Contains(text, "paced 6.0") {
		t.Errorf("27.9 in place of 20 ms:\n%s", text)
	}
	for _, change := range []func(*Status){func(s *Status) { s.Clock = "live" }, func(s *Status) { s.Clock, s.Speed = "paced", 0.5 }} {
		s := m.Status()
		change(&s)
		m.SetStatus(s)
		if text := Text(m, 160, 50, c.Now(), true); strings.Contains(text, "! late") {
			t.Errorf("clock %s, speed %g:\n%s", s.Clock, s.Speed, text)
		}
	}
}

// A fault is read in full where there is room for it, also in a narrow window.
func TestFaultsAreWrapped(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	c.Host(&tape.Router{Phase: tape.RouterRejected, File: "r2r.lua", Err: `r2r.lua:8: syntax error near "if": close the parameters with )`, Hash: synth.Hash})
	m.Add(c.Until(c.Now() + 1e6))
	pane := ""
	for _, l := range strings.Split(Text(m, 80, 24, c.Now(), true), "\n")[21:] {
		pane += " " + string([]rune(l + strings.Repeat(" ", 80))[34:])
	}
	if want := `! r2r.lua:8: syntax error near "if": close the parameters with ); kept @3f2a`; !strings.Contains(strings.Join(strings.Fields(pane), " "), want) {
		t.Errorf("the events say %q", pane)
	}
}

// Decisions carry the knobs as they stood.
func TestDecisionsKnowTheKnobs(t *testing.T) {
	c := synth.New(synth.Paper())
	m := New(infoOf(2), theme.New(theme.Options{}))
	c.Host(&tape.Knob{Router: "me.lua", Knob: "small", New: 1})
	c.Host(&tape.Knob{Router: "r2r.lua", Knob: "threshold", New: 0.5})
	m.Add(c.Until(2e9))
	c.Host(&tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 0.5, New: 0.2})
	moved := c.Now()
	m.Add(c.Until(4e9))
	asked := map[float64]int{}
	m.Explain = func(d Decided) string {
		asked[d.Knobs["r2r.lua"]["threshold"]]++
		if d.Knobs["me.lua"]["small"] != 1 {
			t.Errorf("the other router's knobs are %v", d.Knobs["me.lua"])
		}
		return ""
	}
	for _, r := range m.reqs {
		m.Inspect(r.id)
		in := m.UI.inspect
		for i := range r.tokens {
			in.cur, in.follow = i, false
			asked = map[float64]int{}
			tok := &r.tokens[i]
			in.because(m, tok)
			want := 0.5
			if tok.at > moved {
				want = 0.2
			}
			if len(tok.drops) == 0 && asked[want] != 1 {
				t.Fatalf("a token of %v knows %v, want %v", time.Duration(tok.at), asked, want)
			}
		}
	}
}
