package board

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"tokenrouter/runtime/metrics"
	"tokenrouter/tui/frame"
)

// Below this the board says that the window is too small.
const (
	minWidth  = 60
	minHeight = 16
)

// layout says how the parts share the height. It depends on the window alone,
// never on what is shown, so that nothing moves.
type layout struct {
	w, h    int
	body    int // lines in a card
	figures int // 1; 2 with the plan below it; 3 for big digits
	chart   int // rows of the chart without its axis
	share   bool
	side    int // width of the comparison beside the chart, 0 = one line below it
	reqs    int // lines of the request pane without its title
	bottom  int // lines of knobs and events without their title
	machine bool
	blank   bool // an empty line around the figures
}

func (m *Model) layout(w, h int) layout {
	l := layout{w: w, h: h, body: 3, figures: 1, chart: 1, bottom: 2}
	switch {
	case h >= 46:
		l.body, l.figures, l.chart, l.bottom = 5, 3, 8, 5
		l.share, l.machine, l.blank = true, true, true
	case h >= 34:
		l.body, l.figures, l.chart, l.bottom = 5, 3, 5, 4
		l.share, l.machine = true, true
	case h >= 30:
		l.body, l.figures, l.chart, l.bottom = 5, 2, 4, 4
		l.machine = true
	case h >= 24:
		l.body, l.figures, l.chart, l.bottom = 4, 2, 2, 3
	case h >= 20:
		l.body, l.chart, l.bottom = 4, 1, 2
	}
	if w >= 110 {
		l.side = min(64, w*2/5)
	}
	used := 1 + l.body + 2 + l.figures + l.chart + 1 + 1 + 1 + l.bottom + 1
	if l.share {
		used++
	}
	if l.side == 0 {
		used++
	}
	if l.machine {
		used++
	}
	if l.blank {
		used += 2
	}
	if h < 20 { // no axis, no comparison line
		used -= 2
		if l.side > 0 {
			used++
		}
	}
	l.reqs = max(h-used, 1)
	return l
}

// figures are what metrics says at one moment. They change four times a second,
// and with them where requests stand: faster ones cannot be read.
type figures struct {
	at    int64
	wall  int64 // wall time then
	late  int64 // newest record then
	marks int
	snap  metrics.Snapshot
	rates []whole // by role, as shown
	cmp   metrics.Comparison
	all   []metrics.Mark
	bins  []metrics.Bin
	width int
	span  time.Duration
	share float64 // upper end of the row of shares
}

const figuresEvery = int64(250 * time.Millisecond)

// wall is the time that passes for who looks on: that of the session, unless it
// is virtual.
func (m *Model) wall(now int64) int64 {
	if m.status.Virtual() {
		return m.status.Wall
	}
	return now
}

// columnSpan is the time that a column of the chart stands for: a second, more
// where virtual time goes so fast that the chart would run through in a moment.
// It follows the speed asked for, so that columns do not change by themselves,
// and the speed reached where that is far less; where speed has no bound columns
// grow with the session.
func (m *Model) columnSpan(now int64, columns int) time.Duration {
	s := &m.status
	if !s.Virtual() {
		return time.Second
	}
	need := s.Speed / 4
	switch {
	case s.Speed == 0:
		need = float64(now) / 1e9 / float64(max(columns, 1))
	case s.Reached > 0 && s.Reached < s.Speed/2:
		need = s.Reached / 4
		if had := m.figs.span.Seconds(); had > 0 && need < had*1.5 && need > had/8 {
			return m.figs.span // what is reached changes by itself
		}
	case s.Reached == 0 && m.figs.span > 0:
		return m.figs.span // it is measured anew
	}
	for _, span := range []time.Duration{1, 2, 5, 10} {
		if need <= float64(span) {
			return span * time.Second
		}
	}
	return 20 * time.Second
}

