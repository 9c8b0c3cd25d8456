package app

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"tokenrouter/tui/board"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/keys"
)

// still is a program's model over a runtime that has run for a while.
func still(t testing.TB, cfg synth.Config) (*model, *fakeRuntime) {
	t.Helper()
	fake := newFake(t.TempDir(), cfg)
	a, err := New(fake, Config{})
	if err != nil {
		t.Fatal(err)
	}
	a.board.Add(fake.cluster.Until(20e9))
	m := newModel(a)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	return m, fake
}

func keyMsg(k string) tea.KeyPressMsg {
	special := map[string]tea.Key{
		"space": {Code: tea.KeySpace, Text: " "}, "esc": {Code: tea.KeyEscape}, "enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab},
		"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"shift+left": {Code: tea.KeyLeft, Mod: tea.ModShift}, "shift+right": {Code: tea.KeyRight, Mod: tea.ModShift},
		"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	if key, ok := special[k]; ok {
		return tea.KeyPressMsg(key)
	}
	return tea.KeyPressMsg(tea.Key{Code: []rune(k)[0], Text: k})
}

func fits(t *testing.T, m *model) {
	t.Helper()
	content := m.View().Content
	rows := strings.Split(content, "\n")
	if len(rows) > max(m.h, 1) {
		t.Fatalf("%d rows in a window of %dx%d", len(rows), m.w, m.h)
	}
	for y, r := range rows {
		if w := ansi.StringWidth(r); w > m.w {
			t.Fatalf("row %d of %dx%d is %d wide: %q", y, m.w, m.h, w, r)
		}
	}
}

// case J1: 100 sizes, and keys in between, in every context.
func TestResizes(t *testing.T) {
	m, fake := still(t, synth.Paper())
	rng := rand.New(rand.NewPCG(2, 2))
	var all []string
	for c := keys.Board; c <= keys.Planning; c++ {
		for _, b := range keys.Table(c) {
			if b.Action != keys.Quit && b.Action != keys.Edit {
				all = append(all, b.Keys...)
			}
		}
	}
	sizes := [][2]int{{0, 0}, {1, 1}, {20, 5}, {80, 24}, {300, 100}}
	for range 100 {
		sizes = append(sizes, [2]int{rng.IntN(301), rng.IntN(101)})
	}
	for _, s := range sizes {
		m.Update(tea.WindowSizeMsg{Width: s[0], Height: s[1]})
		fits(t, m)
		for range 4 {
			_, cmd := m.Update(keyMsg(all[rng.IntN(len(all))]))
			if cmd != nil {
				m.Update(cmd())
			}
			fits(t, m)
		}
		m.a.board.Add(fake.cluster.Until(fake.cluster.Now() + 5e7))
		m.Update(frameMsg{})
		fits(t, m)
	}
}

// Every key that is bound does something or says why not; no key is forgotten.
func TestEveryKeyAnswers(t *testing.T) {
	for c, open := range map[keys.Context]string{keys.Board: "", keys.Inspector: "enter", keys.Menu: "x", keys.Helping: "?", keys.Planning: "p"} {
		for _, b := range keys.Table(c) {
			for _, k := range b.Keys {
				m, _ := still(t, synth.Paper())
				if open != "" {
					m.Update(keyMsg(open))
				}
				if m.at != c {
					t.Fatalf("context %d is not reached by %q", c, open)
				}
				m.a.board.Step(-5) // not at the edge of the text
				before := m.View().Content
				_, cmd := m.Update(keyMsg(k))
				if cmd == nil && m.View().Content == before && !slices.Contains([]string{"up", "k", "down", "j"}, k) {
					t.Errorf("in context %d the key %q (%s) does nothing", c, k, b.Action)
				}
			}
		}
	}
}

