package board

import (
	"fmt"
	"strconv"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
)

// bottomRows are knobs and events side by side: a title and lay.bottom lines.
func (m *Model) bottomRows(lay layout) []frame.Row {
	left := lay.w * 2 / 5
	left = min(max(left, 28), 72)
	right := lay.w - left - 2
	return frame.Beside(2, m.theme.G.ASCII, []int{left, right},
		m.knobRows(left, lay.bottom), m.eventRows(right, lay.bottom))
}

func (m *Model) knobRows(w, n int) []frame.Row {
	th, s := m.theme, &m.status
	focus := m.UI.Focus == FocusKnobs
	lines := n - 1                // the last one is B
	below := lines - len(s.Knobs) // lines for what the picked knob is
	first, tail := 0, ""
	if below < 0 {
		below = min(lines/3, 1)
		lines -= below
		first = min(max(m.UI.Knob-lines+1, 0), len(s.Knobs)-lines)
		tail = fmt.Sprintf(" %d-%d of %d ", first+1, first+lines, len(s.Knobs))
	}
	out := []frame.Row{m.rule(w, "knobs  "+s.Router, tail, focus)}
	name := 4
	for i := range s.Knobs {
		name = max(name, frame.Width(s.Knobs[i].Name))
	}
	name = min(name, w-knobValue) // the slider goes first
	for i := first; i < min(first+lines, len(s.Knobs)); i++ {
		out = append(out, m.knobRow(w, name, &s.Knobs[i], i == m.UI.Knob, focus, below < 1))
	}
	if k, ok := m.PickedKnob(); ok && below > 0 {
		for _, text := range knobText(&k, w-5, below) {
			out = append(out, m.line.Start(w).Put("", "    ").PutClip(th.Dim, text, w-5).End())
		}
	}
	if len(s.Knobs) == 0 && lines > 0 {
		l := m.line.Start(w)
		out = append(out, l.Put("", "  ").PutClip(th.Dim, "this router declares no knob (param)", w-2).End())
	}
	for len(out) < n {
		out = append(out, frame.Row{})
	}
	return append(out, m.bRow(w))
}

// knobText says in at most n lines what a knob is, and how far it goes where
// there is room for that as well.
func knobText(k *KnobState, w, n int) []string {
	text := fmt.Sprintf("%s to %s, default %s", short(k.Min), short(k.Max), short(k.Default))
	if k.Help != "" {
		text = k.Help + "; " + text
	}
	lines := wrapWords(text, w, n)
	if last := len(lines) - 1; frame.Width(lines[last]) > w {
		return wrapWords(k.Help, w, n)
	}
	return lines
}

// wrapWords breaks a text into at most n lines; the last one holds the rest.
func wrapWords(text string, w, n int) []string {
	var out []string
	for text = strings.TrimSpace(text); text != "" && len(out) < n; {
		head := text
		if len(out) < n-1 && frame.Width(text) > w {
			fit := len(strings.TrimSuffix(frame.Clip(text, w, true), "~"))
			if cut := strings.LastIndexByte(text[:min(fit+1, len(text))], ' '); cut > 0 {
				head = text[:cut]
			}
		}
		out = append(out, head)
		text = strings.TrimSpace(text[len(head):])
	}
	return out
}

// knobValue is the room for the mark before a knob's name and the value behind it.
const knobValue = 10

// leastHelp is the room below which the beginning of a knob's help says nothing.
const leastHelp = 20

func (m *Model) knobRow(w, name int, k *KnobState, picked, focus, help bool) frame.Row {
	th := m.theme
	l := m.line.Start(w)
	mark, st := " ", th.Text
	if picked {
		mark, st = th.G.Cursor, th.Strong
		if focus {
			st = th.Selected
		}
	}
	l.Put(th.Focus, mark).Put("", " ").PutClip(st, k.Name, name).To(2 + name)
	value := short(k.Value)
	slider := min(w-name-14, 24, w/3)
	at := 0.0
	if k.Max > k.Min {
		at = (k.Value - k.Min) / (k.Max - k.Min)
	}
	l.Put("", " ")
	if slider >= 6 {
		frame.Slider(l, th.G, slider, th.Border, th.Title, at)
		l.Put("", " ")
	}
	vs := th.Strong
	if k.Value != k.Default {
		vs = th.Title
	}
	l.Put(vs, fmt.Sprintf("%-6s", value))
	if help && k.Help != "" && l.Room() > leastHelp {
		l.Put("", " ").PutClip(th.Dim, k.Help, l.Room())
	}
	return l.End()
}

// bRow shows the policy, its thresholds and which one the keys move.
func (m *Model) bRow(w int) frame.Row {
	th := m.theme
	policy := orElse(m.status.Policy, event.Eager.String())
	b := m.Thresholds()
	need := 0
	for i := range b {
		need += 3 + frame.Width(m.role(peer(i))) + len(strconv.Itoa(b[i]))
	}
	named := true
	head := "  " + policy + "  B"
	for _, try := range []struct {
		head  string
		named bool
	}{{head, true}, {"  " + policy, true}, {head, false}, {"  " + policy, false}, {"  B", false}} {
		head, named = try.head, try.named
		if size := frame.Width(head) + map[bool]int{true: need, false: 3 * len(b)}[named]; size <= w {
			break
		}
	}
	l := m.line.Start(w)
	l.Put(th.Text, head)
	for i := range b {
		p := peer(i)
		l.Put("", " ")
		if p == m.UI.B {
			l.Put(th.Strong, th.G.Cursor)
		} else {
			l.Put("", " ")
		}
		if named {
			l.Put(th.Role(p, m.n), m.role(p)+" ")
		}
		if policy == event.LookAhead.String() { // it has none
			l.Put(th.Strong, "-")
			continue
		}
		l.Put(th.Strong, strconv.Itoa(b[i]))
	}
	return l.End()
}

