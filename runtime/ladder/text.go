package ladder

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Text writes a table for a person, at most 100 columns wide: speeds, latencies,
// devices, and what each rung carries under each of slos. Cells that were not run
// are named at the end.
func Text(t *Table, slos ...*SLO) string {
	var b strings.Builder
	t.speeds(&b)
	t.latencies(&b)
	t.devices(&b)
	if len(slos) > 0 {
		carried(&b, slos)
	}
	t.missing(&b)
	return trimLines(b.String())
}

// trimLines takes the spaces at the ends of lines away.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// block writes one line for each row, with a gap between concurrencies.
func (t *Table) block(b *strings.Builder, line func(*Row)) {
	for i := range t.Rows {
		r := &t.Rows[i]
		if i > 0 && t.Rows[i-1].N != r.N && len(t.Grid.Rungs) > 1 {
			b.WriteString("\n")
		}
		name := r.Rung.Name
		if r.Done < len(t.Grid.Seeds) {
			name += "*"
		}
		fmt.Fprintf(b, "%3d  %-12s", r.N, name)
		if r.Done == 0 {
			b.WriteString("   missing\n")
			continue
		}
		line(r)
	}
	b.WriteString("\n")
}

func (t *Table) speeds(b *strings.Builder) {
	fmt.Fprintf(b, "%3s  %-12s%14s  %-22s  %-22s  %s\n", "", "", "", "x the rung before", "x lock-step", "per user, tok/s")
	fmt.Fprintf(b, "%3s  %-12s%14s  %-22s  %-22s  %7s %8s\n", "n", "rung", "tok/s", "", "", "mean", "19 of 20")
	t.block(b, func(r *Row) {
		fmt.Fprintf(b, "%14s  %-22s  %-22s  %7s %8s\n", r.Values[Throughput].text(),
			ratioText(r.Before, Throughput), ratioText(r.Lock, Throughput), short(r.Values[UserMean].mean()), short(r.Values[UserP5].mean()))
	})
}

func (t *Table) latencies(b *strings.Builder) {
	heads := []string{"first token", "between tokens", "whole request", "until admitted"}
	keys := []string{"ttft_ms", "itl_ms", "latency_ms", "queue_ms"}
	fmt.Fprintf(b, "%-17s", "latency, ms")
	for i, h := range heads {
		width := 21
		if i > 1 {
			width = 15
		}
		fmt.Fprintf(b, "  %*s", width-1, h)
	}
	fmt.Fprintf(b, "\n%3s  %-12s", "n", "rung")
	for i := range keys {
		for _, q := range quantilesOf(i) {
			fmt.Fprintf(b, "%7s", q)
		}
		b.WriteString(" ")
	}
	b.WriteString("\n")
	t.block(b, func(r *Row) {
		for i, k := range keys {
			for _, q := range quantilesOf(i) {
				fmt.Fprintf(b, "%7s", short(r.Values[k+"_"+q].mean()))
			}
			b.WriteString(" ")
		}
		b.WriteString("\n")
	})
}

// quantilesOf are those that have a column: three of the first two latencies, two
// of the others.
func quantilesOf(i int) []string {
	if i < 2 {
		return []string{"p50", "p95", "p99"}
	}
	return []string{"p50", "p99"}
}

func (t *Table) devices(b *strings.Builder) {
	width := 7 * len(t.Roles)
	fmt.Fprintf(b, "%-17s  %*s  %*s  %5s  %20s %5s\n", "devices", width, "idle, %", width, "mean batch", "large", "per 100 tokens", "hits")
	fmt.Fprintf(b, "%3s  %-12s  ", "n", "rung")
	for range 2 {
		for _, role := range t.Roles {
			fmt.Fprintf(b, "%7s", role)
		}
		b.WriteString("  ")
	}
	fmt.Fprintf(b, "%5s  %6s %6s %6s %5s\n", "%", "switch", "extend", "recomp", "%")
	t.block(b, func(r *Row) {
		b.WriteString("  ")
		for _, role := range t.Roles {
			fmt.Fprintf(b, "%7s", short(100*r.Values["idle_"+role].mean()))
		}
		b.WriteString("  ")
		for _, role := range t.Roles {
			fmt.Fprintf(b, "%7s", short(r.Values["mean_batch_"+role].mean()))
		}
		fmt.Fprintf(b, "  %5s  %6s %6s %6s %5s\n", short(100*r.Values["large_share"].mean()), short(100*r.Values["switches_per_token"].mean()),
			short(100*r.Values["extended_per_token"].mean()), short(100*r.Values["recomputed_per_token"].mean()), short(100*r.Values["prefix_hits"].mean()))
	})
}

