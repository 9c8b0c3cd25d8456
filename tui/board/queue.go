package board

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/tui/frame"
)

// Widths of a line in a card, from which on it says more.
const (
	wideLine  = 52 // whole words
	shortLine = 34 // short words; below, only the most needed ones
)

// queueLine: who is where, ready against B beside B*, and what the rule is
// doing.
func (m *Model) queueLine(p event.Peer, w int) frame.Row {
	th := m.theme
	c := &m.cores[p].seen
	load := &c.load
	l := m.line.Start(w)
	field := func(name string, n int, st frame.Style, width int) {
		l.Put(th.Dim, name).Put(st, fmt.Sprintf("%*d", width, n))
	}
	wide := w >= wideLine
	switch {
	case wide:
		field("ready", load.Ready, th.Strong, 3)
		field("  running", c.rows, th.Role(p, m.n), 3)
	case w >= shortLine:
		field("ready", load.Ready, th.Strong, 3)
		field(" run", c.rows, th.Role(p, m.n), 3)
	default:
		width := 3
		if w < 17 { // "rdy 0 run 0 > 4" has to fit
			width = 2
		}
		field("rdy", load.Ready, th.Strong, width)
		field(" run", c.rows, th.Role(p, m.n), width)
	}
	if p == event.Front {
		switch {
		case !wide:
			l.Put(th.Pending, fmt.Sprintf(" >%2d", load.Pending))
		default:
			field("  pending", load.Pending, th.Pending, 3)
			if m.n == 2 && (load.Waiting == 0 || w >= 64) {
				l.Put(th.Pending, " > "+m.role(1))
			}
		}
		if load.Waiting > 0 && wide {
			field("  waiting", load.Waiting, th.Warn, 3)
		}
	}
	m.putB(l, p, w)
	m.putRule(l, p)
	return l.End()
}

// putB sets the threshold in force beside B*. In the least room "B*3" says that
// B is at B*. Look-ahead has no threshold.
func (m *Model) putB(l *frame.Line, p event.Peer, w int) {
	th, load := m.theme, &m.cores[p].seen.load
	b, star := max(load.B, 1), m.star(p)
	gap := "   "
	if w < wideLine {
		gap = "  "
	}
	name, brief, value := "B ", "B ", strconv.Itoa(b)
	if m.kind == event.LookAhead {
		name, brief, value = "look-ahead", "ahead", ""
	}
	st := th.Strong
	if star == b {
		st = th.Prediction
	}
	put := func(gap, name, starred string) []piece {
		out := []piece{{th.Dim, gap + name}, {th.Strong, value}}
		if starred != "" {
			out = append(out, piece{th.Dim, starred}, piece{st, strconv.Itoa(star)})
		}
		return out
	}
	least := put(" ", brief, "")
	switch {
	case star == 0 && w >= shortLine:
		putFirst(l, 0, put(gap, name, ""), put(gap, brief, ""), least)
	case star == 0:
		putFirst(l, 0, least)
	case w >= shortLine:
		putFirst(l, 0, put(gap, name, "  B* "), put(gap, brief, "  B* "), put(" ", brief, " B*"), put(gap, brief, ""), least)
	case star == b && value != "":
		putFirst(l, 0, put(" B*", "", ""))
	default:
		putFirst(l, 0, put(" ", brief, " B*"), least)
	}
	if value != "" && w >= 44 && b <= 16 && (p != event.Front || w >= 64) && l.Room() >= b+3 {
		full := min(load.Ready, b)
		l.Put("", " ").Put(th.Border, "[").Repeat(th.Role(p, m.n), th.G.Seat, full)
		l.Repeat(th.Idle, th.G.None, b-full).Put(th.Border, "]")
	}
}

// putRule says that an idle subserver waits for more to be ready, or which rule
// started the batch that runs. A start that the policy leaves no choice about needs
// no words.
func (m *Model) putRule(l *frame.Line, p event.Peer) {
	c := &m.cores[p].seen
	long, brief, st := "", "", m.theme.Dim
	switch wait := m.waitFor(p); {
	case wait != nil && c.rows == 0:
		long, brief, st = "! waits "+age(wait.For), "! waits", m.theme.Warn
	case c.rows == 0 && c.load.Ready > 0 && c.load.Ready < c.load.B && m.kind == event.LookAhead:
		long, brief, st = "waits by look-ahead", "waits", m.theme.Pending
	case c.rows == 0 && c.load.Ready > 0 && c.load.Ready < c.load.B:
		long, brief, st = "waits by B", "waits", m.theme.Pending
	case c.rows > 0 && c.rule == event.RuleB && c.load.B > 1:
		long, brief = "runs by B", "by B"
	case c.rows > 0 && c.rule == event.RuleGuard:
		long, brief = "runs by guard", "guard"
	default:
		return
	}
	for _, text := range []string{"  " + long, "  " + brief, " " + brief} {
		if frame.Width(text) <= l.Room() {
			l.Put(st, text)
			return
		}
	}
}

