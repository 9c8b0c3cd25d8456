package board

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/metrics"
	"tokenrouter/tui/frame"
)

// figureRows are the big number and the figures that belong to it: what the plan
// predicts of it comes first.
func (m *Model) figureRows(lay layout) []frame.Row {
	if lay.figures < 3 {
		l := m.line.Start(lay.w)
		l.Put("", " ").Put(m.theme.Big, fmt.Sprintf("%6s tok/s", rate(m.figs.snap.TokensPerS)))
		if lay.figures == 1 {
			m.putPredicted(l)
		}
		m.putShares(l)
		m.putAnswers(l)
		m.putWindow(l)
		out := []frame.Row{l.End()}
		if lay.figures == 2 {
			l.Start(lay.w)
			m.putPredicted(l)
			m.putGains(l)
			out = append(out, l.End())
		}
		return out
	}
	big := digits(m.theme.G, rate(m.figs.snap.TokensPerS))
	out := make([]frame.Row, 3)
	for y := range out {
		l := frame.NewLine(lay.w, m.theme.G.ASCII)
		l.To(max(bigWidth-frame.Width(big[y]), 1))
		l.Put(m.theme.Big, big[y])
		if y == 2 && !m.theme.G.ASCII {
			l.Put("", " ").Put(m.theme.Strong, "tok/s")
		}
		l.To(bigWidth + 8)
		switch y {
		case 0:
			m.putPredicted(l)
			m.putGains(l)
		case 1:
			m.putShares(l)
			m.putAnswers(l)
			if lay.w >= 112 {
				m.putWindow(l)
			}
		case 2:
			if lay.w < 112 {
				m.putWindow(l)
			}
			m.putLatency(l)
		}
		out[y] = l.End()
	}
	return out
}

// bigWidth is the room for the big number: four digits.
const bigWidth = 30

// rate writes tokens per second with about three digits.
func rate(x float64) string {
	if x < 99.95 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// putField appends a figure if there is room for it.
func (m *Model) putField(l *frame.Line, name, value, tail string) {
	gap := m.figureGap(l)
	if l.Room() < len(gap)+1+frame.Width(name)+frame.Width(value)+frame.Width(tail) {
		return
	}
	th := m.theme
	l.Put("", gap).Put(th.Dim, name+" ").Put(th.Strong, value).Put(th.Dim, tail)
}

// figureGap stands between two figures.
func (m *Model) figureGap(l *frame.Line) string {
	if l.W()+l.Room() < 100 {
		return "  "
	}
	return "   "
}

func (m *Model) putShares(l *frame.Line) {
	th, s := m.theme, &m.figs.snap
	if m.n < 2 {
		return
	}
	if l.Room() >= 15 {
		l.Put("", m.figureGap(l)).Put(th.Role(peer(m.n-1), m.n), m.role(peer(m.n-1))).Put(th.Strong, fmt.Sprintf("%4.0f %%", s.LargeShare*100))
	}
	m.putField(l, "switches", decimals(s.SwitchesPerToken), "/tok")
}

func (m *Model) putAnswers(l *frame.Line) {
	s := &m.figs.snap
	if !m.info.Answers() {
		return
	}
	if s.Checked == 0 {
		m.putField(l, "right", "  -", " (none checked)")
		return
	}
	mid := float64(s.Right) / float64(s.Checked)
	half := (s.RightHi - s.RightLo) / 2 * 100
	m.putField(l, "right", fmt.Sprintf("%3.0f %%", mid*100), fmt.Sprintf(" %s%.0f (%d)", m.theme.G.PlusMinus, half, s.Checked))
}

func (m *Model) putLatency(l *frame.Line) {
	put := func(name string, p50, p99 float64, n int) {
		unit := " ms"
		if p99 >= 10_000 {
			p50, p99, unit = p50/1000, p99/1000, " s"
		}
		if n > 0 {
			m.putField(l, name+" p50", ms(p50), "  p99 "+ms(p99)+unit)
		}
	}
	s := &m.figs.snap
	put("first token", s.TTFT.P50, s.TTFT.P99, s.TTFT.N)
	put("between tokens", s.ITL.P50, s.ITL.P99, s.ITL.N)
}

func (m *Model) putWindow(l *frame.Line) {
	long := m.windowText()
	for _, text := range []string{long, strings.TrimPrefix(long, "over the "), strings.TrimSuffix(long, " since the change")} {
		if gap := m.figureGap(l); l.Room() >= len(text)+len(gap) {
			l.Put(m.theme.Dim, gap+text)
			return
		}
	}
}

func ms(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%4.0f", x)
	}
	return fmt.Sprintf("%4.1f", x)
}

func decimals(x float64) string { return strings.TrimPrefix(fmt.Sprintf("%.2f", x), "0") }

