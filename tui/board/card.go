package board

import (
	"fmt"

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

// restOfHead is the room that router, load and clock have behind the models' names.
const restOfHead = 50

// restOfName is the room that hash and load have behind the router's name, and
// leastName what a name has before they get any.
const (
	restOfName = 24
	leastName  = 24
)

// modelNames are roles and names of the models, cut to equal parts of the width
// where they would not fit into it together.
func (m *Model) modelNames(width int) []string {
	out := make([]string, len(m.info.Models))
	all := 0
	for i, mi := range m.info.Models {
		out[i] = mi.Role + " " + mi.Name
		all += frame.Width(out[i])
	}
	if all > width {
		for i := range out {
			out[i] = frame.Clip(out[i], width/len(out), m.theme.G.ASCII)
		}
	}
	return out
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

// slower is how much longer than the cost profile has it a step takes before that
// is a warning. The first visit of a request costs the largest embedded model some
// 10 % on any machine.
const slower = 1.2

// late gives the step time in ms that the cost profile asks for where this
// machine is clearly slower, 0 where it keeps up.
func (m *Model) late(p event.Peer) float64 {
	s := &m.figs.snap.Peers[p]
	if !m.status.ByProfile() || m.status.Virtual() || m.info.Step == nil || m.status.Speed <= 0 || s.StepMs <= 0 {
		return 0
	}
	want := m.info.Step(p, max(int(s.MeanBatch+0.5), 1)).Seconds() * 1e3 / m.status.Speed
	if want <= 0 || s.StepMs < slower*want {
		return 0
	}
	return want
}

// workLine: what came out, and how much of their work the others sent here:
// where that is little, so is the large share.
func (m *Model) workLine(p event.Peer, w int) frame.Row {
	th := m.theme
	s, rates := &m.figs.snap.Peers[p], &m.figs.rates[p]
	l := m.line.Start(w)
	if w < 22 {
		l.Put(th.Role(p, m.n), fmt.Sprintf("%4d", rates.committed)).Put(th.Dim, " kept/s")
		return l.End()
	}
	l.Put(th.Strong, fmt.Sprintf("%4d", rates.rows)).Put(th.Dim, " rows/s")
	gap := " "
	switch {
	case w >= 52:
		gap = "   "
		l.Put(th.Dim, "   committed").Put(th.Role(p, m.n), fmt.Sprintf(" %4d", rates.committed))
	case w >= 34:
		l.Put(th.Dim, " commit").Put(th.Role(p, m.n), fmt.Sprintf(" %3d", rates.committed))
	default:
		putFirst(l, 0, []piece{{th.Role(p, m.n), fmt.Sprintf(" %4d", rates.committed)}, {th.Dim, " kept"}})
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
	if name := map[bool]string{true: "dropped", false: "drop"}[w >= 52]; p == event.Front || s.DroppedPerS > 0 {
		putFirst(l, 0, []piece{{th.Dim, gap + name}, {th.Strong, fmt.Sprintf(" %*d", len(gap)/2+3, rates.dropped)}})
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
		if load.KVTotal > 0 {
			name, st := gap+"KV", th.Strong
			if s.Preempted > 0 && !m.resubmits {
				name, st = gap+"! KV", th.Warn
			}
			putFirst(l, 0, []piece{{th.Dim, name}, {st, percent(float64(load.KVUsed) / float64(load.KVTotal))}})
		}
		if s.Prompt > 0 && l.Room() >= 11 {
			l.Put(th.Dim, gap+"hits").Put(th.Strong, percent(s.PrefixHits))
		}
		return l.End()
	}
	putFirst(l, 0, []piece{{th.Dim, gap + "idle"}, {th.Strong, percent(s.Idle)}})
	return l.End()
}

// percent writes a fraction in six cells: "  64 %".
func percent(x float64) string { return fmt.Sprintf(" %3.0f %%", x*100) }