// What a key is called in the last line is what Find knows.
func TestHintsNameTheReason(t *testing.T) {
	m, fake := still(t, synth.Paper())
	if err := fake.SetClock("live"); err != nil {
		t.Fatal(err)
	}
	m.Update(frameMsg{})
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 36})
	if last := ansi.Strip(m.hints().S); !strings.Contains(last, "-/+ speed (paced only)") || !strings.HasSuffix(last, "? help  q quit") {
		t.Errorf("the last line says %q", last)
	}
	for w := 20; w < 200; w++ {
		m.w = w
		if r := m.hints(); r.W > w || w > 40 && !strings.HasSuffix(ansi.Strip(r.S), "q quit") {
			t.Fatalf("%d columns: %q", w, r.S)
		}
	}
}

// The help lists every key with what it does now, and why one is off.
func TestHelpListsEveryKey(t *testing.T) {
	for open, c := range map[string]keys.Context{"": keys.Board, "enter": keys.Inspector} {
		m, fake := still(t, synth.Paper())
		if err := fake.SetClock("live"); err != nil {
			t.Fatal(err)
		}
		m.Update(frameMsg{})
		m.Update(tea.WindowSizeMsg{Width: 170, Height: 60})
		if open != "" {
			m.Update(keyMsg(open))
		}
		m.Update(keyMsg("?"))
		text := ansi.Strip(m.View().Content)
		for _, b := range keys.Table(c) {
			if b.Help == "" {
				continue
			}
			if !strings.Contains(text, " "+b.Show+" ") {
				t.Errorf("the help of context %d does not list %s:\n%s", c, b.Show, text)
			}
			if now := m.does(b.Action); now != "" && !strings.Contains(text, now) && m.whyOff([]keys.Action{b.Action}) == "" {
				t.Errorf("the help of context %d does not say %q", c, now)
			}
		}
		want := []string{"off: live runs as fast as it can", "from the live clock to paced", "copy the text of request #", "underlined"}
		if c == keys.Board {
			want = append(want, "move threshold, now 0.5 of 0 to 4", "next router rstitch.lua, previous me.lua", "look into request #")
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the help of context %d does not say %q:\n%s", c, w, text)
			}
		}
	}
}

// In a small window the help scrolls, and nothing of it is out of reach.
func TestHelpScrolls(t *testing.T) {
	m, _ := still(t, synth.Paper())
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Update(keyMsg("?"))
	seen := ""
	for range 80 {
		fits(t, m)
		seen += ansi.Strip(m.View().Content)
		m.Update(keyMsg("down"))
	}
	for _, want := range []string{"pause: no new step", "first and newest token", "a warning or an error", "paced steps for which", "up/down scroll"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is never shown", want)
		}
	}
	m.Update(keyMsg("up"))
	if text := ansi.Strip(m.View().Content); strings.Contains(text, "paced steps for which") {
		t.Errorf("one line up from the end:\n%s", text)
	}
}

func TestEditor(t *testing.T) {
	none := func(string) (string, error) { return "", errors.New("not found") }
	nano := func(n string) (string, error) {
		if n == "nano" {
			return "/bin/nano", nil
		}
		return none(n)
	}
	for _, c := range []struct {
		env  []string
		look func(string) (string, error)
		want string
	}{
		{[]string{"EDITOR=vim", "VISUAL=code -w"}, none, "code -w"},
		{[]string{"EDITOR=old", "EDITOR=vim"}, none, "vim"},
		{[]string{"EDITOR="}, nano, "/bin/nano"},
		{nil, none, ""},
	} {
		got, err := editor(c.env, c.look)
		if strings.Join(got, " ") != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %v, %v", c.env, got, err)
		}
	}
}

