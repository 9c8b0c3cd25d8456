package board

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

var update = flag.Bool("update", false, "write the golden screens anew")

func infoOf(n int) Info {
	all := []ModelInfo{
		{Name: "tiny-37k", Params: 36_800, Hash: "9c1e"},
		{Name: "tiny-842k", Params: 842_112, Hash: "51b0"},
		{Name: "tiny-3.7m", Params: 3_710_944, Hash: "77aa"},
	}
	if n < 3 {
		all = []ModelInfo{all[0], all[2]}[:n]
	}
	for i := range all {
		all[i].Role = event.Role(event.Peer(i), n)
	}
	return Info{
		Program: "tokenrouter", Models: all, Profile: "a100-r2r", Session: "sessions/a", Seed: 7,
		GPUNote: "no NVIDIA driver", Text: synth.Text, EOS: []event.Token{synth.EOS},
	}
}

func statusOf(cfg synth.Config) Status {
	return Status{
		Router: "r2r.lua", Hash: synth.Hash, Clock: "paced", Profile: "a100-r2r", Speed: 1, Concurrency: cfg.N,
		Policy: "table", Recorded: 1_834_000, Recording: true, Routers: []string{"r2r.lua", "me.lua"},
		Knobs: []KnobState{{Name: "threshold", Help: "nats of entropy at which a token goes to the large model", Value: 0.5, Default: 0.5, Max: 4}},
	}
}

func triple() synth.Config {
	return synth.Config{N: 6, P: 0.35, Steps: []int64{6e6, 13e6, 27.9e6}, B: []int{1, 2, 2}, Seed: 3}
}

// plans of a cluster are made once.
var plans = map[string]*tape.Plan{}

func planOf(cfg synth.Config) *tape.Plan {
	key := fmt.Sprint(cfg)
	if plans[key] == nil {
		plans[key] = synth.Plan(cfg)
	}
	return plans[key]
}

// setTable lets a cluster run by the table of its plan.
func setTable(c *synth.Cluster, cfg synth.Config) {
	plan := planOf(cfg)
	c.SetPolicy(event.Policy{Kind: event.Table, Table: plan.Table})
	c.Host(plan)
}

// session is 25 s of eager batching and 39 s by the table, with a router that is
// broken for a while. Many requests have no plan: it would take long.
func session(cfg synth.Config, th *theme.Theme) (*Model, *synth.Cluster) {
	cfg.B = nil
	c := synth.New(cfg)
	m := New(infoOf(len(cfg.Steps)), th)
	m.SetStatus(statusOf(cfg))
	m.Add(c.Until(3e9))
	if cfg.N <= 8 {
		c.Host(synth.Eager(planOf(cfg)))
		m.Add(c.Until(25e9))
		setTable(c, cfg)
	}
	m.Add(c.Until(41e9))
	c.Host(&tape.Router{Phase: tape.RouterRejected, File: "r2r.lua", Err: "r2r.lua:14 attempt to compare nil with number", Hash: synth.Hash})
	m.Add(c.Until(52e9))
	c.Host(&tape.Router{Phase: tape.RouterCleared, File: "r2r.lua"})
	m.Add(c.Until(64e9))
	return m, c
}

