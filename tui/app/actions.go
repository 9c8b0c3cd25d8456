package app

import (
	"math"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/board"
	"tokenrouter/tui/keys"
)

// key does what a key asks for.
func (m *model) key(k string) tea.Cmd {
	b := m.a.board
	act := keys.Find(m.at, k)
	if act == "" {
		return nil
	}
	b.Say("", false)
	if why := m.off(act); why != "" {
		m.say("%s is off: %s", act, why)
		return nil
	}
	switch act {
	case keys.Quit:
		return m.quit()
	case keys.Help:
		m.toggleHelp()
	case keys.Back:
		m.back()
	case keys.Up, keys.Down:
		m.move(act)
	case keys.Focus:
		b.NextFocus()
	case keys.Drops:
		b.UI.Drops = !b.UI.Drops
	case keys.Inspect:
		if id, ok := b.Picked(); ok && b.Inspect(id) {
			m.at = keys.Inspector
		}
	case keys.Left:
		b.Step(-1)
	case keys.Right:
		b.Step(1)
	case keys.First, keys.Last:
		b.Edge(act == keys.Last)
	case keys.NextSwitch:
		b.Switch(1)
	case keys.PrevSwitch:
		b.Switch(-1)
	case keys.Plan:
		m.togglePlan()
	case keys.Export:
		m.under, m.at = m.at, keys.Menu
	case keys.AsJSONL, keys.AsPerfetto:
		return m.export(act)
	case keys.Copy, keys.CopyToken:
		return m.copy(act == keys.CopyToken)
	case keys.Edit:
		m.say("opening the router in an editor")
		return m.edit()
	default:
		m.change(act)
	}
	return nil
}

// change calls the runtime.
func (m *model) change(act keys.Action) {
	rt, b, s := m.a.rt, m.a.board, m.a.board.Status()
	var err error
	switch act {
	case keys.Pause:
		rt.SetPaused(!s.Paused)
	case keys.Clock:
		err = rt.SetClock(nextClock(s.Clock))
	case keys.Slower:
		err = rt.SetSpeed(nextSpeed(&s, -1))
	case keys.Faster:
		err = rt.SetSpeed(nextSpeed(&s, 1))
	case keys.Fewer:
		err = rt.SetConcurrency(nextConcurrency(s.Concurrency, -1))
	case keys.More:
		err = rt.SetConcurrency(nextConcurrency(s.Concurrency, 1))
	case keys.NextRouter:
		err = m.stepRouter(s, 1)
	case keys.PrevRouter:
		err = m.stepRouter(s, -1)
	case keys.KnobDown, keys.KnobUp, keys.KnobBigDown, keys.KnobBigUp:
		if k, ok := b.PickedKnob(); ok {
			err = rt.SetKnob(k.Name, moveKnob(k, knobMoves[act]))
		}
	case keys.PickB:
		b.UI.B = (b.UI.B + 1) % event.Peer(len(m.info.Models))
	case keys.LowerB, keys.RaiseB:
		d := 1
		if act == keys.LowerB {
			d = -1
		}
		err = rt.SetB(b.UI.B, m.threshold(b.UI.B)+d)
	case keys.Policy:
		err = rt.SetPolicy(m.nextPolicy())
	}
	if err != nil {
		b.Say(err.Error(), true)
	}
	m.status()
	if now := b.Status(); err == nil && (act == keys.Policy || (act == keys.LowerB || act == keys.RaiseB) && now.Policy != s.Policy) {
		m.sayPolicy(act, s.Policy, now)
	}
}

// sayPolicy tells which policy is in force now, and that moving B by hand has
// ended the one before.
func (m *model) sayPolicy(act keys.Action, was string, now board.Status) {
	text := "policy " + now.Policy
	switch {
	case now.Policy == event.Fixed.String():
		text += ", B " + strings.TrimPrefix(form(now.B), event.Fixed.String()+":")
	case m.a.board.Planned():
	case now.Policy == event.Table.String(), now.Policy == event.LookAhead.String():
		text += ": acts eagerly until there is a plan"
	}
	if act != keys.Policy {
		text += " in place of " + was + "; P goes through the policies"
	}
	m.say("%s", text)
}