// windowText says what the figures are of.
func (m *Model) windowText() string {
	s := &m.figs.snap
	sec := fmt.Sprintf("%.0f s", s.Window.Seconds())
	switch {
	case s.Window <= 0:
		return "nothing yet"
	case s.Since && m.figs.cmp.Label != "":
		return sec + " since the change"
	case s.Since:
		return sec + " since the start"
	default:
		return "over the last " + sec
	}
}

// comparison is before | after of the last change: up to n lines of width w.
func (m *Model) comparison(w, n int) []frame.Row {
	th, c := m.theme, &m.figs.cmp
	out := make([]frame.Row, 0, n)
	l := frame.NewLine(w, th.G.ASCII)
	add := func() {
		if len(out) < n {
			out = append(out, l.End())
		}
		l.Start(w)
	}
	if c.Label == "" {
		l.Put(th.Dim, "before | after: move a knob, B or the router")
		add()
		return out
	}
	head := func() {
		l.Put(th.Strong, clock(c.At)).Put("", "  ").PutClip(th.Title, c.Label, l.Room())
	}
	if n >= 2 {
		head()
		add()
	}
	before, need := rate(c.Before.TokensPerS), c.Need
	if w < 100 {
		need = strings.TrimSuffix(need, " after the change")
	}
	switch {
	case !c.Ready && c.Before.Seconds == 0:
		l.Put(th.Dim, "before - | after  ").Put(th.Pending, "collecting: ").PutClip(th.Dim, need, l.Room())
	case !c.Ready:
		l.Put(th.Dim, "before ").Put(th.Strong, before).Put(th.Dim, " | after  ")
		l.Put(th.Pending, "collecting: ").PutClip(th.Dim, need, l.Room())
	default:
		l.Put(th.Dim, "before ").Put(th.Strong, before).Put(th.Dim, " | after ").Put(th.Strong, rate(c.After.TokensPerS)).Put(th.Dim, " tok/s   ")
		st := th.Dim
		switch {
		case c.Delta-c.DeltaCI > 0:
			st = th.Good
		case c.Delta+c.DeltaCI < 0:
			st = th.Bad
		}
		l.Put(st, fmt.Sprintf("%+.1f %%", c.Delta*100)).Put(th.Dim, fmt.Sprintf(" %s%.1f", th.G.PlusMinus, c.DeltaCI*100))
	}
	if n < 2 {
		if l.Room() > 12 {
			l.Put(th.Dim, "   ").PutClip(th.Dim, c.Label, l.Room())
		}
		add()
		return out
	}
	add()
	pair := func(name string, a, b string) {
		l.Put(th.Dim, fmt.Sprintf("%-6s ", name)).Put(th.Strong, a).Put(th.Dim, " | ").Put(th.Strong, b)
		add()
	}
	if c.Before.Seconds > 0 && c.After.Seconds > 0 {
		if m.n > 1 {
			pair("large", fmt.Sprintf("%.1f %%", c.Before.LargeShare*100), fmt.Sprintf("%.1f %%", c.After.LargeShare*100))
		}
		if c.Before.Checked > 0 && c.After.Checked > 0 {
			pair("right", answered(th.G, c.Before.Right, c.Before.Checked, c.Before.RightLo, c.Before.RightHi), answered(th.G, c.After.Right, c.After.Checked, c.After.RightLo, c.After.RightHi))
		}
		pair("over", seconds(c.Before.Seconds), seconds(c.After.Seconds))
	} else if c.WarmUp > 0 {
		l.Put(th.Dim, fmt.Sprintf("%.0f s ago; the first %s of warm-up do not count", c.Age.Seconds(), c.WarmUp.Round(100*time.Millisecond)))
		add()
	}
	return out
}

func seconds(n int) string { return fmt.Sprintf("%d s", n) }

func answered(g *frame.Glyphs, right, checked int, lo, hi float64) string {
	return fmt.Sprintf("%.0f %% %s%.0f (%d)", 100*float64(right)/float64(checked), g.PlusMinus, (hi-lo)*50, checked)
}

// whole are the rates of a subserver in whole numbers, as shown.
type whole struct{ rows, committed, dropped int }

// wholes rounds so that what is shown adds up: committed tokens by role to those
// of all, and in each card the rows to committed, dropped and other ones.
func wholes(s *metrics.Snapshot) []whole {
	out, order := make([]whole, len(s.Peers)), make([]int, len(s.Peers))
	left := int(math.Round(s.TokensPerS))
	for i := range s.Peers {
		out[i].committed, order[i] = int(s.Peers[i].CommittedPerS), i
		left -= out[i].committed
	}
	rest := func(i int) float64 { return s.Peers[i].CommittedPerS - float64(out[i].committed) }
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rest(j), rest(i)) })
	for _, i := range order[:min(max(left, 0), len(order))] {
		out[i].committed++
	}
	for i := range out {
		p, o := &s.Peers[i], &out[i]
		o.dropped = int(math.Round(p.DroppedPerS))
		other := math.Round(p.RowsPerS - p.CommittedPerS - p.DroppedPerS)
		o.rows = o.committed + o.dropped + max(int(other), 0)
	}
	return out
}
