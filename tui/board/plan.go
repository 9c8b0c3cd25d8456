package board

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
)

// comparable is how long the window must be before what is measured is set
// against what is predicted.
const comparable = 2 * time.Second

// stars is B* for the requests that are active now, nil while there is no plan. At
// the number that the plan is for it is the B* of the figures: the table is searched
// less closely.
func (m *Model) stars() []int {
	s := &m.figs.snap
	switch {
	case s.Plan == nil:
		return nil
	case s.Active > 0 && s.Active != s.Plan.N && len(s.Plan.Table) > 0:
		return s.Plan.Table[min(s.Active, len(s.Plan.Table))-1]
	}
	return s.Plan.B
}

// star is B* of subserver p, 0 where it is not known.
func (m *Model) star(p event.Peer) int {
	if b := m.stars(); int(p) < len(b) {
		return b[p]
	}
	return 0
}

// expected is what the plan expects of the policy in force, tok/s; ok is false
// where it does not say.
func (m *Model) expected() (tps float64, ok bool) {
	s := &m.figs.snap
	switch p := s.Plan; {
	case p == nil:
	case s.Policy == event.LockStep.String():
		tps = p.Lockstep
	case p.Policy == s.Policy:
		tps = p.Predicted
	case s.Policy == event.Eager.String():
		tps = p.Eager
	case s.Policy == event.Table.String():
		tps = p.Best
	}
	return tps, tps > 0 && !math.IsInf(tps, 0)
}

// off says how far the measured tokens per second are from the predicted ones;
// ok is false where the two are not of the same thing, or too little is
// measured.
func (m *Model) off() (off float64, ok bool) {
	s := &m.figs.snap
	want, known := m.expected()
	if !known || s.Window < comparable || s.TokensPerS <= 0 || !m.planned() {
		return 0, false
	}
	return s.TokensPerS/want - 1, true
}

// planned says that the plan is for as many requests as there are now: those
// that are asked for, or those that KV admits of them.
func (m *Model) planned() bool {
	n, planned := m.status.Concurrency, m.figs.snap.Plan.N
	return n == 0 || planned == n || planned == m.figs.snap.Active
}

// piece is a part of a line in one style.
type piece struct {
	style frame.Style
	text  string
}

func widthOf(text []piece) int {
	w := 0
	for _, p := range text {
		w += frame.Width(p.text)
	}
	return w
}

// putFirst puts the first of some texts that fits, keeping a few cells free
// behind it; false if none does.
func putFirst(l *frame.Line, keep int, texts ...[]piece) bool {
	for _, t := range texts {
		if widthOf(t)+keep > l.Room() {
			continue
		}
		for _, p := range t {
			l.Put(p.style, p.text)
		}
		return true
	}
	return false
}

// putPredicted sets what the plan expects of the policy in force beside what is
// measured.
func (m *Model) putPredicted(l *frame.Line) {
	th, gap := m.theme, m.figureGap(l)
	if l.W() == 0 {
		gap = " "
	}
	name := piece{th.Dim, gap + "pred "}
	want, ok := m.expected()
	switch {
	case m.figs.snap.Plan == nil:
		putFirst(l, 0, []piece{name, {th.Prediction, "-"}, {th.Dim, " (no plan)"}}, []piece{name, {th.Prediction, "-"}})
		return
	case !ok:
		putFirst(l, 0, []piece{name, {th.Prediction, "-"}, {th.Dim, " (not for " + m.kind.String() + ")"}}, []piece{name, {th.Prediction, "-"}})
		return
	}
	value := piece{th.Prediction, "~" + tenths(want)}
	if !m.planned() {
		putFirst(l, 0, []piece{name, value, {th.Dim, fmt.Sprintf(" for N %d", m.figs.snap.Plan.N)}})
		return
	}
	off, ok := m.off()
	if !ok {
		putFirst(l, 0, []piece{name, value})
		return
	}
	st := th.Strong
	if math.Abs(off) >= 0.1 {
		st = th.Warn
	}
	putFirst(l, 0, []piece{name, value, {th.Dim, " ("}, {st, signed(off)}, {th.Dim, ")"}}, []piece{name, value})
}

// putGains says what B* is, what it is expected to yield, and its gains.
func (m *Model) putGains(l *frame.Line) {
	p := m.figs.snap.Plan
	if p == nil {
		return
	}
	th, gap := m.theme, m.figureGap(l)
	notes := ""
	switch n := len(p.Warnings); {
	case n == 1:
		notes = gap + "p: 1 note"
	case n > 1:
		notes = fmt.Sprintf("%sp: %d notes", gap, n)
	}
	star := []piece{{th.Dim, gap + "B* "}, {th.Strong, vector(p.B)}}
	best := piece{th.Prediction, " ~" + rate(p.Best)}
	gain := func(of float64, name string, value bool) []piece {
		if !(of > 0) || !(p.Best > 0) {
			return nil
		}
		out := []piece{{m.gainStyle(p.Best/of - 1), gap + gained(p.Best/of-1)}, {th.Dim, " over " + name}}
		if value {
			out = append(out, piece{th.Prediction, " ~" + rate(of)})
		}
		return out
	}
	full := slices.Concat(star, []piece{best})
	short := slices.Concat(full, gain(p.Eager, "eager", false))
	putFirst(l, 0,
		slices.Concat(full, gain(p.Eager, "eager", true), gain(p.Lockstep, "lock-step", true)),
		slices.Concat(short, gain(p.Lockstep, "lock-step", false)),
		short, slices.Concat(star, gain(p.Eager, "eager", false)), star)
	putFirst(l, 0, []piece{{th.Dim, notes}})
}

