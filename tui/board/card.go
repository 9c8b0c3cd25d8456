package board

import (
	"fmt"
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
)

func peer(i int) event.Peer { return event.Peer(i) }

// cards draws one card per subserver, side by side.
func (m *Model) cards(lay layout) []frame.Row {
	gap := 1
	width := (lay.w - gap*(m.n-1)) / m.n
	widths := make([]int, m.n)
	blocks := make([][]frame.Row, m.n)
	for i := range blocks {
		widths[i] = width
		if i == m.n-1 {
			widths[i] = lay.w - (width+gap)*(m.n-1)
		}
		blocks[i] = m.card(peer(i), widths[i], lay.body)
	}
	return frame.Beside(gap, m.theme.G.ASCII, widths, blocks...)
}

func (m *Model) card(p event.Peer, width, body int) []frame.Row {
	th := m.theme
	mi := ModelInfo{}
	if int(p) < len(m.info.Models) {
		mi = m.info.Models[p]
	}
	l := frame.NewLine(width-6, th.G.ASCII)
	l.Put("", " ").Put(th.Token(p, m.n), m.role(p))
	if width >= 22 {
		l.Put("", " ").PutClip(th.Strong, mi.Name, l.Room()-1)
	}
	if width >= 54 && mi.Params > 0 {
		l.Put(th.Dim, "  "+params(mi.Params))
	}
	l.Put("", " ")
	title := l.End()
	note := ""
	switch {
	case p == event.Front && width >= 46:
		note = " front, home "
	case p == event.Front && width >= 30:
		note = " home "
	case p != event.Front && width >= 30:
		note = " peer "
	}
	n := frame.NewLine(width, th.G.ASCII).Put(th.Dim, note).End()
	inner := width - 4
	rows := make([]frame.Row, 0, body)
	rows = append(rows, m.queueLine(p, inner), m.batchLine(p, inner), m.workLine(p, inner))
	switch {
	case body >= 5:
		rows = append(rows, m.timeLine(p, inner, false), m.kvLine(p, inner))
	case body == 4:
		rows = append(rows, m.timeLine(p, inner, true))
	}
	return frame.Box(th.G, th.Border, width, title, n, rows)
}

// params writes a number of parameters as people say it.
func params(n int64) string {
	switch {
	case n >= 1_000_000_000:
		return fmt.Sprintf("%.1f B parameters", float64(n)/1e9)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M parameters", float64(n)/1e6)
	default:
		return fmt.Sprintf("%.1f k parameters", float64(n)/1e3)
	}
}

// queueLine: who is where, ready against B, and what the rule is doing.
func (m *Model) queueLine(p event.Peer, w int) frame.Row {
	th := m.theme
	c := &m.cores[p].seen
	load := &c.load
	l := m.line.Start(w)
	tight := w < 34
	word := func(long, brief string) string {
		if tight {
			return brief
		}
		return long
	}
	field := func(name string, n int, st frame.Style) {
		l.Put(th.Dim, name).Put(st, fmt.Sprintf("%3d", n))
	}
	field(word("ready", "rdy"), load.Ready, th.Strong)
	field(word("  running", " run"), c.rows, th.Role(p, m.n))
	if p == event.Front {
		if tight {
			l.Put(th.Pending, fmt.Sprintf(" >%2d", load.Pending))
		} else {
			field("  pending", load.Pending, th.Pending)
			if w >= 44 && m.n == 2 {
				l.Put(th.Pending, " > "+m.role(1))
			}
		}
		if load.Waiting > 0 && w >= 50 {
			field("  waiting", load.Waiting, th.Warn)
		}
	}
	if p == event.Front && w < 62 {
		return l.End()
	}
	b := max(load.B, 1)
	l.Put(th.Dim, word("   B ", " B ")).Put(th.Strong, strconv.Itoa(b))
	if w >= 44 && b <= 16 && l.Room() >= b+3 {
		full := min(load.Ready, b)
		l.Put("", " ").Put(th.Border, "[").Repeat(th.Role(p, m.n), th.G.Seat, full)
		l.Repeat(th.Idle, th.G.None, b-full).Put(th.Border, "]")
	}
	m.putRule(l, c)
	return l.End()
}