func (m *Model) eventRows(w, n int) []frame.Row {
	back := m.UI.back(m)
	title := "events"
	tail := ""
	if back > 0 {
		tail = fmt.Sprintf(" %d newer ", back)
		if fresh := m.evLines - m.UI.evSeen; fresh > 0 {
			tail = fmt.Sprintf(" %d new ", fresh)
		}
	}
	out := []frame.Row{m.rule(w, title, tail, m.UI.Focus == FocusEvents)}
	pinned := m.faulty != nil && back == 0
	if pinned { // a broken router stays in sight, in full, until it is good
		out = append(out, m.eventLines(w, m.faulty, n)...)
	}
	if back == 0 { // so does who waits for whom, for as long as it lasts
		for _, e := range m.waits() {
			if len(out) > n {
				break
			}
			out = append(out, m.eventLines(w, &e, min(2, n+1-len(out)))...)
		}
	}
	for i := len(m.events) - 1 - back; i >= 0 && len(out) <= n; i-- {
		e := &m.events[i]
		if pinned && e.text == m.faulty.text {
			continue
		}
		most := 1
		if e.level != tape.Info {
			most = 2
		}
		out = append(out, m.eventLines(w, e, min(most, n+1-len(out)))...)
	}
	for len(out) < n+1 {
		out = append(out, frame.Row{})
	}
	return out
}

// eventLines is an event in at most n lines.
func (m *Model) eventLines(w int, e *eventLine, n int) []frame.Row {
	th := m.theme
	st, mark := th.Text, ""
	switch e.level {
	case tape.Error:
		st, mark = th.Bad, "! "
	case tape.Warn:
		st, mark = th.Warn, "! "
	}
	at := " " + clock(e.at) + " "
	times := ""
	if e.count > 1 {
		times = fmt.Sprintf(" %s%d", th.G.Times, e.count)
	}
	indent := len(at) + len(mark)
	room := w - indent - frame.Width(times)
	texts := []string{e.text}
	if n > 1 {
		texts = wrapWords(e.text, room, n)
	}
	out := make([]frame.Row, 0, len(texts))
	for i, text := range texts {
		l := m.line.Start(w)
		if i == 0 {
			l.Put(th.Dim, at).Put(st, mark)
		}
		l.To(indent).PutClip(st, text, room)
		if i == len(texts)-1 {
			l.Put(th.Dim, times)
		}
		out = append(out, l.End())
	}
	return out
}

// machineRow says what the machine does.
func (m *Model) machineRow(w int) frame.Row {
	th := m.theme
	l := m.line.Start(w)
	t := m.machine
	if m.status.Virtual() {
		return m.virtualRow(l)
	}
	if t == nil {
		l.Put(th.Dim, " cpu -")
		if m.info.GPUNote != "" {
			l.Put(th.Dim, "   gpu: ").PutClip(th.Dim, m.info.GPUNote, l.Room())
		}
		return l.End()
	}
	l.Put(th.Dim, " cpu").Put(th.Strong, fmt.Sprintf("%4.0f %%", t.CPU)).Put(th.Dim, " of a core, machine")
	l.Put(th.Strong, fmt.Sprintf("%4.0f %%", t.Machine)).Put(th.Dim, fmt.Sprintf(" of %d", t.Cores))
	l.Put(th.Dim, "   memory ").Put(th.Strong, size(t.RSS))
	note := orElse(t.GPUNote, m.info.GPUNote)
	if len(t.GPUs) == 0 && note != "" {
		l.Put(th.Dim, "   gpu: ").PutClip(th.Dim, note, l.Room())
	}
	for _, g := range t.GPUs {
		if l.Room() < 30 {
			break
		}
		l.Put(th.Dim, "   ").PutClip(th.Dim, g.Device, 20).Put(th.Strong, fmt.Sprintf("%4.0f %%", g.Util))
		l.Put(th.Dim, " "+size(g.Used)+" of "+size(g.Total)).Put(th.Dim, fmt.Sprintf(" %.0f W", g.Watts))
	}
	return l.End()
}

// virtualRow says what takes the place of a machine in virtual time: how much of
// that there was, in how much of ours, and how fast it goes.
func (m *Model) virtualRow(l *frame.Line) frame.Row {
	th, s := m.theme, &m.status
	l.Put(th.Dim, " virtual time ").Put(th.Strong, clock(m.latest)).Put(th.Dim, " in ").Put(th.Strong, clock(s.Wall)).Put(th.Dim, " here")
	if s.Reached > 0 && !s.Paused {
		l.Put(th.Dim, "   goes ").Put(th.Strong, m.reached())
		if m.behind() {
			l.Put(th.Warn, fmt.Sprintf(" of %s asked for: this machine is the limit", m.speed(s.Speed)))
		}
	}
	return l.PutClip(th.Dim, "   "+tokensFrom(m.info.Tokens), l.Room()).End()
}
