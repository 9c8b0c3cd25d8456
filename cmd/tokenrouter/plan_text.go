package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

const (
	planIndent = 2
	planLabel  = 16  // width of the names before sentences, as in the summary of run
	planWidest = 100 // bars do not grow beyond
	planName   = 11  // width of the names of lines
	planBar    = 8   // least width of bars
)

// planText draws a plan as text.
type planText struct {
	t     *theme.Theme
	width int
	line  *frame.Line
	rows  []frame.Row
}

// text is the plan for a terminal of that width. Below some 60 columns bars go.
func (r *planReport) text(t *theme.Theme, width int) string {
	p := newPlanText(t, width)
	p.system(r)
	p.curve(r)
	p.answer(r)
	p.table(r)
	if len(r.Warnings) > 0 {
		p.gap()
	}
	for _, w := range r.Warnings {
		p.wrap(t.Warn, "!", planIndent, w)
	}
	return p.text()
}

func newPlanText(t *theme.Theme, width int) *planText {
	width = min(max(width, 40), planWidest)
	return &planText{t: t, width: width, line: frame.NewLine(width, t.G.ASCII)}
}

func (p *planText) text() string {
	var b strings.Builder
	for _, row := range p.rows {
		b.WriteString(strings.TrimRight(row.S, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *planText) start() *frame.Line { return p.line.Start(p.width) }
func (p *planText) end()               { p.rows = append(p.rows, p.line.End()) }
func (p *planText) gap()               { p.start(); p.end() }

// stuck stands for a space that a line does not end at.
const stuck = "\x00%"

// wrap breaks text at spaces, behind a label on the first line.
func (p *planText) wrap(s frame.Style, label string, indent int, text string) {
	l := p.start()
	l.Put(s, label).To(indent)
	for _, word := range strings.Fields(strings.ReplaceAll(text, " %", stuck)) {
		word = strings.ReplaceAll(word, stuck, " %")
		switch w := frame.Width(word); {
		case l.W() == indent:
		case l.Room() <= w:
			p.end()
			l = p.start()
			l.To(indent)
		default:
			l.Put("", " ")
		}
		l.Put("", word)
	}
	p.end()
}

func (p *planText) fact(label, format string, args ...any) {
	p.wrap(p.t.Dim, label, planLabel, fmt.Sprintf(format, args...))
}

// planColumn is a column of figures, aligned to the right.
type planColumn struct {
	head  string
	width int
	cells []planCell
}

// planCell is one figure; without a style of its own it has its line's.
type planCell struct {
	text  string
	style frame.Style
}

// add appends a figure.
func (c *planColumn) add(text string, style frame.Style) {
	c.cells = append(c.cells, planCell{text, style})
}

// grid prints lines of a name and figures. Columns that do not fit are left out,
// the last ones first: a figure cut in two would be another figure. What is left
// of a line is tail's.
func (p *planText) grid(head string, nameWidth int, names []string, styles []frame.Style, cols []planColumn, tail func(i int)) {
	room := p.width - planIndent - nameWidth
	for i, c := range cols {
		if room -= c.width; room < 0 {
			cols = cols[:i]
			break
		}
	}
	l := p.start()
	l.To(planIndent).Put(p.t.Dim, head).To(planIndent + nameWidth)
	for _, c := range cols {
		l.PutRight(p.t.Dim, c.head, c.width)
	}
	p.end()
	for i, name := range names {
		l := p.start()
		l.To(planIndent).Put(styles[i], name).To(planIndent + nameWidth)
		for _, c := range cols {
			style := c.cells[i].style
			if style == "" {
				style = styles[i]
			}
			l.PutRight(style, c.cells[i].text, c.width)
		}
		if tail != nil {
			tail(i)
		}
		p.end()
	}
}

// system says what was understood.
func (p *planText) system(r *planReport) {
	p.fact("system", "%s, N = %d active %s", r.Algo, r.N, plural(r.N, "request"))
	p.fact("commits", "%s", r.commitWords())
	p.fact("method", "%s", r.methodWords())
	if r.BatchCap != nil {
		p.fact("seats", "batches of at most %s rows", numbers(r.BatchCap, ", "))
	}
	p.gap()
	cols := []planColumn{{head: "step time"}}
	for i, l := range r.LatencyMS {
		cols[0].add(stepWords(l), "")
		cols[0].width = max(cols[0].width, len(cols[0].cells[i].text), len(cols[0].head))
		to := planColumn{head: "to " + r.Models[i], width: 11}
		if len(r.Models) > 3 {
			to = planColumn{head: fmt.Sprintf("to %d", i), width: 7}
		}
		for _, row := range r.Routing {
			to.add(short(row[i], to.width-2), "")
		}
		cols = append(cols, to)
	}
	p.grid("model", 9, r.Models, make([]frame.Style, len(r.Models)), cols, nil)
}

// curve is the table of thresholds, with a bar for each.
func (p *planText) curve(r *planReport) {
	p.gap()
	rows, hidden := r.shown()
	names, styles := []string{}, []frame.Style{}
	top := slices.MaxFunc(rows, func(x, y shownPoint) int { return cmp.Compare(x.TokensPerS, y.TokensPerS) }).TokensPerS
	b, tokens, rough := planColumn{head: "B", width: 5}, planColumn{head: "tok/s", width: 10}, planColumn{head: p.t.G.PlusMinus, width: 8}
	eager, lock, p99 := planColumn{head: "over eager", width: 12}, planColumn{head: "over lock-step", width: 16}, planColumn{head: "p99 ms", width: 10}
	simulated, followed := false, false
	for _, row := range rows {
		style := frame.Style("")
		if row.best {
			style = p.t.Title
		}
		names, styles = append(names, row.name), append(styles, style)
		b.add(vector(row.B), "")
		b.width = max(b.width, len(vector(row.B)))
		tokens.add(rateBeside(row.TokensPerS, top), "")
		rough.add(errorText(row.planPoint, r.Method), p.t.Dim)
		simulated = simulated || row.StdErr > 0
		for _, over := range []struct {
			col  *planColumn
			base planPoint
		}{{&eager, r.Eager}, {&lock, r.Lockstep}} {
			text := ""
			if !slices.Equal(row.B, over.base.B) {
				text = gain(row.TokensPerS, over.base.TokensPerS)
			}
			over.col.add(text, "")
		}
		followed = followed || (row.P99 > 0 && row.name == "")
		if r.MaxP99 > 0 && row.P99 > r.MaxP99 {
			p99.add(millis(row.P99)+" "+p.t.G.Bad, p.t.Bad)
		} else {
			p99.add(millis(row.P99)+"  ", "")
		}
	}
	cols := []planColumn{b, tokens}
	if simulated {
		cols = append(cols, rough)
	}
	cols = append(cols, eager, lock)
	if followed {
		cols = append(cols, p99)
	}
	p.grid("", planName, names, styles, cols, func(i int) {
		p.line.Put("", "  ")
		if room := p.line.Room(); room >= planBar && top > 0 {
			style := p.t.Dim
			if rows[i].best {
				style = p.t.Good
			}
			p.line.Put(style, barText(rows[i].TokensPerS/top, room, p.t.G.ASCII))
		}
	})
	if hidden > 0 {
		p.wrap("", "", planIndent, fmt.Sprintf("%d more that were looked at: --json", hidden))
	}
}

// answer says what B* is worth.
func (p *planText) answer(r *planReport) {
	p.gap()
	over := ""
	if r.N > 1 {
		over = fmt.Sprintf(": %s over eager, %s over lock-step", percent(r.GainEager), percent(r.GainLockstep))
	}
	p.wrap(p.t.Title, "B*", planLabel, fmt.Sprintf("%s, %s tok/s, %s a request%s", vector(r.Best), rate(r.TokensPerS), rate(r.TokensPerS/float64(r.N)), over))
	if r.MaxP99 > 0 {
		p.fact("bound", "p99 between two tokens within %s ms", short(r.MaxP99, 9))
	}
	if r.Rule > 1 {
		p.fact("rule of thumb", "B = %d for the large model: with fewer ready, one more step of the small model costs them less than sharing the batch saves", r.Rule)
	}
	stays := "B* holds"
	switch {
	case r.MaxP99 > 0:
		stays = "under a bound it is not asked whether B* holds"
	case r.Band.Flips:
		stays = fmt.Sprintf("another B is better there, by up to %.1f %%", 100*r.Band.Regret)
	}
	p.fact("2 % band", "%s to %s tok/s while the step time of one model is up to 2 %% off; %s", rate(r.Band.Low), rate(r.Band.High), stays)
	p.fact("between tokens", "p99 %s ms; eager %s, lock-step %s", millis(r.P99), millis(r.Eager.P99), millis(r.Lockstep.P99))
	for i, m := range r.Models {
		if r.StepsPerS[i] == 0 {
			p.fact(m, "never runs: no request is sent there")
			continue
		}
		p.fact(m, "busy %.1f %%, %s rows/s in batches of %.2f", 100*r.BusyFraction[i], rate(r.StepsPerS[i]), r.MeanBatch[i])
	}
}

// table is B*(n), some of it where it is long.
func (p *planText) table(r *planReport) {
	if len(r.Table) < 2 {
		return
	}
	p.gap()
	rows := r.tableShown()
	names, styles := []string{}, []frame.Style{}
	const figure = 11
	b := planColumn{head: "B*(n)", width: 5}
	tokens, eager, lock := planColumn{head: "tok/s", width: figure - 1}, planColumn{head: "eager", width: figure}, planColumn{head: "lock-step", width: figure}
	overEager, overLock := planColumn{head: "gain", width: figure}, planColumn{head: "gain", width: figure}
	for _, row := range rows {
		style := frame.Style("")
		if row.N == r.N {
			style = p.t.Title
		}
		name := strconv.Itoa(row.N)
		if row.OverBound {
			name += " " + p.t.G.Bad
		}
		names, styles = append(names, name), append(styles, style)
		b.add(vector(row.Best), "")
		b.width = max(b.width, len(vector(row.Best)))
		tokens.add(rate(row.TokensPerS), "")
		eager.add(rate(row.Eager), "")
		overEager.add(gain(row.TokensPerS, row.Eager), "")
		lock.add(rate(row.Lockstep), "")
		overLock.add(gain(row.TokensPerS, row.Lockstep), "")
	}
	p.grid("n", planName, names, styles, []planColumn{b, tokens, eager, overEager, lock, overLock}, nil)
	if hidden := len(r.Table) - len(rows); hidden > 0 {
		p.wrap("", "", planIndent, fmt.Sprintf("%d more: --json", hidden))
	}
	if slices.ContainsFunc(rows, func(row planRow) bool { return row.OverBound }) {
		p.wrap(p.t.Bad, p.t.G.Bad, planIndent, "no B keeps the bound there; this one has the least p99")
	}
}

// text is the answer to a file.
func (r *specReply) text(t *theme.Theme, width int) string {
	p := newPlanText(t, width)
	s := r.input
	p.fact("system", "%d models, N = %d active %s", len(s.P), s.N, plural(s.N, "request"))
	b := s.B
	if b == nil {
		b = ones(len(s.P))
	}
	p.fact("throughput", "%.6g tok/s under B = %s", float64(r.Throughput), vector(b))
	p.fact("B*", "%s, %.6g tok/s; with B[0] = 1 %s, %.6g tok/s; by %s", vector(r.Best), float64(r.AtBest), vector(r.BestFront), float64(r.AtBestFront), r.looked)
	p.fact("eager", "%.6g tok/s", float64(r.Eager))
	for i, m := range roles(len(s.P)) {
		p.fact(m, "busy %.1f %%, %.6g rows/s in batches of %.2f", 100*float64(r.BusyFraction[i]), float64(r.StepsPerS[i]), float64(r.MeanBatch[i]))
	}
	return p.text()
}

func (f feasibleReply) text(t *theme.Theme, width int) string {
	p := newPlanText(t, width)
	if f.Feasible {
		p.fact("feasible", "yes: the sum of B-1 is below N")
	} else {
		p.fact("feasible", "no: every request can come to wait, as the sum of B-1 is not below N; lower an entry of B")
	}
	return p.text()
}