// knobMoves says how many steps a key moves a knob.
var knobMoves = map[keys.Action]int{keys.KnobDown: -1, keys.KnobUp: 1, keys.KnobBigDown: -10, keys.KnobBigUp: 10}

// off says why an action cannot be taken now, "" if it can.
func (m *model) off(act keys.Action) string {
	b, s := m.a.board, m.a.board.Status()
	if m.bye && act != keys.Quit {
		return "quitting"
	}
	switch act {
	case keys.Slower, keys.Faster:
		switch {
		case s.Clock == "live":
			return "live runs as fast as it can"
		case act == keys.Slower && nextSpeed(&s, -1) == s.Speed, act == keys.Faster && nextSpeed(&s, 1) == s.Speed:
			return "no further"
		}
	case keys.Clock:
		switch {
		case s.Virtual():
			return "virtual time stays virtual"
		case nextClock(s.Clock) == "":
			return "no model is here that could run live"
		}
	case keys.Fewer, keys.More:
		switch {
		case m.info.Arrivals != "":
			return "requests come by " + m.info.Arrivals
		case act == keys.Fewer && s.Concurrency <= 1:
			return "1 is the least"
		}
	case keys.NextRouter, keys.PrevRouter:
		if len(s.Routers) < 2 {
			return "one router only"
		}
	case keys.KnobDown, keys.KnobUp, keys.KnobBigDown, keys.KnobBigUp:
		k, ok := b.PickedKnob()
		switch {
		case !ok:
			return "no knobs here"
		case moveKnob(k, knobMoves[act]) == k.Value:
			return "at its end"
		}
	case keys.LowerB:
		if m.threshold(b.UI.B) <= 1 {
			return "1 is the least"
		}
	case keys.Policy:
		if len(m.info.Models) < 2 {
			return "one subserver waits for nobody"
		}
	case keys.PickB:
		if len(m.info.Models) < 2 {
			return "one subserver only"
		}
	case keys.Inspect, keys.Copy:
		_, ok := b.Picked()
		if _, in := b.Inspecting(); !ok && !in {
			return "no request yet"
		}
	case keys.NextSwitch, keys.PrevSwitch:
		if !b.HasSwitch(map[keys.Action]int{keys.NextSwitch: 1, keys.PrevSwitch: -1}[act]) {
			return "no further switch of the writer that way"
		}
	case keys.CopyToken:
		if _, ok := b.CopyText(true); !ok {
			return "no token under the cursor"
		}
	case keys.Export:
		if m.info.Session == "" {
			return "nothing is recorded"
		}
	}
	return ""
}

// quit closes the session behind a frame that says so; the second time it does
// not wait.
func (m *model) quit() tea.Cmd {
	if m.bye {
		return tea.Quit
	}
	m.bye = true
	m.say("ending the requests and closing the session")
	return m.later("quit", func() tea.Msg {
		_ = m.a.end() // Run reports it
		return closedMsg{}
	})
}

func (m *model) toggleHelp() {
	if m.at == keys.Helping {
		m.at = m.under
		return
	}
	m.under, m.at, m.helpTop = m.at, keys.Helping, 0
	if m.under == keys.Menu || m.under == keys.Planning {
		m.under = m.board()
	}
}

func (m *model) togglePlan() {
	if m.at == keys.Planning {
		m.at = m.board()
		return
	}
	m.at, m.planTop = keys.Planning, 0
}

// board is the context below menus.
func (m *model) board() keys.Context {
	if _, in := m.a.board.Inspecting(); in {
		return keys.Inspector
	}
	return keys.Board
}

func (m *model) back() {
	switch m.at {
	case keys.Inspector:
		m.a.board.Leave()
		m.at = keys.Board
	default:
		m.at = m.board()
	}
}

