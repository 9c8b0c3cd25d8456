package board

import (
	"time"

	"tokenrouter/runtime/event"
)

// Focus is the pane that up and down move in.
type Focus uint8

// The panes in the order of the tab key.
const (
	FocusKnobs Focus = iota
	FocusRequests
	FocusEvents
	focusEnd
)

// Next is the pane behind f.
func (f Focus) Next() Focus { return (f + 1) % focusEnd }

func (f Focus) String() string { return [...]string{"knobs", "requests", "events"}[f%focusEnd] }

// UI is what the keys change of the board itself.
type UI struct {
	Focus Focus
	Knob  int        // picked knob
	Slot  int        // picked row of the request pane
	B     event.Peer // subserver whose B the keys move
	Drops bool       // dropped candidates are shown in the streams

	toast   string // answer to the last key, above the keys
	alarm   bool   // it is an error
	toastAt int64  // wall time when it was first drawn, 0 not yet

	top     int // first row of the request pane
	evBack  int // events between the newest and the one at the top; 0 follows
	evSeen  int // lines that had been added when the pane left the newest one
	inspect *inspector
}

func newUI() UI { return UI{B: event.None} }

// clamp keeps picks inside what there is.
func (u *UI) clamp(m *Model) {
	u.Knob = min(max(u.Knob, 0), max(len(m.status.Knobs)-1, 0))
	u.Slot = min(max(u.Slot, 0), max(len(m.shownSlots())-1, 0))
	if u.B < 0 || int(u.B) >= m.n {
		u.B = event.Peer(m.n - 1)
	}
}

// NextFocus moves the focus to the next pane.
func (m *Model) NextFocus() { m.UI.Focus = m.UI.Focus.Next() }

// Move moves the pick of the pane in focus by d rows.
func (m *Model) Move(d int) {
	u := &m.UI
	if u.inspect != nil {
		u.inspect.scroll(m, d)
		return
	}
	switch u.Focus {
	case FocusKnobs:
		u.Knob += d
	case FocusRequests:
		u.Slot += d
	case FocusEvents:
		m.moveEvents(d)
	}
	u.clamp(m)
}

// moveEvents scrolls the event pane; d > 0 goes to older lines.
func (m *Model) moveEvents(d int) {
	u := &m.UI
	if u.evBack == 0 {
		u.evSeen = m.evLines
	}
	u.evBack = min(max(u.back(m)+d, 0), max(len(m.events)-1, 0))
	u.evSeen = m.evLines
}

// back is how many lines lie above the pane now: new ones push it down, so that
// what is being read stays where it is.
func (u *UI) back(m *Model) int {
	if u.evBack == 0 {
		return 0
	}
	return min(u.evBack+m.evLines-u.evSeen, max(len(m.events)-1, 0))
}

// PickedKnob is the knob that left and right move.
func (m *Model) PickedKnob() (KnobState, bool) {
	if m.UI.Knob >= len(m.status.Knobs) {
		return KnobState{}, false
	}
	return m.status.Knobs[m.UI.Knob], true
}

// shownSlots are the rows of the request pane: places that a lower concurrency
// has left behind go when their request is finished.
func (m *Model) shownSlots() []*request {
	n := len(m.slots)
	for n > 0 && n > max(m.status.Concurrency, 1) && m.slots[n-1].state == finished {
		n--
	}
	return m.slots[:n]
}

// Picked is the request that enter looks into; ok is false when there is none.
func (m *Model) Picked() (id event.ReqID, ok bool) {
	s := m.shownSlots()
	if m.UI.Slot >= len(s) {
		return 0, false
	}
	return s[m.UI.Slot].id, true
}

// Say shows the answer to a key, for a while.
func (m *Model) Say(text string, alarm bool) {
	m.UI.toast, m.UI.alarm, m.UI.toastAt = text, alarm, 0
}

// How long an answer stays, ns of wall time; it stands over the last row.
const (
	toastFor = int64(6 * time.Second)
	alarmFor = int64(20 * time.Second)
)

// said is the answer that is shown at wall time now, "" for none.
func (u *UI) said(now int64) string {
	if u.toast == "" {
		return ""
	}
	if u.toastAt == 0 {
		u.toastAt = max(now, 1)
	}
	if age := now - u.toastAt; age > alarmFor || age > toastFor && !u.alarm {
		u.toast = ""
	}
	return u.toast
}