// check holds for every screen: h rows, none wider than the window, and no
// escape sequence but styles.
func check(t testing.TB, text string, w, h int) {
	t.Helper()
	rows := strings.Split(text, "\n")
	if len(rows) != h && !(w*h == 0 && text == "") {
		t.Fatalf("%d rows in a window of %dx%d", len(rows), w, h)
	}
	for y, r := range rows {
		if got := ansi.StringWidth(r); got > w {
			t.Fatalf("row %d of %dx%d is %d wide: %q", y, w, h, got, r)
		}
		if got := ansi.StringWidthWc(r); got > w {
			t.Fatalf("row %d of %dx%d is %d wide by characters: %q", y, w, h, got, r)
		}
		for _, c := range sgr.ReplaceAllString(r, "") {
			if c < 0x20 || c == 0x7f || c >= 0x80 && c < 0xa0 {
				t.Fatalf("row %d of %dx%d holds the control character %U: %q", y, w, h, c, r)
			}
		}
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func golden(t *testing.T, name, got string) {
	t.Helper()
	var lines []string
	for _, l := range strings.Split(got, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	got = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the screen is not as in %s (write it anew with -update):\n%s", path, got)
	}
}

var (
	committed = regexp.MustCompile(`commit(?:ted)?\s+(\d+)`)
	bigNumber = regexp.MustCompile(`(?m)^ +(\d+(?:\.\d)?) +tok/s`)
)

func TestScreens(t *testing.T) {
	var m *Model
	var sim *synth.Cluster
	for _, c := range []struct {
		name string
		cfg  synth.Config
		w, h int
	}{
		{"board-60x16", synth.Paper(), 60, 16},
		{"board-80x24", synth.Paper(), 80, 24},
		{"board-100x30", synth.Paper(), 100, 30},
		{"board-120x36", synth.Paper(), 120, 36},
		{"board-160x50", synth.Paper(), 160, 50},
		{"board-200x60", synth.Paper(), 200, 60},
		{"three-80x24", triple(), 80, 24},
		{"three-160x50", triple(), 160, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m == nil || m.n != len(c.cfg.Steps) {
				m, sim = session(c.cfg, theme.New(theme.Options{}))
			}
			check(t, Text(m, c.w, c.h, sim.Now(), false), c.w, c.h)
			text := Text(m, c.w, c.h, sim.Now(), true)
			check(t, text, c.w, c.h)
			golden(t, c.name, text)
			sums(t, m, text)
		})
	}
}

// sums checks that the committed tokens of the roles add up to the big number,
// in the figures and as they are written.
func sums(t *testing.T, m *Model, text string) {
	t.Helper()
	s := m.figs.snap
	sum := 0.0
	for _, p := range s.Peers {
		sum += p.CommittedPerS
	}
	if math.Abs(sum-s.TokensPerS) > 1e-9*sum || s.TokensPerS < 100 {
		t.Errorf("roles commit %.3f tok/s together, all %.3f", sum, s.TokensPerS)
	}
	shown := committed.FindAllStringSubmatch(text, -1)
	if len(shown) != m.n {
		return // a narrow card writes "kept"
	}
	all := 0.0
	for _, c := range shown {
		v, _ := strconv.ParseFloat(c[1], 64)
		all += v
	}
	if big := bigNumber.FindStringSubmatch(text); big != nil {
		v, _ := strconv.ParseFloat(big[1], 64)
		if math.Abs(all-v) > float64(m.n) {
			t.Errorf("the screen says %v committed and %v tok/s", shown, v)
		}
	} else if !strings.Contains(text, "▀") {
		t.Errorf("no big number on the screen:\n%s", text)
	}
	if math.Abs(all-s.TokensPerS) > float64(m.n) {
		t.Errorf("the screen says %v committed, the figures %.1f", shown, s.TokensPerS)
	}
}

// The paper's pair at N = 4, p = 0.35: waiting for B = 3 at the large model
// gains about 11 %.
func TestScreenTellsTheGain(t *testing.T) {
	m, sim := session(synth.Paper(), theme.New(theme.Options{}))
	m.Add(sim.Until(200e9))
	text := Text(m, 120, 36, sim.Now(), true)
	cmp := m.figs.cmp
	if !cmp.Ready || cmp.Delta-cmp.DeltaCI < 0.05 || cmp.Delta+cmp.DeltaCI > 0.18 {
		t.Fatalf("comparison %+v", cmp)
	}
	for _, want := range []string{"B eager -> table", fmt.Sprintf("before %.0f | after %.0f tok/s", cmp.Before.TokensPerS, cmp.After.TokensPerS), fmt.Sprintf("%+.1f %%", cmp.Delta*100), "▲"} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen does not say %q:\n%s", want, text)
		}
	}
}

func TestCollecting(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	c.SetB(1, 2)
	m.Add(c.Until(c.Now() + 3e9))
	for _, size := range [][2]int{{80, 24}, {120, 36}} {
		text := Text(m, size[0], size[1], c.Now(), true)
		if !strings.Contains(text, "collecting") || !strings.Contains(text, "-> 1,2") {
			t.Errorf("three seconds after a change:\n%s", text)
		}
	}
}

// The cards, the big number and every title stay where they are, whatever is
// shown.
func TestNothingMoves(t *testing.T) {
	frameOf := func(text string) string {
		var out []string
		for y, l := range strings.Split(ansi.Strip(text), "\n") {
			x := 0
			for _, r := range l {
				if strings.ContainsRune("╭╮╰╯", r) {
					out = append(out, fmt.Sprintf("%c%d,%d", r, x, y))
				}
				x++
			}
			for _, word := range []string{"requests (", "knobs ", "events "} {
				if i := strings.Index(l, word); i >= 0 {
					out = append(out, fmt.Sprintf("%s%d", word, y))
				}
			}
		}
		return strings.Join(out, " ")
	}
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 36}, {160, 50}} {
		m, c := session(synth.Paper(), theme.New(theme.Options{}))
		empty := New(infoOf(2), theme.New(theme.Options{}))
		want := frameOf(Text(empty, size[0], size[1], 0, false))
		for i := range 20 {
			m.Add(c.Until(c.Now() + 13e6))
			if got := frameOf(Text(m, size[0], size[1], c.Now(), false)); got != want {
				t.Fatalf("%v, look %d: the frame is at %s, was at %s", size, i, got, want)
			}
		}
	}
}