// A file that cannot become the router is opened all the same, and tried again
// when the editor has ended.
func TestEditsABrokenRouter(t *testing.T) {
	m, fake := still(t, synth.Paper())
	m.a.cfg.Environ = []string{"EDITOR=true"}
	fake.broken = errors.New("r2r.lua:8: boom")
	_, cmd := m.Update(keyMsg("e"))
	msg, ok := cmd().(editMsg)
	if !ok || msg.err != nil || msg.path == "" {
		t.Fatalf("%+v", msg)
	}
	if _, cmd = m.Update(msg); cmd == nil {
		t.Fatal("the editor is not started")
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fake.broken, "r2r.lua, but it cannot be taken: r2r.lua:8: boom"},
		{nil, "edited " + msg.path},
	} {
		fake.broken = c.err
		_, again := m.Update(editedMsg{path: msg.path})
		if again == nil {
			t.Fatal("it is not tried again")
		}
		m.Update(again())
		m.Update(tea.WindowSizeMsg{Width: 240, Height: 40})
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, c.want) || c.err == nil && strings.Contains(text, "cannot") {
			t.Errorf("no %q:\n%s", c.want, text)
		}
	}
	fake.set("router", func(s *Status) { s.Editable = msg.path })
	if _, again := m.Update(editedMsg{path: msg.path}); again != nil {
		t.Error("the router that is live is taken again")
	}
}

// Without an editor the file is named: saving it elsewhere reloads it all the
// same.
func TestEditWithoutEditor(t *testing.T) {
	m, fake := still(t, synth.Paper())
	m.a.cfg.Environ = nil
	t.Setenv("PATH", t.TempDir())
	_, cmd := m.Update(keyMsg("e"))
	m.Update(cmd())
	text := ansi.Strip(m.View().Content)
	if !strings.Contains(text, "no editor found: set EDITOR, or edit "+fake.dir[:20]) {
		t.Errorf("the screen says:\n%s", text)
	}
	m.a.cfg.Environ = []string{"EDITOR=vi -u NONE"}
	_, cmd = m.Update(keyMsg("e"))
	if _, run := m.Update(cmd()); run == nil {
		t.Error("the editor is not started")
	}
}

// case J10: what is too long for the clipboard goes to a file, and the screen
// says which happened.
func TestCopyTooLong(t *testing.T) {
	m, fake := still(t, synth.Paper())
	if cmd := m.copied(copiedMsg{what: "request #3", bytes: maxOSC52 + 1, path: "somewhere/copy.txt"}); cmd != nil {
		t.Error("too long a text is sent to the clipboard")
	}
	text := ansi.Strip(m.View().Content)
	if !strings.Contains(text, "request #3 is too long for the clipboard, 74001 bytes of at most 74000; written to somewhere/copy.txt") {
		t.Errorf("the screen says:\n%s", text)
	}
	_, cmd := m.Update(keyMsg("y"))
	msg := cmd().(copiedMsg)
	data, err := os.ReadFile(msg.path)
	if err != nil || string(data) != msg.text || !strings.HasPrefix(msg.path, fake.dir) || strings.ContainsAny(msg.text, "│╭\x1b") {
		t.Errorf("copied %q to %s: %v", data, msg.path, err)
	}
	if _, set := m.Update(msg); set == nil {
		t.Error("nothing for the clipboard")
	}
}

func TestThemesFollowTheTerminal(t *testing.T) {
	m, _ := still(t, synth.Paper())
	seen := map[string]bool{}
	for _, msg := range []tea.Msg{
		tea.ColorProfileMsg{Profile: colorprofile.TrueColor},
		tea.ColorProfileMsg{Profile: colorprofile.ANSI256},
		tea.ColorProfileMsg{Profile: colorprofile.ANSI},
		tea.ColorProfileMsg{Profile: colorprofile.Ascii},
		tea.ColorProfileMsg{Profile: colorprofile.NoTTY},
	} {
		m.Update(msg)
		fits(t, m)
		seen[m.View().Content] = true
	}
	if len(seen) != 5 {
		t.Errorf("five terminals see %d screens", len(seen))
	}
}