// refresh brings the figures up to now, if they are old enough.
func (m *Model) refresh(now int64, columns int) {
	f, wall := &m.figs, m.wall(now)
	if f.width == columns && f.at > 0 && wall-f.wall < figuresEvery && wall >= f.wall && f.marks == m.evSeq && !m.status.Paused {
		return
	}
	f.at, f.wall, f.width, f.marks, f.late = max(now, 1), wall, columns, m.evSeq, m.latest
	for i := range m.cores {
		m.cores[i].see()
	}
	for _, r := range m.slots {
		r.see(m.n)
	}
	if in := m.UI.inspect; in != nil {
		in.req.see(m.n)
	}
	f.snap = m.fold.Snapshot(now)
	f.rates = wholes(&f.snap)
	f.cmp = m.fold.Compare(now)
	f.all = m.fold.Marks()
	f.span = m.columnSpan(now, columns)
	f.bins = m.fold.Series(now, columns, f.span)
}

// Draw gives the screen at session time now: h rows of at most w cells.
func (m *Model) Draw(w, h int, now int64, keys []frame.Row) []frame.Row {
	if w <= 0 || h <= 0 {
		return nil
	}
	if w < minWidth || h < minHeight {
		return m.tooSmall(w, h)
	}
	if m.status.Virtual() { // what has not been read yet is in the future
		now = m.latest
	}
	now = max(now, m.latest)
	lay := m.layout(w, h)
	columns := lay.chartColumns()
	m.refresh(now, columns)

	out := make([]frame.Row, 0, h)
	out = append(out, m.header(w, now))
	if in := m.UI.inspect; in != nil {
		out = append(out, in.draw(m, w, h-2, now)...)
		return m.foot(out, w, h, now, keys)
	}
	out = append(out, m.cards(lay)...)
	if lay.blank {
		out = append(out, frame.Row{})
	}
	out = append(out, m.figureRows(lay)...)
	if lay.blank {
		out = append(out, frame.Row{})
	}
	out = append(out, m.chartRows(lay, columns, now)...)
	out = append(out, m.requestRows(lay)...)
	out = append(out, m.bottomRows(lay)...)
	if lay.machine {
		out = append(out, m.machineRow(w))
	}
	return m.foot(out, w, h, now, keys)
}

// saidLines is how long the answer to a key is at most: why something was refused
// and what to do about it have to be seen whole.
const saidLines = 4

// foot cuts or fills out to h rows and ends it with the keys. The answer to the
// last key stands above them.
func (m *Model) foot(out []frame.Row, w, h int, now int64, keys []frame.Row) []frame.Row {
	for len(out) < h-1 {
		out = append(out, frame.Row{})
	}
	out = out[:h-1]
	if said := m.UI.said(m.wall(now)); said != "" {
		st, mark := m.theme.Strong, " "
		if m.UI.alarm {
			st, mark = m.theme.Bad, " ! "
		}
		lines := wrapWords(said, w-len(mark), saidLines)
		for i, text := range lines {
			l := m.line.Start(w)
			l.Put(st, mark).PutClip(st, text, l.Room())
			out[h-1-len(lines)+i] = l.End()
			mark = strings.Repeat(" ", len(mark))
		}
	}
	if len(keys) > 0 {
		k := keys[0]
		if k.W > w {
			k = frame.NewLine(w, m.theme.G.ASCII).Row(k).End()
		}
		return append(out, k)
	}
	return append(out, frame.Row{})
}

// tooSmall says what is needed; in a box where there is room for one.
func (m *Model) tooSmall(w, h int) []frame.Row {
	th := m.theme
	lines := []string{
		fmt.Sprintf("window %d%s%d", w, th.G.Times, h),
		fmt.Sprintf("needs %d%s%d", minWidth, th.G.Times, minHeight),
		"q quits",
	}
	out := make([]frame.Row, h)
	text := strings.Join(lines, "\n")
	if box := th.Dialog.Render(text); lipgloss.Width(box) < w && lipgloss.Height(box) < h {
		text = lipgloss.Place(w, h, lipgloss.Center, lipgloss.Center, box)
	}
	for i, s := range strings.Split(text, "\n") {
		if i < h {
			out[i] = frame.Cut(frame.Row{S: s, W: lipgloss.Width(s)}, w, th.G.ASCII)
		}
	}
	return out
}

