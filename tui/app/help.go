package app

import (
	"fmt"
	"slices"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/board"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/keys"
)

// helpWidth is how wide a column of the help is at most.
const helpWidth = 76

// help lists what every key does now, or why it does nothing, and what the marks
// and the words mean.
func (m *model) help() string {
	st := m.theme.Dialog
	inner := m.w - st.GetHorizontalFrameSize()
	width := min(inner, helpWidth)
	all := m.helpKeys(width, "board", keys.Board)
	rest := slices.Concat(m.helpKeys(width, "inspect", keys.Inspector), []frame.Row{{}}, m.helpMarks(width))
	if two := 2*width + 3; two <= inner {
		all = frame.Beside(3, m.theme.G.ASCII, []int{width, width}, slices.Concat(all, []frame.Row{{}}, m.helpWords(width)), rest)
		width = two
	} else {
		all = slices.Concat(all, []frame.Row{{}}, rest, []frame.Row{{}}, m.helpWords(width))
	}
	return m.scrolled(width, all, &m.helpTop, &m.helpEnd, func(foot *frame.Line) {
		if name := m.info.Program; foot.Room() > frame.Width(name) {
			foot.To(width-frame.Width(name)).Put(m.theme.Dim, name)
		}
	})
}

// helpKeys lists the keys of a context. What they do now is told of the one that
// the help was asked from: elsewhere another thing may be picked.
func (m *model) helpKeys(width int, name string, c keys.Context) []frame.Row {
	th := m.theme
	out := []frame.Row{frame.NewLine(width, th.G.ASCII).Put(th.Title, name).End()}
	table := keys.Table(c)
	for i, b := range table {
		if b.Help == "" {
			continue
		}
		text, why := b.Help, ""
		if c == m.under {
			if now := m.does(b.Action); now != "" {
				text = now
			}
			group := []keys.Action{b.Action}
			for j := i + 1; j < len(table) && table[j].Help == ""; j++ {
				group = append(group, table[j].Action)
			}
			why = m.whyOff(group)
		}
		l := frame.NewLine(width, th.G.ASCII)
		l.Put("", " ").Put(th.Key, pad(b.Show, 11))
		if why != "" {
			why = "  " + why
		}
		l.PutClip("", text, l.Room()-frame.Width(why)).Put(th.Warn, why)
		out = append(out, l.End())
	}
	return out
}

// whyOff says which keys of a group are off and why, "" if none is.
func (m *model) whyOff(group []keys.Action) string {
	var whys []string
	off := 0
	for _, act := range group {
		why := m.off(act)
		if why == "" {
			continue
		}
		off++
		if len(group) > 1 {
			why = string(act) + ": " + why
		}
		whys = append(whys, why)
	}
	switch {
	case off == 0:
		return ""
	case off == len(group):
		return "off: " + m.off(group[0])
	}
	return "off: " + whys[0]
}

// does says what a key does now, "" where the catalogue says it all.
func (m *model) does(act keys.Action) string {
	b, s := m.a.board, m.a.board.Status()
	switch act {
	case keys.Pause:
		if s.Paused {
			return "go on"
		}
		return "pause: no new step begins"
	case keys.Edit:
		if s.Editable == "" {
			return "copy " + s.Router + " into your routers and edit it; saving reloads it"
		}
		return "edit " + s.Router + "; saving reloads it"
	case keys.KnobUp:
		if k, ok := b.PickedKnob(); ok {
			return fmt.Sprintf("move %s, now %s of %s to %s; H and L by ten steps", k.Name, number(k.Value), number(k.Min), number(k.Max))
		}
	case keys.RaiseB:
		if s.Policy != event.Fixed.String() {
			return fmt.Sprintf("set B of %s (fixed), now %d", m.role(b.UI.B), m.threshold(b.UI.B))
		}
		return fmt.Sprintf("lower or raise B of %s, now %d", m.role(b.UI.B), m.threshold(b.UI.B))
	case keys.Policy:
		return "policy: from " + s.Policy + " to " + strings.Replace(m.nextPolicy(), ":", ", B ", 1)
	case keys.NextRouter:
		if len(s.Routers) > 1 {
			return "next router " + nextRouter(s, 1) + ", previous " + nextRouter(s, -1)
		}
	case keys.Inspect:
		if id, ok := b.Picked(); ok {
			return fmt.Sprintf("look into request #%d, token by token", id)
		}
	case keys.Clock:
		if to := nextClock(s.Clock); to != "" {
			return "from the " + s.Clock + " clock to " + to
		}
	case keys.Faster:
		switch {
		case s.Virtual() && s.Speed == 0:
			return "slower or faster, now as fast as it can"
		case s.ByProfile():
			return "slower or faster, now " + m.theme.G.Times + number(s.Speed)
		}
	case keys.More:
		return fmt.Sprintf("fewer or more requests at a time, now %d", s.Concurrency)
	case keys.Copy:
		if id, ok := m.subject(); ok {
			return fmt.Sprintf("copy the text of request #%d", id)
		}
	case keys.Focus:
		return "from the " + b.UI.Focus.String() + " to the " + b.UI.Focus.Next().String()
	case keys.PickB:
		n := event.Peer(len(m.info.Models))
		return "keys for B: from " + m.role(b.UI.B) + " to " + m.role((b.UI.B+1)%n)
	case keys.Down:
		return m.doesMove()
	case keys.Help:
		return "close this help"
	case keys.Drops:
		return map[bool]string{false: "show", true: "hide"}[b.UI.Drops] + " dropped candidates in the streams"
	}
	return ""
}