func (m *model) move(act keys.Action) {
	d := 1
	if act == keys.Up {
		d = -1
	}
	switch m.at {
	case keys.Helping:
		m.helpTop = min(max(m.helpTop+d, 0), m.helpEnd)
		return
	case keys.Planning:
		m.planTop = min(max(m.planTop+d, 0), m.planEnd)
		return
	}
	m.a.board.Move(d)
}

func (m *model) export(act keys.Action) tea.Cmd {
	format := "jsonl"
	if act == keys.AsPerfetto {
		format = "perfetto"
	}
	m.at = m.board()
	m.say("exporting as %s", format)
	return m.later("export", func() tea.Msg {
		path, err := m.a.rt.Export(format)
		return exportedMsg{path, err}
	})
}

// nextConcurrency moves by one, in larger steps where there are many.
func nextConcurrency(n, d int) int {
	step := 1
	switch at := n + min(d, 0); {
	case at >= 32:
		step = 8
	case at >= 16:
		step = 4
	case at >= 8:
		step = 2
	}
	return max(n+d*step, 1)
}

// stepRouter makes a neighbour of the live router in the list the router. One that
// cannot run here, since it asks for a head that is not there, is passed over: it
// would end the round otherwise. It says which were, and why the first.
func (m *model) stepRouter(s board.Status, d int) error {
	var passed []string
	var why error
	for range max(len(s.Routers)-1, 1) {
		s.Router = nextRouter(s, d)
		err := m.a.rt.SetRouter(s.Router)
		if err == nil {
			if why != nil {
				m.a.board.Say("passed over "+strings.Join(passed, ", ")+": "+why.Error(), true)
			}
			return nil
		}
		if passed = append(passed, s.Router); why == nil {
			why = err
		}
	}
	return why
}

// nextRouter is the neighbour of the live router in the list, in a circle.
func nextRouter(s board.Status, d int) string {
	if len(s.Routers) == 0 {
		return s.Router
	}
	bare := func(n string) string { return strings.TrimSuffix(n[strings.LastIndexByte(n, '/')+1:], ".lua") }
	at := slices.IndexFunc(s.Routers, func(n string) bool { return n == s.Router || bare(n) == bare(s.Router) })
	if at < 0 && d < 0 {
		at = 0
	}
	n := len(s.Routers)
	return s.Routers[(at+d+n)%n]
}

// threshold is B of a subserver, from which the keys move it.
func (m *model) threshold(p event.Peer) int {
	b := m.a.board.Thresholds()
	if p < 0 || int(p) >= len(b) {
		return 1
	}
	return b[p]
}

// form is the fixed policy of some thresholds.
func form(b []int) string {
	p := event.Policy{Kind: event.Fixed, B: b}
	return p.Form()
}

// nextPolicy is the form of the policy behind the one in force, in a circle.
func (m *model) nextPolicy() string {
	all := []event.PolicyKind{event.Eager, event.Fixed, event.Table, event.LookAhead, event.LockStep}
	now := m.a.board.Status().Policy
	at := slices.IndexFunc(all, func(k event.PolicyKind) bool { return k.String() == now })
	next := all[(at+1)%len(all)]
	if next != event.Fixed {
		return next.String()
	}
	b := m.a.board.Fixed()
	if slices.Max(b) <= 1 { // that would be eager again
		return event.Table.String()
	}
	return form(b)
}

// moveKnob gives the value n steps on: steps follow the size of the value, so
// that 0.5 moves by 0.01 and 0.03 by 0.001.
func moveKnob(k board.KnobState, n int) float64 {
	size := k.Max - k.Min
	if !(size > 0) || math.IsInf(size, 0) {
		return k.Value
	}
	scale := max(math.Abs(k.Value), size/20)
	step := math.Pow(10, math.Floor(math.Log10(scale*(1+1e-9)))-1)
	whole := k.Min == math.Trunc(k.Min) && k.Max == math.Trunc(k.Max) && k.Default == math.Trunc(k.Default) && k.Default != 0
	if whole && size >= 5 {
		step = max(math.Round(step), 1)
	}
	v := math.Round(k.Value/step+float64(n)) * step
	v = math.Round(v*1e9) / 1e9
	return min(max(v, k.Min), k.Max)
}