// carried writes the service-level views side by side.
func carried(b *strings.Builder, slos []*SLO) {
	fmt.Fprintf(b, "%-13s", "carries")
	for _, s := range slos {
		fmt.Fprintf(b, "  %-40s", fmt.Sprintf("while %s", s.says()))
	}
	fmt.Fprintf(b, "\n%-13s", "rung")
	for range slos {
		fmt.Fprintf(b, "  %3s %13s  %-22s", "n", "tok/s", "x the rung before")
	}
	b.WriteString("\n")
	for i := range slos[0].Rows {
		fmt.Fprintf(b, "%-13s", slos[0].Rows[i].Rung)
		for _, s := range slos {
			r := &s.Rows[i]
			if r.N == 0 {
				fmt.Fprintf(b, "  %3s %-37s", "-", "no n that was run keeps it")
				continue
			}
			before := "-"
			if r.Before != nil {
				before = r.Before.text()
			}
			fmt.Fprintf(b, "  %3d %13s  %-22s", r.N, r.Tokens.text(), before)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// says names the bound.
func (s *SLO) says() string {
	if s.Key == UserP5 {
		return fmt.Sprintf("19 of 20 users get %g tok/s", s.Bound)
	}
	return fmt.Sprintf("users get %g tok/s on average", s.Bound)
}

// missing names the cells that were not run.
func (t *Table) missing(b *strings.Builder) {
	if t.Missing == 0 {
		return
	}
	var short []string
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Done < len(t.Grid.Seeds) {
			short = append(short, fmt.Sprintf("n=%d %s %d", r.N, r.Rung.Name, r.Done))
		}
	}
	b.WriteString(Wrap(fmt.Sprintf("* missing: %d of %d runs. Seeds that were run, of %d: %s", t.Missing, len(t.Grid.Order()), len(t.Grid.Seeds), strings.Join(short, ", ")), 0))
	b.WriteString("\n")
}

// columns is the width of a text.
const columns = 100

// Wrap breaks a paragraph into lines of the width of a [Text]. All but the first
// are indented by as many columns as stand before that one.
func Wrap(text string, indent int) string {
	var b strings.Builder
	room := columns - indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case n+1 > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			room = columns - indent
		default:
			b.WriteString(" ")
			room--
		}
		b.WriteString(word)
		room -= n
	}
	b.WriteString("\n")
	return b.String()
}

// mean is NaN where there is none.
func (v Value) mean() float64 {
	if v.N == 0 {
		return math.NaN()
	}
	return v.Mean
}

// text is the mean with half the 95 % interval, where there is one.
func (v Value) text() string {
	switch {
	case v.N == 0:
		return "-"
	case math.IsInf(v.Half, 1):
		return fmt.Sprintf("%.1f", v.Mean)
	case v.Mean < 999.95 && v.Half < 999.95:
		return fmt.Sprintf("%.1f ±%.1f", v.Mean, v.Half)
	}
	return fmt.Sprintf("%.0f ±%.0f", v.Mean, v.Half)
}

func (r Ratio) text() string {
	switch {
	case r.Pairs == 0:
		return "-"
	case r.Pairs == 1:
		return times(r.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", times(r.Mean), times(r.Lo), times(r.Hi))
}

// times writes a ratio in at most five signs.
func times(x float64) string {
	switch {
	case x < 9.9995:
		return fmt.Sprintf("%.3f", x)
	case x < 999.95:
		return fmt.Sprintf("%.1f", x)
	case x < 99_999.5:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.0e", x)
}

func ratioText(rs map[string]Ratio, key string) string {
	if rs == nil {
		return "-"
	}
	return rs[key].text()
}

// short writes a number in at most six signs.
func short(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "-"
	case a >= 999_999.5:
		return fmt.Sprintf("%.0fk", x/1000)
	case a >= 999.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 9.995 || x == 0:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
