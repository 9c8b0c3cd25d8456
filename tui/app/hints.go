package app

import (
	"cmp"
	"slices"

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
	for _, b := range m.hinted() {
		if b.Hint == "" || b.Show == "" || b.Action == keys.Help || b.Action == keys.Quit {
			continue
		}
		hint := b.Hint
		switch b.Action {
		case keys.Pause:
			if m.a.board.Status().Paused {
				hint = "go on"
			}
		case keys.Plan:
			if m.at == keys.Planning {
				hint = "close"
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

// hinted is the catalogue in the order of the last line. In virtual time speed is
// what one turns most.
func (m *model) hinted() []keys.Binding {
	table := keys.Table(m.at)
	if m.virtual() {
		place := func(b keys.Binding) int {
			switch b.Action {
			case keys.Pause:
				return 0
			case keys.Faster:
				return 1
			case keys.Clock:
				return 3
			}
			return 2
		}
		slices.SortStableFunc(table, func(x, y keys.Binding) int { return cmp.Compare(place(x), place(y)) })
	}
	return table
}

// offHint is off in as few words as the last line has room for.
func (m *model) offHint(act keys.Action) string {
	switch act {
	case keys.More:
		if m.info.Arrivals != "" {
			return "by arrivals"
		}
		return ""
	case keys.KnobUp, keys.RaiseB:
		if act == keys.KnobUp {
			if _, ok := m.a.board.PickedKnob(); !ok {
				return "no knobs here"
			}
		}
		return ""
	case keys.NextSwitch, keys.CopyToken: // its partner may be on, or another token may come
		return ""
	case keys.Faster:
		if m.a.board.Status().Clock == "live" {
			return "paced only"
		}
		return ""
	case keys.Clock:
		switch s := m.a.board.Status(); {
		case s.Virtual():
			return "virtual"
		case nextClock(s.Clock) == "":
			return "no models here"
		}
	}
	return m.off(act)
}
