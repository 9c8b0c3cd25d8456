package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

// mostRunBars bounds a histogram on the screen; --json has all of it.
const mostRunBars = 16

// text is for a terminal of that width.
func (r *runlengths) text(t *theme.Theme, width int) string {
	p := newPlanText(t, width)
	knobs := ""
	for _, k := range slices.Sorted(maps.Keys(r.Params)) {
		knobs += fmt.Sprintf(" %s=%.4g", k, r.Params[k])
	}
	p.fact("router", "%s%s", r.Router, knobs)
	p.fact("models", "%s", strings.Join(r.Models, " + "))
	p.fact("session", "%s, %d %s", r.Session, r.Requests, plural(r.Requests, "request"))
	p.gap()
	p.matrix(r)
	for i := range r.Subservers {
		p.runs(&r.Subservers[i])
	}
	for i := range r.Plans {
		p.lengths(r, &r.Plans[i])
	}
	if r.DrawnShare > 0.0005 {
		p.wrap(t.Warn, "!", planIndent, fmt.Sprintf("%.1f %% of the answers are not in the recording, as the router draws anew: they were taken from its others", 100*r.DrawnShare))
	}
	return p.text()
}

// matrix prints P with K behind it.
func (p *planText) matrix(r *runlengths) {
	names, styles := []string{}, []frame.Style{}
	var cols []planColumn
	for j := range r.Subservers {
		cols = append(cols, planColumn{head: "to " + r.Subservers[j].Role, width: 11})
	}
	for range r.Subservers {
		cols = append(cols, planColumn{head: "tokens", width: 9})
	}
	for i := range r.Subservers {
		names, styles = append(names, r.Subservers[i].Role), append(styles, "")
		for j := range r.Subservers {
			cols[j].add(fmt.Sprintf("%.4f", r.Routing[i][j]), "")
			cols[len(r.Subservers)+j].add(fmt.Sprintf("%.2f", r.Committed[i][j]), "")
		}
	}
	p.grid("from", 9, names, styles, cols, nil)
}

// runs prints the histogram at one subserver beside the geometric law.
func (p *planText) runs(s *runsJSON) {
	p.gap()
	if s.Runs == 0 {
		p.fact(s.Role, "no request was sent on from here")
		return
	}
	p.fact(s.Role, "%d runs of %d steps in all, %.2f in the mean; CV^2 %.3f, geometric %.3f; a run and the next one of its request: correlation %+.2f", s.Runs, s.Steps, s.Mean, s.CV2, s.Geom, s.Next)
	switch {
	case !s.Tested:
		p.fact("", "too few sends, or runs of one length alone: not tested")
	case s.Far:
		p.wrap(p.t.Warn, "", planLabel, fmt.Sprintf("not geometric: refused at 1 %% (chi^2 %.1f of %d degrees, p %s)", s.Chi2, s.DF, pText(s.PValue)))
	default:
		p.fact("", "geometric, as far as %d runs tell (chi^2 %.1f of %d degrees, p %s)", s.Runs, s.Chi2, s.DF, pText(s.PValue))
	}
	p.fact("", "law by BIC: %s, mean %.2f, CV^2 %.3f%s", s.Law, s.LawMean, s.LawCV2, fitTest(s.LawP))
	if s.Small != s.Law {
		p.fact("", "of a few phases: %s, mean %.2f, CV^2 %.3f%s; BIC %.0f above", s.Small, s.SmallMean, s.SmallCV2, fitTest(s.SmallP), s.SmallBIC-s.LawBIC)
	}
	names, styles := []string{}, []frame.Style{}
	cols := []planColumn{{head: "runs, %", width: 9}, {head: "geometric", width: 11}, {head: "law", width: 8}}
	bins := joined(s.Bins, mostRunBars)
	top := 0.0
	for i, b := range bins {
		if i < mostRunBars-1 { // the last one may be all the rest
			top = max(top, b.Share, b.Geometric)
		}
		name := fmt.Sprintf("%d", b.From)
		if b.To > b.From {
			name = fmt.Sprintf("%d-%d", b.From, b.To)
		}
		names, styles = append(names, name), append(styles, "")
		for i, x := range []float64{b.Share, b.Geometric, b.Law} {
			cols[i].add(fmt.Sprintf("%.1f", 100*x), "")
		}
	}
	p.grid("steps", 10, names, styles, cols, func(i int) {
		p.line.Put("", "  ")
		if room := p.line.Room() - 1; room >= planBar && top > 0 {
			p.pairBar(min(bins[i].Share/top, 1), min(bins[i].Geometric/top, 1), room)
		}
	})
}