func TestMoveKnob(t *testing.T) {
	for _, c := range []struct {
		k    board.KnobState
		n    int
		want float64
	}{
		{board.KnobState{Value: 0.5, Default: 0.5, Max: 4}, 1, 0.51},
		{board.KnobState{Value: 0.5, Default: 0.5, Max: 4}, -10, 0.4},
		{board.KnobState{Value: 0.03, Default: 0.03, Max: 1}, 1, 0.031},
		{board.KnobState{Value: 0, Default: 0.5, Max: 4}, 1, 0.01},
		{board.KnobState{Value: 4, Default: 0.5, Max: 4}, 1, 4},
		{board.KnobState{Value: 20, Default: 20, Min: 1, Max: 100}, 1, 21},
		{board.KnobState{Value: 3, Default: 3, Min: 1, Max: 8}, -10, 1},
		{board.KnobState{Value: 1, Default: 1, Min: 1, Max: 1}, 1, 1},
	} {
		if got := moveKnob(c.k, c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v moved by %d: %v, want %v", c.k, c.n, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		k := board.KnobState{Min: rapid.Float64Range(-100, 100).Draw(t, "min")}
		k.Max = k.Min + rapid.Float64Range(0, 200).Draw(t, "size")
		k.Value = rapid.Float64Range(k.Min, k.Max).Draw(t, "value")
		n := rapid.SampledFrom([]int{-10, -1, 1, 10}).Draw(t, "n")
		got := moveKnob(k, n)
		if got < k.Min || got > k.Max || math.IsNaN(got) {
			t.Fatalf("%+v moved by %d to %v", k, n, got)
		}
		if n > 0 && got < k.Value-1e-9 || n < 0 && got > k.Value+1e-9 {
			t.Fatalf("%+v moved by %d the other way, to %v", k, n, got)
		}
	})
}

func TestSteps(t *testing.T) {
	for n := 1; n < 200; n++ {
		up := nextConcurrency(n, 1)
		if up <= n || nextConcurrency(n, -1) > n || n > 1 && nextConcurrency(n, -1) == n {
			t.Errorf("concurrency %d goes to %d and %d", n, up, nextConcurrency(n, -1))
		}
	}
	for _, c := range []struct {
		clock         string
		now, down, up float64
	}{
		{"paced", 1, 0.5, 2},
		{"paced", 16, 8, 16},
		{"paced", 0.1, 0.1, 0.25},
		{"paced", 3, 2, 4},
		{"sim", 1, 0.5, 2},
		{"sim", 16, 8, 32},
		{"sim", 10_000, 5000, 0},
		{"sim", 0, 10_000, 0},
		{"sim", 0.1, 0.1, 0.25},
	} {
		at := board.Status{Clock: c.clock, Speed: c.now}
		if down, up := nextSpeed(&at, -1), nextSpeed(&at, 1); down != c.down || up != c.up {
			t.Errorf("%s: speed %g goes to %g and %g, want %g and %g", c.clock, c.now, down, up, c.down, c.up)
		}
	}
	s := board.Status{Router: "r2r.lua", Routers: []string{"me", "r2r", "x/rstitch.lua"}}
	if nextRouter(s, 1) != "x/rstitch.lua" || nextRouter(s, -1) != "me" {
		t.Error("neighbours of r2r")
	}
	s.Router = "rstitch.lua"
	if nextRouter(s, 1) != "me" {
		t.Error("the list is no circle")
	}
}

// A router that cannot run here does not end the round through the list, in either
// direction, and the row of answers says why it was passed over.
func TestRouterPassedOver(t *testing.T) {
	m, fake := still(t, synth.Paper())
	fake.headless = "rstitch.lua"
	for _, step := range []struct{ key, want string }{{"n", "me.lua"}, {"N", "r2r.lua"}} {
		m.Update(keyMsg(step.key))
		if now := fake.Status().Router; now != step.want {
			t.Errorf("%s leads to %s, want %s", step.key, now, step.want)
		}
		if text := ansi.Strip(m.View().Content); !strings.Contains(text, "passed over rstitch.lua: rstitch.lua:10: there is no head") {
			t.Errorf("after %s it does not say what was passed over:\n%s", step.key, text)
		}
	}
	fake.status.Routers = []string{"r2r.lua", "rstitch.lua"}
	m.status()
	m.Update(keyMsg("n"))
	if now := fake.Status().Router; now != "r2r.lua" {
		t.Errorf("with nothing else to run, n leads to %s", now)
	}
}