// case J1: any window, any state, resized at random.
func TestAnyWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, cfg := range []synth.Config{synth.Paper(), triple()} {
		m, c := session(cfg, theme.New(theme.Options{}))
		sizes := [][2]int{{0, 0}, {1, 1}, {20, 5}, {0, 24}, {80, 0}, {1, 50}, {60, 16}, {59, 16}, {60, 15}, {80, 24}, {300, 100}}
		for range 100 {
			sizes = append(sizes, [2]int{rng.IntN(301), rng.IntN(101)})
		}
		for i, s := range sizes {
			m.Add(c.Until(c.Now() + 10e6))
			m.UI.Focus = Focus(rng.IntN(int(focusEnd)))
			m.Move(rng.IntN(5) - 2)
			m.UI.Drops = rng.IntN(2) == 0
			if i%3 == 0 {
				m.Inspect(m.slots[rng.IntN(len(m.slots))].id)
				m.Step(-rng.IntN(40))
			} else if i%3 == 1 {
				m.Leave()
			}
			key := frame.NewLine(400, false).Put("", strings.Repeat("keys ", 60)).End()
			check(t, frame.Text(m.Draw(s[0], s[1], c.Now(), []frame.Row{key})), s[0], s[1])
			check(t, Text(m, s[0], s[1], c.Now(), true), s[0], s[1])
			if s[0] > 0 && s[1] > 0 && (s[0] < minWidth || s[1] < minHeight) && s[0] >= 12 && s[1] >= 3 {
				if text := frame.Text(m.Draw(s[0], s[1], c.Now(), nil)); !strings.Contains(text, "q quits") {
					t.Errorf("a window of %v says %q", s, text)
				}
			}
		}
	}
}

// cases J6, J12: plain text has no escape sequence, ASCII nothing else.
func TestPlainAndASCII(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{Profile: colorprofile.TrueColor, ASCII: true}))
	m.UI.Drops = true
	for _, inspect := range []bool{false, true} {
		if inspect {
			m.Inspect(m.slots[0].id)
		}
		for _, plain := range []bool{false, true} {
			text := Text(m, 120, 36, c.Now(), plain)
			check(t, text, 120, 36)
			if plain && strings.Contains(text, "\x1b") {
				t.Errorf("plain text holds an escape sequence")
			}
			for _, r := range ansi.Strip(text) {
				if r > 0x7e {
					t.Fatalf("ASCII screen holds %q:\n%s", r, ansi.Strip(text))
				}
			}
			if plain && !inspect {
				golden(t, "ascii-120x36", text)
			}
			if plain && !regexp.MustCompile(`\[[^\]]+\]`).MatchString(text) {
				t.Errorf("the large model's tokens have no mark:\n%s", text)
			}
		}
	}
}

func TestNoColourKeepsAttributes(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{Profile: colorprofile.Ascii}))
	text := Text(m, 120, 36, c.Now(), false)
	check(t, text, 120, 36)
	if strings.Contains(text, "38;") || strings.Contains(text, "48;") {
		t.Error("colours under NO_COLOR")
	}
	if !regexp.MustCompile(`\x1b\[4[;m]`).MatchString(text) {
		t.Error("the large model's tokens are not underlined")
	}
}

// Text of models, files and errors is shown and never executed.
func TestHostileText(t *testing.T) {
	evil := []string{
		"a\x1b[2J\x1b]0;owned\x07b \u009b31m c\rd\be\x00f\x7f \x1bP+q\x1b\\",
		"日本語のテキスト 한국어 中文 ёжик Ünï \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f \U0001f1e9\U0001f1ea",
		"z\u0351\u0352\u0353\u0354\u0355algo \u202eevil\u202c \ufeff\u200b\u00ad क्षि नि กำ \u1100\u1161\u11a8",
		"\xff\xfe\xc3 broken \xe2\x82", strings.Repeat("W", 500), "\n\n\n\t\n ",
	}
	for _, th := range []theme.Options{{}, {Profile: colorprofile.NoTTY}, {ASCII: true}} {
		cfg := synth.Paper()
		cfg.Texts = evil
		c := synth.New(cfg)
		info := infoOf(2)
		info.Models[0].Name, info.Program, info.GPUNote = evil[0], evil[1], evil[2]
		m := New(info, theme.New(th))
		s := statusOf(cfg)
		s.Router, s.Knobs[0].Name, s.Knobs[0].Help = evil[0], evil[1], evil[2]
		m.SetStatus(s)
		for _, e := range evil {
			c.Host(&tape.Message{Level: tape.Warn, Text: e})
			c.Host(&tape.Router{Phase: tape.RouterRejected, Err: e})
			c.Note(0, event.NoteFault, e)
			c.Host(&tape.Knob{Knob: e, Old: 1, New: 2})
			m.Add(c.Until(c.Now() + 2e9))
			m.Explain = func(Decided) string { return e }
			for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 36}, {161, 51}} {
				m.Leave()
				check(t, Text(m, size[0], size[1], c.Now(), false), size[0], size[1])
				m.Inspect(m.slots[0].id)
				m.Step(-3)
				m.Say(e, true)
				check(t, Text(m, size[0], size[1], c.Now(), false), size[0], size[1])
				m.Say("", false)
			}
		}
	}
}
