package app

import (
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/keys"
)

// hints is the last line: what the keys do here, and why one is off.
func (m *model) hints() frame.Row {
	th := m.theme
	l := frame.NewLine(m.w, th.G.ASCII)
	end := "? help  q quit"
	l.Put("", " ")
	if m.at == keys.Menu {
		l.Put(th.Strong, "export as: ")
	}
	room := m.w - len(end) - 1
	for _, b := range keys.Table(m.at) {
		if b.Hint == "" || b.Show == "" || b.Action == keys.Help || b.Action == keys.Quit {
			continue
		}
		hint := b.Hint
		switch b.Action {
		case keys.Pause:
			if m.a.board.Status().Paused {
				hint = "go on"
			}
		case keys.RaiseB:
			if n := len(m.info.Models); n > 1 {
				hint = "B " + event.Role(m.a.board.UI.B, n)
			}
		}
		why := m.offHint(b.Action)
		need := frame.Width(b.Show) + 1 + frame.Width(hint) + 2
		if l.W()+need > room || why != "" && !th.Color && l.W()+need+frame.Width(why)+3 > room {
			continue // without colours only the reason tells that it is off
		}
		if why != "" {
			l.Put(th.KeyOff, b.Show+" "+hint)
			if why = " (" + why + ")"; l.W()+frame.Width(why)+2 <= room {
				l.Put(th.Dim, why)
			}
		} else {
			l.Put(th.Key, b.Show).Put(th.Dim, " "+hint)
		}
		l.Put("", "  ")
	}
	l.To(m.w - len(end) - 1)
	l.Put(th.Key, "?").Put(th.Dim, " help  ").Put(th.Key, "q").Put(th.Dim, " quit")
	return l.End()
}

// offHint is off in as few words as the last line has room for.
func (m *model) offHint(act keys.Action) string {
	switch act {
	case keys.KnobUp, keys.RaiseB, keys.More:
		if act == keys.KnobUp {
			if _, ok := m.a.board.PickedKnob(); !ok {
				return "no knobs here"
			}
		}
		return ""
	case keys.Faster:
		if m.a.board.Status().Clock == "live" {
			return "paced only"
		}
		return ""
	}
	return m.off(act)
}

// help lists the keys and the marks.
func (m *model) help() []frame.Row {
	th, w, h := m.theme, m.w, m.h
	var lines []frame.Row
	add := func(l *frame.Line) { lines = append(lines, l.End()) }
	line := func() *frame.Line { return frame.NewLine(w, th.G.ASCII) }
	section := func(name string, c keys.Context) {
		add(line().Put("", " ").Put(th.Title, name))
		for _, b := range keys.Table(c) {
			if b.Help == "" {
				continue
			}
			l := line().Put("", "   ").Put(th.Key, pad(b.Show, 12)).Put("", b.Help)
			if why := m.offHint(b.Action); why != "" && c == m.under {
				l.Put(th.Dim, " ("+why+")")
			}
			add(l)
		}
		add(line())
	}
	section("board", keys.Board)
	section("inspect", keys.Inspector)
	add(line().Put("", " ").Put(th.Title, "marks"))
	n := len(m.info.Models)
	for i := range m.info.Models {
		p := event.Peer(i)
		left, right := th.Brackets(p, n)
		mark := [...]string{"plain text", "bold", "underlined"}[min(i, 1)]
		if i == n-1 && n > 1 {
			mark = "underlined"
		}
		if th.Plain {
			mark = map[bool]string{true: "plain text", false: "between " + left + " and " + right}[left == ""]
		}
		add(line().Put("", "   ").Put(th.Token(p, n), left+m.info.Models[i].Role+right).Put("", strings.Repeat(" ", max(12-len(left+m.info.Models[i].Role+right), 1))).Put("", "written by "+m.info.Models[i].Name+", "+mark))
	}
	add(line().Put("", "   ").Put(th.Dropped, "xgonex").Put("", "      a candidate that was dropped, between x"))
	add(line().Put("", "   ").Put(th.Pending, "> large").Put("", "     pending: away at a peer, waiting for its batch"))
	add(line().Put("", "   ").Put(th.Bad, "! ").Put("", "          a warning or an error"))
	add(line())
	add(line().Put(th.Dim, " Rates are of the last 10 s; a change of router, knob, B, clock, speed or concurrency starts them anew."))
	if n := len(lines) - (h - 1); m.helpTop > max(n, 0) {
		m.helpTop = max(n, 0)
	}
	out := append([]frame.Row(nil), lines[m.helpTop:min(len(lines), m.helpTop+h-1)]...)
	for len(out) < h-1 {
		out = append(out, frame.Row{})
	}
	l := line().Put("", " ").Put(th.Key, "esc").Put(th.Dim, " back  ")
	if len(lines) > h-1 {
		l.Put(th.Key, "up/down").Put(th.Dim, " scroll  ")
	}
	l.Put(th.Key, "q").Put(th.Dim, " quit")
	return append(out, l.End())
}

func pad(s string, w int) string { return s + strings.Repeat(" ", max(w-frame.Width(s), 1)) }
