package board

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// eventLine is one line of the event pane.
type eventLine struct {
	at    int64
	level tape.Level
	text  string
	count int    // how often the same thing was said in a row
	moved string // knob with its file, policy, plan or clamp: what goes in many steps; "" for other events
	hand  bool   // by a person, who makes the steps of one move soon one after another
	wall  int64  // wall time of that
	from  string // where what was moved stood
	key   string // of a plan: what makes it another one
}

// note adds a line. The same words again only count.
func (m *Model) note(e eventLine) {
	m.evSeq++
	e.count = 1
	// A fault that repeats every step stays one line, wherever it stands among
	// the newest ones.
	for i := len(m.events) - 1; i >= max(0, len(m.events)-8); i-- {
		old := m.events[i]
		if old.text == e.text && old.level == e.level && e.level != tape.Info {
			m.events[i].count, m.events[i].at = old.count+1, e.at
			return
		}
	}
	m.evLines++
	if len(m.events) >= keptEvents {
		m.events = append(m.events[:0], m.events[keptEvents/4:]...)
	}
	m.events = append(m.events, e)
}

// noteCmd makes lines of a core's notes that a person should know.
func (m *Model) noteCmd(p event.Peer, cmd *event.Command, at int64) {
	text := cmd.Text
	switch cmd.Note {
	case event.NoteFault:
		m.note(eventLine{at: at, level: tape.Warn, text: orElse(text, "router fault at "+m.role(p))})
	case event.NoteFull:
		m.note(eventLine{at: at, level: tape.Warn, text: "KV of " + m.role(p) + " is full: a ready request waits for blocks"})
	case event.NoteClamp:
		// The core says it again for each number of active requests.
		e := eventLine{at: at, level: tape.Info, text: m.role(p) + ": " + orElse(text, "B is lowered to stay feasible"), moved: "clamp of " + m.role(p)}
		m.takeMove(&e)
		m.note(e)
	case event.NoteTimeout:
		m.note(eventLine{at: at, level: tape.Error, text: orElse(text, "a peer kept a request of "+m.role(p)+" for too long")})
	case event.NoteResend:
		m.note(eventLine{at: at, level: tape.Info, text: m.role(p) + " asked for a suffix again"})
	}
}

// noteHost makes lines of what happened around the cores.
func (m *Model) noteHost(h tape.Host, at int64) {
	switch h := h.(type) {
	case *tape.Router:
		m.noteRouter(h, at)
	case *tape.Knob:
		if h.Old != h.New {
			m.noteKnob(h, at)
		}
	case *tape.Setting:
		if h.Setting == "paused" {
			m.note(eventLine{at: at, level: tape.Info, text: map[bool]string{true: "paused", false: "running again"}[isOn(h.New)]})
			return
		}
		if h.Old == h.New || h.Old == "" || h.Setting == "batch" || h.Setting == "router" {
			return
		}
		m.noteMove(h.Setting, h.Setting, h.Old, h.New, at)
	case *tape.Message:
		if m.planSaid(h.Text) {
			return
		}
		m.note(eventLine{at: at, level: h.Level, text: h.Text})
	}
}

// sameMove is how long after a step another one belongs to the same move: wall
// time, as long as a person takes for it.
const sameMove = int64(5 * time.Second)

// noteKnob adds a line for a knob that moved.
func (m *Model) noteKnob(h *tape.Knob, at int64) {
	m.noteMove(h.Router+" "+h.Knob, "knob "+h.Knob, short(h.Old), short(h.New), at)
}

// noteMove adds a line for what a person moves in steps: one for the whole move.
func (m *Model) noteMove(id, name, from, to string, at int64) {
	e := eventLine{at: at, level: tape.Info, moved: id, hand: true, from: from}
	if last, ok := m.takeMove(&e); ok {
		e.from = last.from
	}
	e.text = name + " " + e.from + " -> " + to
	m.note(e)
}

// moveBack is how many lines a move may lie back: a plan answers each step.
const moveBack = 3

// takeMove takes the line of the step before e off: what moves in many steps stands
// in one line, the newest. What nobody moves by hand is one move only as long as
// nothing else happens.
func (m *Model) takeMove(e *eventLine) (last eventLine, ok bool) {
	e.wall = m.wall(e.at)
	back := 1
	if e.hand {
		back = moveBack
	}
	for i := len(m.events) - 1; i >= max(0, len(m.events)-back); i-- {
		last = m.events[i]
		if last.moved != e.moved {
			if last.moved == "" || last.hand {
				break
			}
			continue // follows from the step before
		}
		if !e.hand && e.at-last.at >= quiet || e.hand && e.wall-last.wall >= sameMove {
			break
		}
		m.events = slices.Delete(m.events, i, i+1)
		m.evLines--
		return last, true
	}
	return eventLine{}, false
}

// notePolicy says which policy is in force. A table that was planned anew is no
// other policy.
func (m *Model) notePolicy(p *event.Policy, at int64) {
	m.kind = p.Kind
	text := "policy " + p.Kind.String()
	switch p.Kind {
	case event.Fixed:
		m.fixed = p.B
		text += ", B " + p.Vector()
	case event.Table:
		text += ": B follows the active requests"
	case event.LookAhead:
		text += ": waits while it pays"
	case event.LockStep:
		text += ": " + m.role(event.Front) + " waits for all requests"
	}
	if text != m.policy {
		e := eventLine{at: at, level: tape.Info, text: text, moved: "policy", hand: true}
		m.takeMove(&e)
		m.note(e)
	}
	m.policy = text
}

func (m *Model) noteRouter(h *tape.Router, at int64) {
	switch h.Phase {
	case tape.RouterLive:
		m.faulty = nil
		m.note(eventLine{at: at, level: tape.Info, text: "router " + h.File + "@" + hash4(h.Hash) + " is live"})
	case tape.RouterRejected:
		e := eventLine{at: at, level: tape.Error, text: h.Err + "; kept @" + hash4(orElse(h.Hash, m.status.Hash))}
		m.note(e)
		m.faulty = &e
	case tape.RouterCleared:
		m.faulty = nil
		m.note(eventLine{at: at, level: tape.Info, text: "router " + h.File + " is good again"})
	}
}

func isOn(s string) bool {
	on, err := strconv.ParseBool(s)
	return err == nil && on || s == "on" || s == "yes" || s == "paused"
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func hash4(h string) string { return h[:min(4, len(h))] }

func num(n uint64) string { return "#" + strconv.FormatUint(n, 10) }

// short writes a number with as many digits as a person wants to read.
func short(v float64) string {
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// clock writes session time as m:ss or h:mm:ss.
func clock(ns int64) string {
	s := max(ns, 0) / 1e9
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}