// putRule says that an idle subserver waits for more to be ready, or which rule
// started the batch that runs. An eager start needs no words.
func (m *Model) putRule(l *frame.Line, c *coreLook) {
	long, brief, st := "", "", m.theme.Dim
	switch {
	case c.rows == 0 && c.load.Ready > 0 && c.load.Ready < c.load.B:
		long, brief, st = "waits by B", "waits", m.theme.Pending
	case c.rows > 0 && c.rule == event.RuleB && c.load.B > 1:
		long, brief = "runs by B", "by B"
	case c.rows > 0 && c.rule == event.RuleGuard:
		long, brief = "runs by guard", "guard"
	}
	for _, text := range []string{"  " + long, " " + brief} {
		if frame.Width(text) <= l.Room() {
			l.Put(st, text)
			return
		}
	}
}

// batchLine: how full the batch is, how long a step takes and which rule starts
// them.
func (m *Model) batchLine(p event.Peer, w int) frame.Row {
	th := m.theme
	s := &m.figs.snap.Peers[p]
	rows := m.cores[p].seen.rows
	l := m.line.Start(w)
	l.Put(th.Dim, "batch ")
	if w >= 40 {
		seats := min(max(m.status.Concurrency, 4), 16)
		if int(p) < len(m.info.Models) && m.info.Models[p].Seats > 0 {
			seats = min(seats, m.info.Models[p].Seats)
		}
		if w < 52 {
			seats = min(seats, 6)
		}
		full := min(rows, seats)
		l.Repeat(th.Role(p, m.n), th.G.Seat, full).Repeat(th.Idle, th.G.None, seats-full)
	}
	l.Put(th.Strong, fmt.Sprintf("%3d", rows))
	if w >= 30 {
		l.Put(th.Dim, "  mean").Put(th.Strong, fmt.Sprintf("%*.1f", min(5, w-30), s.MeanBatch))
	}
	if w >= 24 {
		l.Put(th.Dim, "  step")
	}
	late, st := m.late(p), th.Strong
	if late > 0 {
		st = th.Warn
	}
	step := fmt.Sprintf("%6.1f", s.StepMs)
	if s.StepMs >= 1000 {
		step = fmt.Sprintf(" %5.0f", s.StepMs)
	}
	l.Put(st, step).Put(th.Dim, " ms")
	if late > 0 {
		for _, text := range []string{fmt.Sprintf("  ! late, paced %.1f", late), fmt.Sprintf(" ! paced %.1f", late), fmt.Sprintf(" ! %.1f", late), " !"} {
			if frame.Width(text) <= l.Room() {
				l.Put(th.Warn, text)
				break
			}
		}
	}
	if s.ByB+s.ByGuard > 0 && m.cores[p].seen.load.B > 1 && l.Room() >= 26 {
		l.Put(th.Dim, "  by B").Put(th.Strong, percent(s.ByB)).Put(th.Dim, "  guard").Put(th.Strong, percent(s.ByGuard))
	}
	return l.End()
}

// late gives the step time in ms that the cost profile asks for where this
// machine is clearly slower, 0 where it keeps up.
func (m *Model) late(p event.Peer) float64 {
	s := &m.figs.snap.Peers[p]
	if m.status.Clock != "paced" || m.info.Step == nil || m.status.Speed <= 0 || s.StepMs <= 0 {
		return 0
	}
	want := m.info.Step(p, max(int(s.MeanBatch+0.5), 1)).Seconds() * 1e3 / m.status.Speed
	if want <= 0 || s.StepMs < 1.1*want {
		return 0
	}
	return want
}

// workLine: what came out, and how much of their work the others sent here:
// where that is little, so is the large share.
func (m *Model) workLine(p event.Peer, w int) frame.Row {
	th := m.theme
	s := &m.figs.snap.Peers[p]
	l := m.line.Start(w)
	if w < 22 {
		l.Put(th.Role(p, m.n), fmt.Sprintf("%4.0f", s.CommittedPerS)).Put(th.Dim, " kept/s")
		return l.End()
	}
	l.Put(th.Strong, fmt.Sprintf("%4.0f", s.RowsPerS)).Put(th.Dim, " rows/s")
	gap := " "
	switch {
	case w >= 52:
		gap = "   "
		l.Put(th.Dim, "   committed").Put(th.Role(p, m.n), fmt.Sprintf("%5.0f", s.CommittedPerS))
	case w >= 34:
		l.Put(th.Dim, " commit").Put(th.Role(p, m.n), fmt.Sprintf("%4.0f", s.CommittedPerS))
	default:
		l.Put(th.Role(p, m.n), fmt.Sprintf("%5.0f", s.CommittedPerS)).Put(th.Dim, " kept")
		return l.End()
	}
	if p != event.Front {
		sent := percent(m.sent(p))
		of := " of " + m.others() + " rows"
		for _, text := range [][2]string{{"", of + " come here"}, {"", of}, {"", " of rows"}, {" gets", ""}} {
			if frame.Width(gap[1:]+text[0]+sent+text[1]) <= l.Room() {
				l.Put(th.Dim, gap[1:]+text[0]).Put(th.Strong, sent).Put(th.Dim, text[1])
				break
			}
		}
	}
	if name := map[bool]string{true: "dropped", false: "drop"}[w >= 52]; (p == event.Front || s.DroppedPerS > 0) && l.Room() >= len(gap)+len(name)+4 {
		l.Put(th.Dim, gap+name).Put(th.Strong, fmt.Sprintf("%*.0f", len(gap)/2+4, s.DroppedPerS))
	}
	return l.End()
}