// header names the models, the router, the load and the clock.
func (m *Model) header(w int, now int64) frame.Row {
	th, s := m.theme, &m.status
	l := m.line.Start(w)
	right := m.recording(now)
	name, _, _ := strings.Cut(orElse(m.info.Program, "tokenrouter"), " ") // the version is in the help
	l.Put("", " ").Put(th.Title, name)
	gap := "   "
	if w < 110 {
		gap = "  "
	}
	l.Put("", gap)
	end := w - 1 - frame.Width(right)
	room := end - 2
	paused := ""
	if s.Paused {
		paused = " PAUSED "
		room -= len(gap) + len(paused)
	}
	put := func(st frame.Style, text string) {
		if l.W()+frame.Width(text) <= room {
			l.Put(st, text)
		}
	}
	if w >= 130 {
		for i, name := range m.modelNames(room - l.W() - restOfHead) {
			if i > 0 {
				put("", " + ")
			}
			put(th.Role(peer(i), m.n), name)
		}
		l.Put("", gap)
	}
	if m.faulty != nil {
		put(th.Bad, "! ")
	}
	hash := "@" + hash4(s.Hash)
	left := room - l.W()
	put(th.Strong, frame.Clip(s.Router, max(left-restOfName, min(leastName, left-len(hash))), th.G.ASCII))
	put(th.Dim, hash)
	fast := s.Virtual() && s.Speed != 1 && w < 100 // in little room the speed is worth more than the rest
	switch {
	case m.info.Arrivals != "":
		put("", gap+m.info.Arrivals)
	case fast:
		put("", gap+fmt.Sprintf("N %d", s.Concurrency))
	default:
		put("", gap+fmt.Sprintf("N %d closed loop", s.Concurrency))
	}
	put("", gap+s.Clock)
	if s.ByProfile() && !fast {
		put(th.Dim, " "+orElse(s.Profile, m.info.Profile))
	}
	if s.Speed != 1 && s.ByProfile() {
		put(th.Strong, " "+m.speed(s.Speed))
	}
	if m.behind() {
		put(th.Warn, " reaches "+m.reached())
	}
	if from := tokensFrom(m.info.Tokens); s.Virtual() || from != computed {
		put(th.Dim, gap+from)
	}
	if s.Paused {
		l.Put("", gap).Put(th.Selected, paused)
	}
	l.To(end)
	st := th.Dim
	if !s.Recording {
		st = th.Warn
	}
	return l.Put(st, right).End()
}

// speed writes a factor on the clock.
func (m *Model) speed(f float64) string {
	switch {
	case f == 0:
		return "as fast as it can"
	case f >= 100:
		return m.theme.G.Times + fmt.Sprintf("%.0f", f)
	}
	return m.theme.G.Times + fmt.Sprintf("%.3g", f)
}

// reached writes the speed that was reached, in digits that stand still.
func (m *Model) reached() string {
	f := m.status.Reached
	switch {
	case f >= 9.95:
		return m.theme.G.Times + fmt.Sprintf("%.0f", f)
	case f >= 0.095:
		return m.theme.G.Times + fmt.Sprintf("%.1f", f)
	}
	return m.theme.G.Times + fmt.Sprintf("%.1g", f)
}

// keepsUp is the part of the speed asked for that a machine has to reach: timers
// and a screen take a little.
const keepsUp = 0.9

// behind says that this machine is too slow for the speed asked for.
func (m *Model) behind() bool {
	s := &m.status
	return s.Virtual() && !s.Paused && s.Speed > 0 && s.Reached > 0 && s.Reached < keepsUp*s.Speed
}

// computed tokens are what models write, unless something else is said.
const computed = "real tokens"

// tokensFrom says who writes the tokens.
func tokensFrom(who string) string {
	switch who {
	case "", "models":
		return computed
	case "drawn":
		return "drawn tokens"
	}
	return "recorded tokens"
}

// recording says how long and how much is recorded.
func (m *Model) recording(now int64) string {
	s := &m.status
	if !s.Recording {
		return "! not recorded " + clock(now)
	}
	text := "rec " + clock(now) + " " + size(s.Recorded)
	if s.RecordNote != "" {
		text = "! " + text
	}
	return text
}

// size writes bytes in few digits.
func size(b uint64) string {
	switch {
	case b < 1000:
		return fmt.Sprintf("%d B", b)
	case b < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(b)/1e3)
	case b < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(b)/1e6)
	default:
		return fmt.Sprintf("%.2f GB", float64(b)/1e9)
	}
}