// pairBar draws a bar with a mark where the geometric law has its own.
func (p *planText) pairBar(share, law float64, room int) {
	mark := "│"
	if p.t.G.ASCII {
		mark = "|"
	}
	bar := barText(share, room, p.t.G.ASCII)
	at := min(int(math.Round(law*float64(room))), room)
	cells := []rune(bar)
	if at < len(cells) {
		p.line.Put(p.t.Good, string(cells[:at])).Put(p.t.Dim, mark).Put(p.t.Good, string(cells[at+1:]))
		return
	}
	p.line.Put(p.t.Good, bar).Put("", strings.Repeat(" ", at-len(cells))).Put(p.t.Dim, mark)
}

// fitTest is the chance of runs as far from a law, where that could be tested.
func fitTest(p float64) string {
	if p >= 1 {
		return ""
	}
	return ", p " + pText(p)
}

func pText(p float64) string {
	if p < 1e-4 {
		return "below 0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// joined makes bars few: what lies behind is one.
func joined(bins []runBin, most int) []runBin {
	if len(bins) <= most {
		return bins
	}
	out := slices.Clone(bins[:most])
	last := &out[most-1]
	for _, b := range bins[most:] {
		last.To = b.To
		last.Made, last.Sent = last.Made+b.Made, last.Sent+b.Sent
		last.Share, last.Geometric, last.Law = last.Share+b.Share, last.Geometric+b.Geometric, last.Law+b.Law
	}
	return out
}

// lengths prints what is predicted and measured for one number of requests.
func (p *planText) lengths(r *runlengths, l *lengthPlan) {
	p.gap()
	names, styles := []string{}, []frame.Style{}
	cols := []planColumn{
		{head: "B", width: 7},
		{head: "measured", width: 15},
		{head: "geometric", width: 11},
		{head: "off", width: 8},
		{head: "phases", width: 9},
		{head: "off", width: 8},
		{head: "corrected", width: 11},
		{head: "off", width: 8},
	}
	for _, line := range l.Lines {
		names, styles = append(names, line.Policy), append(styles, "")
		half := ""
		if line.Measured.Half != nil {
			half = fmt.Sprintf(" %s%.2f", p.t.G.PlusMinus, *line.Measured.Half)
		}
		cols[0].add(vector(line.B), "")
		cols[1].add(rate(line.Measured.Mean)+half, "")
		cols[2].add(rate(line.ByGeometric), "")
		cols[3].add(percent(line.ByGeometric/line.Measured.Mean-1), p.t.Dim)
		cols[4].add(rate(line.BySmall), "")
		cols[5].add(percent(line.BySmall/line.Measured.Mean-1), p.t.Dim)
		cols[6].add(rate(line.ByCorrected), "")
		cols[7].add(percent(line.ByCorrected/line.Measured.Mean-1), p.t.Dim)
	}
	p.grid(fmt.Sprintf("n = %d, tok/s", l.N), 15, names, styles, cols, nil)
	p.fact("", "measured: corrected over geometric %s, over eager %s", gainText(l.CorrectedOver), gainText(l.Gain))
}

func gainText(r pairJSON) string {
	if r.Lo == nil || r.Hi == nil {
		return percent(r.Ratio - 1)
	}
	return fmt.Sprintf("%s (%s to %s)", percent(r.Ratio-1), percent(*r.Lo-1), percent(*r.Hi-1))
}
