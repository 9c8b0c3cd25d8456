package board

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// case J13: what is being read stays where it is while new lines come.
func TestEventsDoNotJump(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	for i := range 20 {
		c.Host(&tape.Message{Level: tape.Info, Text: fmt.Sprintf("line %d", i)})
	}
	m.Add(c.Until(c.Now() + 1e6))
	m.UI.Focus = FocusEvents
	m.Move(6)
	pane := func() string {
		var out []string
		for _, l := range strings.Split(Text(m, 120, 36, c.Now(), true), "\n") {
			if i := strings.Index(l, "line "); i >= 0 {
				out = append(out, strings.TrimSpace(l[i:]))
			}
		}
		return strings.Join(out, ",")
	}
	want := "line 13,line 12,line 11,line 10"
	if got := pane(); got != want {
		t.Fatalf("six lines down: %s", got)
	}
	for i := range 5 {
		c.Host(&tape.Message{Level: tape.Info, Text: fmt.Sprintf("fresh %d", i)})
		m.Add(c.Until(c.Now() + 1e6))
		if got := pane(); got != want {
			t.Fatalf("after %d new lines: %s", i+1, got)
		}
	}
	if text := Text(m, 120, 36, c.Now(), true); !strings.Contains(text, "5 new") {
		t.Errorf("new lines are not announced:\n%s", text)
	}
	m.Move(-100)
	if text := Text(m, 120, 36, c.Now(), true); !strings.Contains(text, "fresh 4") || strings.Contains(text, " new ") {
		t.Errorf("back at the newest:\n%s", text)
	}
}

// case J13, in the closer look: the text stands still while tokens arrive.
func TestInspectorDoesNotJump(t *testing.T) {
	cfg := synth.Paper()
	cfg.Tokens = 700
	m, c := session(cfg, theme.New(theme.Options{}))
	id := m.slots[0].id
	for _, r := range m.slots {
		if r.len() < m.reqs[id].len() {
			id = r.id
		}
	}
	if !m.Inspect(id) {
		t.Fatal("not there")
	}
	m.Add(c.Until(c.Now() + 3e9))
	Text(m, 100, 30, c.Now(), true)
	m.Step(-10)
	at := m.UI.inspect.cur
	body := func() string {
		rows := strings.Split(Text(m, 100, 30, c.Now(), true), "\n")
		return strings.Join(rows[2:20], "\n")
	}
	before := body()
	for range 30 {
		m.Add(c.Until(c.Now() + 20e6))
	}
	m.UI.inspect.req.state = ready // it is not over, or nothing new would be said
	after := Text(m, 100, 30, c.Now(), true)
	if m.UI.inspect.cur != at || !strings.Contains(after, " new ") {
		t.Errorf("the cursor is at %d, was at %d:\n%s", m.UI.inspect.cur, at, after)
	}
	for y, l := range strings.Split(before, "\n") {
		l, _, _ = strings.Cut(l, "│")
		if l = strings.TrimSpace(l); l != "" && !strings.Contains(after, l) {
			t.Errorf("row %d %q is gone:\n%s", y, l, after)
		}
	}
	m.Edge(true)
	if m.UI.inspect.cursor() != m.reqs[id].len()-1 {
		t.Error("the end is not the newest token")
	}
	m.Edge(false)
	if m.UI.inspect.cursor() != m.reqs[id].gone {
		t.Error("the beginning is not the first token that is kept")
	}
}

func TestInspectorTells(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	m.Explain = func(d Decided) string {
		return fmt.Sprintf("r2r.lua:%d  at %d %s", 7+d.Core, d.Pos, d.Row.Action)
	}
	r := m.done[len(m.done)-1]
	if !m.Inspect(r.id) {
		t.Fatal("not there")
	}
	m.Edge(false)
	seen := 0
	for m.Switch(1) {
		seen++
		tok := m.UI.inspect.current()
		text := Text(m, 120, 40, c.Now(), true)
		check(t, text, 120, 40)
		pos := r.prompt + m.UI.inspect.cur
		want := []string{
			fmt.Sprintf("position  %d  token %d of %d", pos, m.UI.inspect.cur+1, r.len()),
			"writer    " + m.role(tok.writer),
			fmt.Sprintf("%.3f nats", tok.by.row.Output.Entropy),
			fmt.Sprintf("batch     %d of %s, rows %d", tok.by.batch.id, m.role(tok.writer), tok.by.batch.rows),
			fmt.Sprintf("%s: r2r.lua:%d  at %d KEEP", m.role(tok.writer), 7+tok.writer, pos),
		}
		if tok.writer == 1 {
			want = append(want, "dropped   x", fmt.Sprintf("small: r2r.lua:7  at %d DROP", pos), "small had said")
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Fatalf("token %d: no %q in\n%s", m.UI.inspect.cur, w, text)
			}
		}
	}
	if seen != r.switches || seen < 5 {
		t.Errorf("walked over %d switches of %d", seen, r.switches)
	}
	if m.Switch(1) {
		t.Error("a switch behind the last one")
	}
	back := 0
	for m.Switch(-1) {
		back++
	}
	if back != seen-1 {
		t.Errorf("%d switches back, %d forth", back, seen)
	}
	golden(t, "inspect-120x36", Text(m, 120, 36, c.Now(), true))
	golden(t, "inspect-80x24", Text(m, 80, 24, c.Now(), true))
}

