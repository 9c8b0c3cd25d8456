package frontier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Text is the table for people: the points that were run, what the curves come to,
// and how they stand against each other. Composed points are in the curves only.
func (t *Table) Text() string {
	var b strings.Builder
	t.points(&b)
	t.families(&b)
	t.curves(&b)
	t.versus(&b)
	t.leads(&b)
	return b.String()
}

// grid is text in columns: the first is flush left, the others are flush right, and a
// column is as wide as its widest cell.
type grid [][]string

func (g grid) write(b *strings.Builder) {
	var widths []int
	for _, row := range g {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range g {
		line := ""
		for i, cell := range row {
			if i == 0 {
				line = fmt.Sprintf("%-*s", widths[0], cell)
			} else {
				gap := "  "
				if g[0][i] == "" { // goes with the column before
					gap = " "
				}
				line += fmt.Sprintf("%s%*s", gap, widths[i], cell)
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func (g grid) text() string {
	var b strings.Builder
	g.write(&b)
	return b.String()
}

func (t *Table) points(b *strings.Builder) {
	g := grid{{"point", "large %", "", "right %", "", "of large %", "", "tok/s", "cost %", "sw/tok", "best"}}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Point.Composed() {
			continue
		}
		g = append(g, append(append(append(append([]string{r.Point.Name()},
			hundreds(r.Share)...), hundreds(r.Accuracy)...), hundreds(r.OfLarge)...),
			number(r.Point.Rate, 0), number(100*r.OfCost.Value, 1), number(r.Switches.Value, 3), r.marks()))
	}
	g.write(b)
	b.WriteString("\nbest: no other one is as right with less s(hare of large tokens), more r(ate of tokens), less c(ost).\n")
	b.WriteString(map[CostOf]string{
		CostSteps:     "cost: parameters times rows that gave a candidate, dropped ones too, of large_only.\n",
		CostTokens:    "cost: parameters of who wrote each token, of large_only.\n",
		CostPositions: "cost: parameters times positions that were computed, prompts too, of large_only.\n",
	}[t.Set.Cost])
	for i := range t.Rows {
		if p := t.Rows[i].Point; p.Faults > 0 {
			fmt.Fprintf(b, "%s had %d router faults: these rows went the default way, not the router's.\n", p.Name(), p.Faults)
		}
	}
}

func (r *Row) marks() string {
	out := ""
	for _, m := range []struct {
		is   bool
		mark string
	}{{r.BestShare, "s"}, {r.BestRate, "r"}, {r.BestCost, "c"}} {
		if m.is {
			out += m.mark
		} else {
			out += "-"
		}
	}
	return out
}

func (t *Table) families(b *strings.Builder) {
	if len(t.Families) == 0 {
		return
	}
	b.WriteString("\nright %, by family of problems\n")
	head := []string{"point"}
	for _, f := range t.Families {
		head = append(head, cmp.Or(f, "(none)"), "")
	}
	g := grid{head}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Point.Composed() {
			continue
		}
		row := []string{r.Point.Name()}
		for _, f := range r.ByFamily {
			row = append(row, hundreds(f)...)
		}
		g = append(g, row)
	}
	g.write(b)
}

func (t *Table) curves(b *strings.Builder) {
	if len(t.Curves) == 0 {
		return
	}
	fmt.Fprintf(b, "\ncurves of right answers against large share, %.3g to %.3g %% of tokens\n", 100*t.From, 100*t.To)
	g := grid{{"curve", "points", "at shares %", "area %", "", "APGR", "", "CPT 50 %", "80 %", "95 %", ""}}
	for i := range t.Curves {
		c := &t.Curves[i]
		row := []string{c.name(), fmt.Sprint(len(c.Points)), fmt.Sprintf("%.1f-%.1f", 100*c.Low, 100*c.High)}
		row = append(append(row, hundreds(c.Area)...), apgr(c.APGR)...)
		row = append(append(row, number(100*c.CPT[0].Value, 1), number(100*c.CPT[1].Value, 1)), hundreds(c.CPT[2])...)
		g = append(g, row)
	}
	g.write(b)
	b.WriteString("area: mean of right answers along the curve, which is straight between points and to both ends.\n" +
		"APGR: the same as a part of the way from small_only to large_only. CPT: large share at which so much of it is made.\n")
	if gap := t.Curves[0].APGR; gap.Undefined > 0 && !math.IsNaN(gap.Value) { // as many for every curve
		fmt.Fprintf(b, "In %d of %d resamples large_only is not the better one: intervals of APGR and CPT are of the others.\n", gap.Undefined, t.Options.Resamples)
	}
	if slices.ContainsFunc(t.Curves, func(c CurveRow) bool { return c.Composed }) {
		b.WriteString("~ a router of whole requests, composed of the answers of small_only and large_only: exact, but for tok/s.\n")
	}
}

func apgr(f Figure) []string {
	if math.IsNaN(f.Lo) {
		return []string{number(f.Value, 3), ""}
	}
	return []string{number(f.Value, 3), number(f.Lo, 3) + "-" + number(f.Hi, 3)}
}

func (c *CurveRow) name() string {
	if c.Composed {
		return "~ " + c.Series
	}
	return c.Series
}

func (t *Table) versus(b *strings.Builder) {
	var refs []string
	for _, v := range t.Versus {
		if !slices.Contains(refs, v.Reference) {
			refs = append(refs, v.Reference)
		}
	}
	if len(refs) == 0 {
		return
	}
	b.WriteString("\narea over that of another curve on the same problems, percentage points (* 0 is outside)\n")
	head := []string{"curve"}
	for _, r := range refs {
		head = append(head, r, "")
	}
	g := grid{head}
	for i := range t.Curves {
		row := []string{t.Curves[i].name()}
		for _, ref := range refs {
			cells := []string{"", ""}
			for k := range t.Versus {
				if v := &t.Versus[k]; v.Series == t.Curves[i].Series && v.Reference == ref {
					cells = signed(v.Difference)
				}
			}
			row = append(row, cells...)
		}
		g = append(g, row)
	}
	g.write(b)
}

// leads shows points over the first reference at the same share.
func (t *Table) leads(b *strings.Builder) {
	if len(t.Versus) == 0 {
		return
	}
	ref := t.Versus[0].Reference
	g := grid{{"point", "lead", "", "", "at large %"}}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Point.Composed() || r.Point == t.Set.Small || r.Point == t.Set.Large || r.Point.Series == ref || math.IsNaN(r.Lead.Value) {
			continue
		}
		g = append(g, append(append([]string{r.Point.Name()}, signed(r.Lead)...), "", number(100*r.Share.Value, 2)))
	}
	if len(g) == 1 {
		return
	}
	fmt.Fprintf(b, "\nright answers over %s at the same large share, percentage points (* 0 is outside)\n", ref)
	g.write(b)
}

// hundreds is a figure in percent, and its interval.
func hundreds(f Figure) []string { return plain(f.times(100)) }

// plain is a figure and its interval, with three digits.
func plain(f Figure) []string {
	if math.IsNaN(f.Lo) || math.IsNaN(f.Hi) {
		return []string{three(f.Value), ""}
	}
	to := "-"
	if f.Lo < 0 || f.Hi < 0 {
		to = " to "
	}
	return []string{three(f.Value), three(f.Lo) + to + three(f.Hi)}
}

// signed is a difference in percentage points, with a star where its interval leaves
// out 0.
func signed(f Figure) []string {
	f = f.times(100)
	out := plain(f)
	if f.Value > 0 {
		out[0] = "+" + out[0]
	}
	if f.Lo > 0 || f.Hi < 0 {
		out[1] += "*"
	} else if out[1] != "" {
		out[1] += " "
	}
	return out
}

// three has three digits, and more before the point.
func three(x float64) string {
	digits := 2
	for y := math.Abs(x); y >= 9.995 && digits > 0; y /= 10 {
		digits--
	}
	return number(x, digits)
}

func (f Figure) times(x float64) Figure {
	return Figure{f.Value * x, f.Lo * x, f.Hi * x, f.Undefined}
}

func number(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	if s := fmt.Sprintf("%.*f", digits, x); strings.Trim(s, "-0.") != "" {
		return s
	}
	return fmt.Sprintf("%.*f", digits, 0.0) // no -0.00
}