// batchLine: how full the batch is, how long a step takes and which rules start
// them.
func (m *Model) batchLine(p event.Peer, w int) frame.Row {
	th := m.theme
	s := &m.figs.snap.Peers[p]
	rows := m.cores[p].seen.rows
	l := m.line.Start(w)
	l.Put(th.Dim, "batch")
	if w >= 40 {
		seats := min(max(m.status.Concurrency, 4), 16)
		if int(p) < len(m.info.Models) && m.info.Models[p].Seats > 0 {
			seats = min(seats, m.info.Models[p].Seats)
		}
		if w < 64 {
			seats = min(seats, 4)
		}
		full := min(rows, seats)
		l.Put("", " ").Repeat(th.Role(p, m.n), th.G.Seat, full).Repeat(th.Idle, th.G.None, seats-full)
	}
	l.Put(th.Strong, fmt.Sprintf("%3d", rows))
	step, unit := fmt.Sprintf("%.1f", s.StepMs), " ms"
	if s.StepMs >= 1000 {
		step = fmt.Sprintf("%.0f", s.StepMs)
	}
	late, st := m.late(p), th.Strong
	if late > 0 {
		st = th.Warn
	}
	switch {
	case w >= wideLine:
		l.Put(th.Dim, "  mean").Put(th.Strong, fmt.Sprintf("%5.1f", s.MeanBatch)).Put(th.Dim, "  step").Put(st, fmt.Sprintf("%6s", step))
	case w >= shortLine:
		l.Put(th.Dim, " mean").Put(th.Strong, fmt.Sprintf("%4.1f", s.MeanBatch)).Put(st, fmt.Sprintf("%6s", step))
	default:
		if l.Room() < len("  12.3 ms") {
			switch {
			case s.StepMs >= 999.5:
				step, unit = fmt.Sprintf("%.1f", s.StepMs/1e3), " s"
			case s.StepMs >= 9.95:
				step = fmt.Sprintf("%.0f", s.StepMs)
			}
		}
		l.Put(st, fmt.Sprintf("%*s", min(6, l.Room()-len(unit)), step))
	}
	l.Put(th.Dim, unit)
	if late > 0 {
		putFirst(l, 0, []piece{{th.Warn, fmt.Sprintf("  ! late, paced %.1f", late)}}, []piece{{th.Warn, fmt.Sprintf(" ! paced %.1f", late)}},
			[]piece{{th.Warn, fmt.Sprintf(" ! %.1f", late)}}, []piece{{th.Warn, " !"}})
		return l.End()
	}
	m.putRules(l, s)
	return l.End()
}

// share is a rule and the part of the batches that it started.
type share struct {
	rule event.Rule
	part float64
}

// shares are the rules that started batches, the most frequent first.
func shares(s *metrics.PeerSnapshot) []share {
	all := []share{{event.RuleEager, s.ByEager}, {event.RuleB, s.ByB}, {event.RuleGuard, s.ByGuard}, {event.RuleAhead, s.ByAhead}}
	all = slices.DeleteFunc(all, func(r share) bool { return r.part < 0.0005 })
	slices.SortStableFunc(all, func(x, y share) int { return cmp.Compare(y.part, x.part) })
	return all
}

// putRules says which rules started the batches, as many as there is room for.
func (m *Model) putRules(l *frame.Line, s *metrics.PeerSnapshot) {
	th := m.theme
	mix := shares(s)
	for n := len(mix); n > 0; n-- {
		for _, by := range []string{" % by ", " % "} {
			var text []piece
			for i, r := range mix[:n] {
				if i > 0 {
					text = append(text, piece{th.Dim, ", "})
				}
				name := r.rule.String()
				if by == " % " {
					name = strings.TrimPrefix(name, "look-")
				}
				text = append(text, piece{th.Strong, fmt.Sprintf("%.0f", 100*r.part)}, piece{th.Dim, by + name})
			}
			if putFirst(l, 0, append([]piece{{"", "  "}}, text...), append([]piece{{"", " "}}, text...)) {
				return
			}
		}
	}
}

// kvLine: how full the KV is, what the prefix cache saves and preemption costs,
// and what a request that comes back has to be fed.
func (m *Model) kvLine(p event.Peer, w int) frame.Row {
	th := m.theme
	load, s := &m.cores[p].seen.load, &m.figs.snap.Peers[p]
	l := m.line.Start(w)
	l.Put(th.Dim, "KV ")
	share := 0.0
	if load.KVTotal > 0 {
		share = float64(load.KVUsed) / float64(load.KVTotal)
	}
	figures := []piece{{th.Strong, fmt.Sprintf("%4d", load.KVUsed)}, {th.Dim, fmt.Sprintf("/%d", load.KVTotal)}}
	var more [][]piece
	switch {
	case m.resubmits && s.Recomputed > 0: // that is what is asked for
		more = append(more, []piece{{th.Dim, "  recomputed"}, {th.Strong, fmt.Sprintf(" %d", s.Recomputed)}})
	case m.resubmits:
	case s.Recomputed > 0:
		more = append(more, []piece{{th.Warn, fmt.Sprintf("  ! recomputed %d", s.Recomputed)}})
	case s.Preempted > 0:
		more = append(more, []piece{{th.Warn, fmt.Sprintf("  ! preempted %d", s.Preempted)}})
	}
	if s.Prompt > 0 {
		more = append(more, []piece{{th.Dim, "  hits"}, {th.Strong, percent(s.PrefixHits)}})
	}
	if s.Hops > 0 {
		more = append(more, []piece{{th.Dim, "  extend"}, {th.Strong, fmt.Sprintf("%5.1f", s.ExtendPerHop)}, {th.Dim, " a hop"}})
	}
	const least = 4 // cells of the bar, so that the rest stays where it is
	for _, f := range more {
		if all := slices.Concat(figures, f); widthOf(all)+l.W()+least+1 <= w {
			figures = all
		}
	}
	style := th.Role(p, m.n)
	if share > 0.95 {
		style = th.Warn
	}
	bar := 24
	switch {
	case w < 64:
		bar = 4
	case w < 80:
		bar = 12
	}
	bar = min(bar, w-l.W()-1-widthOf(figures))
	frame.Bar(l, bar, frame.Part{Style: th.Idle, Glyph: th.G.Rest}, frame.Part{Share: share, Style: style, Glyph: th.G.Busy})
	l.Put("", " ")
	putFirst(l, 0, figures)
	return l.End()
}