func (m *Model) gainStyle(gain float64) frame.Style {
	if gain < 0.01 {
		return m.theme.Dim
	}
	return m.theme.Good
}

// tenths writes predicted tokens per second.
func tenths(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// signed writes a relative difference in percent.
func signed(x float64) string {
	if a := math.Abs(100 * x); a > 0 && a < 9.95 {
		return fmt.Sprintf("%+.1f %%", 100*x)
	}
	return fmt.Sprintf("%+.0f %%", 100*x)
}

// gained is signed where it gains anything.
func gained(x float64) string {
	if math.Abs(x) < 0.0005 {
		return "no gain"
	}
	return signed(x)
}

// vector writes thresholds: "1,3".
func vector(b []int) string {
	parts := make([]string, len(b))
	for i, v := range b {
		parts[i] = strconv.Itoa(v)
	}
	return strings.Join(parts, ",")
}

// quiet is how long a warning of the plan must have been away before it is said
// again.
const quiet = int64(time.Minute)

// planSays is how a message begins that tells a warning of the plan.
const planSays = "plan: "

// bare is a warning without its figures: with others it is the same.
func bare(w string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, w)
}

// planSaid says that a message tells a warning that a plan has told.
func (m *Model) planSaid(text string) bool {
	w, ok := strings.CutPrefix(text, planSays)
	_, told := m.warned[bare(w)]
	return ok && told
}

// littleGain is the gain below which it does not matter which B is B*.
const littleGain = 0.01

// notePlan says what a plan warns of, once as long as it does, and B* whenever it
// changes to another one that gains something. What plans warn of is how things
// are, nothing that has to be mended: no mark.
func (m *Model) notePlan(p *tape.Plan, at int64) {
	for _, w := range p.Warnings {
		key := bare(w)
		last, known := m.warned[key]
		m.warned[key] = at
		if !known || at-last > quiet {
			m.note(eventLine{at: at, level: tape.Info, text: planSays + w})
		}
	}
	for w, last := range m.warned {
		if at-last > quiet {
			delete(m.warned, w)
		}
	}
	key := fmt.Sprintf("B* %s at %d active", vector(p.B), p.N)
	gain := p.Best/p.Eager - 1
	text := key + ": " + signed(gain) + " over eager"
	if !(gain >= littleGain) || math.IsInf(gain, 0) {
		key = fmt.Sprintf("waiting gains less than %.0f %% at %d active", 100*littleGain, p.N)
		text = key
	}
	if key == m.starred {
		return
	}
	m.starred = key
	e := eventLine{at: at, level: tape.Info, text: text, moved: "plan", key: key}
	m.takeMove(&e)
	for i := len(m.events) - 1; i >= 0; i-- {
		if m.events[i].moved == e.moved {
			if m.events[i].key == key {
				return // it went and came back
			}
			break
		}
	}
	m.note(e)
}

// Thresholds are those that the keys for B start from: as set, or in force under
// a table or in lock-step; 1 under policies that have none.
func (m *Model) Thresholds() []int {
	out := slices.Repeat([]int{1}, m.n)
	for i := range out {
		switch m.status.Policy {
		case event.Fixed.String():
			if i < len(m.status.B) {
				out[i] = max(m.status.B[i], 1)
			}
		case event.Table.String(), event.LockStep.String():
			out[i] = max(m.cores[i].load.B, 1)
		}
	}
	return out
}

// Fixed is the thresholds with which the fixed policy takes over from the one in
// force: those that were set last, else B*, else those in force.
func (m *Model) Fixed() []int {
	for _, b := range [][]int{m.fixed, m.stars()} {
		if len(b) == m.n {
			return slices.Clone(b)
		}
	}
	return m.Thresholds()
}

// Planned says whether there is a plan.
func (m *Model) Planned() bool { return m.figs.snap.Plan != nil }

// waits says in a sentence each who waits for whom for longer than W.
func (m *Model) waits() []eventLine {
	var out []eventLine
	for i := range m.figs.snap.Waits {
		w := &m.figs.snap.Waits[i]
		out = append(out, eventLine{at: m.figs.at - int64(w.For), level: tape.Warn, text: m.waitText(w)})
	}
	return out
}

// waitFor gives the wait of a subserver, nil if it has none.
func (m *Model) waitFor(p event.Peer) *metrics.Wait {
	for i := range m.figs.snap.Waits {
		if w := &m.figs.snap.Waits[i]; w.Core == p {
			return w
		}
	}
	return nil
}

// maxNamed is how many requests a wait names.
const maxNamed = 4

func (m *Model) waitText(w *metrics.Wait) string {
	var b strings.Builder
	b.WriteString(m.role(w.Core) + " waits")
	for i, on := range w.On {
		b.WriteString(map[bool]string{true: " for ", false: " and "}[i == 0] + m.role(on.Core))
	}
	if len(w.On) == 0 && w.Comes > 0 {
		fmt.Fprintf(&b, " for %d on the way to it", w.Comes)
	}
	switch {
	case w.Fit <= 0:
		fmt.Fprintf(&b, ": %d ready without KV", w.Ready)
	case w.Fit < w.Ready:
		fmt.Fprintf(&b, ": %d ready of B %d, %d without KV", w.Ready, w.B, w.Ready-w.Fit)
	default:
		fmt.Fprintf(&b, ": %d ready of B %d", w.Ready, w.B)
	}
	names := make([]string, 0, maxNamed+1)
	for i, id := range w.Reqs {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(w.Reqs)-i))
			break
		}
		names = append(names, num(uint64(id)))
	}
	fmt.Fprintf(&b, " since %s (%s)", age(w.For), strings.Join(names, ", "))
	return b.String()
}

// age writes a span in few digits.
func age(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