// sent is the part of the other subservers' rows that the router sent to p.
func (m *Model) sent(p event.Peer) float64 {
	rows := 0.0
	for q := range m.figs.snap.Peers {
		if event.Peer(q) != p {
			rows += m.figs.snap.Peers[q].RowsPerS
		}
	}
	if rows <= 0 {
		return 0
	}
	return m.figs.snap.Peers[p].VisitsPerS / rows
}

func (m *Model) others() string {
	if m.n == 2 {
		return m.role(event.Front) + "'s"
	}
	return "the others'"
}

// timeLine: what the subserver did with its time. With kv it also says how full
// the KV is.
func (m *Model) timeLine(p event.Peer, w int, kv bool) frame.Row {
	th := m.theme
	s := &m.figs.snap.Peers[p]
	l := m.line.Start(w)
	if bar := w - 48; bar >= 6 && !kv {
		bar = min(bar, 24)
		frame.Bar(l, bar, frame.Part{Style: th.Idle, Glyph: th.G.Rest},
			frame.Part{Share: s.Busy, Style: th.Role(p, m.n), Glyph: th.G.Busy},
			frame.Part{Share: s.WaitB, Style: th.Pending, Glyph: th.G.Wait})
		l.Put("", " ")
	}
	wait := "waits for B"
	if w < 42 || kv {
		wait = "waits"
	}
	if w < 30 {
		l.Put(th.Dim, "busy").Put(th.Role(p, m.n), percent(s.Busy))
		if w >= 21 {
			l.Put(th.Dim, " wait").Put(th.Pending, percent(s.WaitB))
		}
		return l.End()
	}
	gap := "   "
	if w < 44 || kv {
		gap = " "
	}
	l.Put(th.Dim, "busy").Put(th.Role(p, m.n), percent(s.Busy))
	l.Put(th.Dim, gap+wait).Put(th.Pending, percent(s.WaitB))
	if kv {
		load := &m.cores[p].seen.load
		if load.KVTotal > 0 && l.Room() >= 9 {
			l.Put(th.Dim, gap+"KV").Put(th.Strong, percent(float64(load.KVUsed)/float64(load.KVTotal)))
		}
		return l.End()
	}
	l.Put(th.Dim, gap+"idle").Put(th.Strong, percent(s.Idle))
	return l.End()
}

// kvLine: how full the KV is, and what a request that comes back has to be fed.
func (m *Model) kvLine(p event.Peer, w int) frame.Row {
	th := m.theme
	load := &m.cores[p].seen.load
	l := m.line.Start(w)
	l.Put(th.Dim, "KV ")
	share := 0.0
	if load.KVTotal > 0 {
		share = float64(load.KVUsed) / float64(load.KVTotal)
	}
	const figures, extend = 20, 22 // widths of what stands behind the bar
	bar := w - 4 - figures
	if bar >= extend+2 {
		bar -= extend
	}
	if bar >= 2 {
		style := th.Role(p, m.n)
		if share > 0.95 {
			style = th.Warn
		}
		frame.Bar(l, min(bar, 24), frame.Part{Style: th.Idle, Glyph: th.G.Rest}, frame.Part{Share: share, Style: style, Glyph: th.G.Busy})
		l.Put("", " ")
	}
	l.Put(th.Strong, strconv.Itoa(load.KVUsed)).Put(th.Dim, fmt.Sprintf("/%d tokens", load.KVTotal))
	if s := &m.figs.snap.Peers[p]; s.Hops > 0 && l.Room() >= extend {
		l.Put(th.Dim, "   extend").Put(th.Strong, fmt.Sprintf("%5.1f", s.ExtendPerHop)).Put(th.Dim, " a hop")
	}
	return l.End()
}

// percent writes a fraction in six cells: "  64 %".
func percent(x float64) string { return fmt.Sprintf(" %3.0f %%", x*100) }