// Up and down walk through the rows of the text.
func TestInspectorScrolls(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	m.Inspect(m.done[0].id)
	m.Edge(false)
	Text(m, 100, 30, c.Now(), true)
	in := m.UI.inspect
	for i := range in.rows {
		if in.cur != in.rows[i].from {
			t.Fatalf("row %d: cursor at %d", i, in.cur)
		}
		m.Move(1)
	}
	m.Move(-100)
	if in.cur >= in.rows[0].end {
		t.Errorf("not back in the first row: %d", in.cur)
	}
}

// The pick stays inside what there is, and the pane follows it.
func TestRequestPaneScrolls(t *testing.T) {
	cfg := synth.Paper()
	cfg.N = 40
	m, c := session(cfg, theme.New(theme.Options{}))
	m.UI.Focus = FocusRequests
	for i := range 45 {
		text := Text(m, 80, 24, c.Now(), true)
		id, ok := m.Picked()
		if !ok || !strings.Contains(text, m.theme.G.Cursor+num(uint64(id))) {
			t.Fatalf("pick %d, request %d is not on the screen:\n%s", i, id, text)
		}
		m.Move(1)
	}
	if m.UI.Slot != 39 {
		t.Errorf("the pick is at %d of 40", m.UI.Slot)
	}
	m.Move(-100)
	if m.UI.Slot != 0 {
		t.Errorf("the pick is at %d", m.UI.Slot)
	}
}

func TestDropsInTheStreams(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	struck := string(m.theme.Dropped)
	if strings.Contains(Text(m, 120, 36, c.Now(), false), struck) {
		t.Error("dropped candidates show without being asked for")
	}
	m.UI.Drops = true
	if !strings.Contains(Text(m, 120, 36, c.Now(), false), struck) {
		t.Error("dropped candidates do not show")
	}
}

func TestFaultsCount(t *testing.T) {
	m := New(infoOf(2), theme.New(theme.Options{}))
	for range 12 {
		m.Add([]tape.Record{{Core: 0, Kind: tape.KindCommand, Command: &event.Command{Kind: event.Note, Note: event.NoteFault, Text: "r2r.lua:9 no role lagre"}}})
	}
	text := Text(m, 120, 36, 1e9, true)
	if !strings.Contains(text, "! r2r.lua:9 no role lagre ×12") || len(m.events) != 1 {
		t.Errorf("twelve faults:\n%s", text)
	}
}

// A request pane of one line moves by half a line and keeps its rows cached.
func TestFlowRows(t *testing.T) {
	m, _ := session(synth.Paper(), theme.New(theme.Options{}))
	for _, r := range m.done {
		full := r.tail(flowKey{width: 40, theme: m.theme}, maxRows, 2)
		joined := ""
		for _, row := range full {
			if row.W > 40 {
				t.Fatalf("row %q is %d wide", row.S, row.W)
			}
			joined += frame.Clean(sgr.ReplaceAllString(row.S, ""), false)
		}
		want := ""
		for i := range r.tokens {
			want += r.tokens[i].text
		}
		strip := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if strip(joined) != strip(want) {
			t.Fatalf("rows say %q, tokens %q", joined, want)
		}
		r.flow = flow{}
		key := flowKey{width: 40, overlap: true, theme: m.theme}
		all := r.tokens
		for n := range all {
			r.tokens = all[:n+1]
			row := r.tail(key, 1, 2)[0]
			if row.W > 40 || n > 12 && row.W < 8 {
				t.Fatalf("after %d tokens the line is %d wide: %q", n+1, row.W, row.S)
			}
		}
	}
}

// A broken router stays in sight, however much happens, until it is good.
func TestBrokenRouterStaysInSight(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	c.Host(&tape.Router{Phase: tape.RouterRejected, File: "r2r.lua", Err: "r2r.lua:3: no end"})
	for i := range 30 {
		c.Host(&tape.Message{Level: tape.Info, Text: fmt.Sprintf("line %d", i)})
	}
	m.Add(c.Until(c.Now() + 1e6))
	want := "! r2r.lua:3: no end; kept @3f2a"
	if text := Text(m, 80, 24, c.Now(), true); strings.Count(text, want) != 1 || !strings.Contains(text, "! r2r.lua@") {
		t.Errorf("not on the screen once:\n%s", text)
	}
	c.Host(&tape.Router{Phase: tape.RouterCleared, File: "r2r.lua"})
	m.Add(c.Until(c.Now() + 1e6))
	if text := Text(m, 80, 24, c.Now(), true); strings.Contains(text, want) || strings.Contains(text, "! r2r.lua@") {
		t.Errorf("still on the screen:\n%s", text)
	}
}