func (m *model) doesMove() string {
	if m.under == keys.Inspector {
		return "a line of the text up or down"
	}
	switch m.a.board.UI.Focus {
	case board.FocusRequests:
		return "pick another request"
	case board.FocusEvents:
		return "older and newer events"
	}
	return "pick another knob"
}

func (m *model) role(p event.Peer) string {
	if p >= 0 && int(p) < len(m.info.Models) {
		return m.info.Models[p].Role
	}
	return event.Role(p, len(m.info.Models))
}

// helpMarks shows how writers and states are marked.
func (m *model) helpMarks(width int) []frame.Row {
	th := m.theme
	line := func() *frame.Line { return frame.NewLine(width, th.G.ASCII) }
	out := []frame.Row{line().Put(th.Title, "marks").End()}
	put := func(st frame.Style, mark, text string) {
		l := line().Put("", " ").Put(st, mark)
		out = append(out, l.To(12).Put("", " "+text).End())
	}
	n := len(m.info.Models)
	for i, mi := range m.info.Models {
		p := event.Peer(i)
		left, right := th.Brackets(p, n)
		how := "plain"
		switch {
		case th.Plain && left != "":
			how = "between " + left + " and " + right
		case i > 0 && i == n-1:
			how = "underlined"
		case i > 0:
			how = "bold"
		}
		put(th.Token(p, n), left+mi.Role+right, "a token that "+mi.Name+" wrote: "+how)
	}
	put(th.Dropped, th.DropMark+"gone"+th.DropMark, "a candidate that was dropped; another model wrote that position")
	put(th.Pending, "> "+m.role(event.Peer(n-1)), "a request on its way to that model, or ready there")
	put(th.Role(event.Peer(n-1), n), "in "+m.role(event.Peer(n-1)), "a request in a running batch of that model")
	put(th.Strong, th.G.Up, "under the chart: something was changed here")
	put(th.Bad, "!", "a warning or an error")
	return out
}

// helpWords says what the words of the board mean.
func (m *model) helpWords(width int) []frame.Row {
	th := m.theme
	out := []frame.Row{frame.NewLine(width, th.G.ASCII).Put(th.Title, "figures").Put(th.Dim, "  of the last 10 s, or since the last change").End()}
	of := m.role(event.Front) + "'s rows"
	if len(m.info.Models) > 2 {
		of = "others' rows"
	}
	words := [][2]string{
		{"ready", "requests that could be in the next batch here"},
		{"pending", "requests of the front that are away at a peer"},
		{"B", "a batch starts when so many are ready; eager: as soon as one is"},
		{"B*", "the best B by the plan for the active requests: policy table"},
		{"guard", "or when one has waited for W, twice the slowest step"},
		{"look-ahead", "waits while the peers' batches end soon enough to save time"},
		{"% by", "which rule started the batches: eager, B, guard, look-ahead"},
		{"pred", "tok/s the plan predicts (how far the measured ones are off)"},
		{"lock-step", "every model waits for all requests: what B* is compared with"},
		{"hits", "prompt tokens that the prefix cache had"},
		{"recomputed", "tokens fed again: KV was lost to another, or given back (resubmit)"},
		{"! waits", "idle for longer than W although something is ready"},
		{"rows", "tokens computed: committed, or dropped for another to write"},
		{of, "of them, the part that route sent to this model"},
		{"extend", "tokens fed to catch up when a request comes back"},
		{"waits for B", "idle although something is ready"},
		{"held", "tokens that a router with hold(n) may still take back"},
		{"switches", "changes of writer per token"},
		{"right", "answers checked since the last change of router or knob, 95 %"},
		{"late", "paced steps for which this machine was too slow"},
		{"goes", "how many times as fast as ours virtual time passes"},
		{"drawn", "tokens by a law, which no model wrote; their text means nothing"},
	}
	applies := map[string]bool{"right": m.info.Answers(), "late": !m.virtual(), "goes": m.virtual(), "drawn": m.info.Tokens == "drawn"}
	for _, w := range words {
		if yes, asked := applies[w[0]]; asked && !yes {
			continue
		}
		l := frame.NewLine(width, th.G.ASCII)
		out = append(out, l.Put("", " ").Put(th.Strong, pad(w[0], 12)).PutClip("", w[1], l.Room()).End())
	}
	return out
}

// virtual says that the clock is not the wall's.
func (m *model) virtual() bool {
	s := m.a.board.Status()
	return s.Virtual()
}

func number(v float64) string { return fmt.Sprintf("%.4g", v) }

func pad(s string, w int) string { return s + strings.Repeat(" ", max(w-frame.Width(s), 1)) }
