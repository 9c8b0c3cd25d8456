package ladder

import (
	"fmt"
	"math"
	"strings"
)

// Text writes the cross for a person, some 100 columns wide: what was run, by
// how much TokenRouter's rung is above official code and why, above the other
// baselines, and what becomes of latencies. Cells that were not run are counted
// at the end.
func (x *Cross) Text() string {
	var b strings.Builder
	x.processes(&b)
	x.causes(&b)
	x.baselines(&b)
	x.waits(&b)
	missing, all := 0, 0
	for i := range x.Cases {
		missing += x.Cases[i].Table.Missing
		all += len(x.Cases[i].Table.Grid.Order())
	}
	if missing > 0 {
		fmt.Fprintf(&b, "missing: %d of %d runs; ratios are of the seeds that all rungs on the way have\n\n", missing, all)
	}
	return trimLines(b.String())
}

// processes says how each algorithm routes and what its official code does.
func (x *Cross) processes(b *strings.Builder) {
	seen := map[string]bool{}
	for i := range x.Cases {
		a := &x.Cases[i].Algorithm
		if seen[a.Name] {
			continue
		}
		seen[a.Name] = true
		text := a.Commit() + "; " + a.From
		if a.P != nil {
			text = fmt.Sprintf("P = %s; %s", matrixText(a.P), text)
		}
		fmt.Fprintf(b, "%-9s%s", a.Name, Wrap(fmt.Sprintf("%s. Official code is as %s.", text, a.Official), 9))
	}
	b.WriteString("\n")
}

func matrixText(p [][]float64) string {
	rows := make([]string, len(p))
	for i, row := range p {
		cells := make([]string, len(row))
		for j, v := range row {
			cells[j] = fmt.Sprintf("%.3g", v)
		}
		rows[i] = strings.Join(cells, " ")
	}
	return "[" + strings.Join(rows, "; ") + "]"
}

// each calls f for every case at every concurrency, with a gap between cases.
func (x *Cross) each(b *strings.Builder, f func(c *CaseTable, n int)) {
	for i := range x.Cases {
		c := &x.Cases[i]
		for _, n := range c.Table.Grid.Concurrency {
			fmt.Fprintf(b, "%-9s%-11s%4d", c.Algorithm.Name, c.Table.Grid.Case.Workload, n)
			f(c, n)
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
}

// causeWidth are the columns of causes.
var causeWidth = []int{11, 10, 7, 9}

func (x *Cross) causes(b *strings.Builder) {
	b.WriteString("tokenrouter, tok/s, times official code, and the causes that multiply to it (± 95 % over seeds)\n")
	fmt.Fprintf(b, "%-9s%-11s%4s%12s  %-11s%14s", "", "", "n", "tok/s", "official", "times")
	for i, cause := range Causes() {
		fmt.Fprintf(b, "%*s", causeWidth[i], cause)
	}
	b.WriteString("\n")
	x.each(b, func(c *CaseTable, n int) {
		tokens := "-"
		if r := c.Table.Row(TokenRouter, n); r != nil {
			tokens = r.Values[Throughput].text()
		}
		fmt.Fprintf(b, "%12s  %-11s", tokens, c.Algorithm.Official)
		s, ok := c.Split(Throughput, c.Algorithm.Official, n)
		if !ok {
			fmt.Fprintf(b, "%14s", "-")
			return
		}
		fmt.Fprintf(b, "%14s", s.Total.brief())
		for i, cause := range Causes() {
			text := ""
			if r, on := s.Part(cause); on {
				text = times(r.Mean)
			}
			fmt.Fprintf(b, "%*s", causeWidth[i], text)
		}
	})
}

func (x *Cross) baselines(b *strings.Builder) {
	b.WriteString("tokenrouter times other baselines, tok/s, and lookahead times tokenrouter. Over resubmit it is\nre-prefill x delayed, over sequential batching x async x delayed\n")
	fmt.Fprintf(b, "%-9s%-11s%4s", "", "", "n")
	for _, name := range Baselines() {
		fmt.Fprintf(b, "%16s", name)
	}
	fmt.Fprintf(b, "%12s%16s\n", "re-prefill", "lookahead")
	x.each(b, func(c *CaseTable, n int) {
		for _, name := range Baselines() {
			text := "-"
			if s, ok := c.Split(Throughput, name, n); ok {
				text = s.Total.brief()
			}
			fmt.Fprintf(b, "%16s", text)
		}
		text := "-"
		if s, ok := c.Split(Throughput, Resubmit, n); ok {
			r, _ := s.Part(Reprefill)
			text = times(r.Mean)
		}
		fmt.Fprintf(b, "%12s", text)
		text = "-"
		if r := c.Table.Row(LookAhead, n); r != nil && r.Before != nil && r.Before[Throughput].To == TokenRouter {
			text = r.Before[Throughput].brief()
		}
		fmt.Fprintf(b, "%16s", text)
	})
}

// waits are latencies of TokenRouter's rung as shares of those of official code
// and of lock-step.
func (x *Cross) waits(b *strings.Builder) {
	heads := []struct{ head, key string }{
		{"user", UserMean}, {"e2e50", "latency_ms_p50"}, {"e2e99", "latency_ms_p99"}, {"1st50", "ttft_ms_p50"}, {"1st99", "ttft_ms_p99"},
	}
	b.WriteString("tokenrouter over official code, and over lock-step: mean speed of a user, p50 and p99 of a whole\nrequest, of its first token\n")
	fmt.Fprintf(b, "%-9s%-11s%4s", "", "", "n")
	for range 2 {
		for _, h := range heads {
			fmt.Fprintf(b, "%7s", h.head)
		}
	}
	b.WriteString("\n")
	x.each(b, func(c *CaseTable, n int) {
		for _, from := range []string{c.Algorithm.Official, Lockstep} {
			for _, h := range heads {
				text := "-"
				if s, ok := c.Split(h.key, from, n); ok {
					text = times(s.Total.Mean)
					if s.Total.Mean < 0.01 {
						text = fmt.Sprintf("%.0e", s.Total.Mean)
					}
				}
				fmt.Fprintf(b, "%7s", text)
			}
		}
	})
}

// brief is a ratio with half its interval, in at most 14 signs.
func (r Ratio) brief() string {
	half := (r.Hi - r.Lo) / 2
	switch {
	case r.Pairs == 0:
		return "-"
	case r.Pairs == 1 || math.IsInf(half, 0):
		return times(r.Mean)
	case half >= 99.95: // says nothing
		return times(r.Mean) + " ±100+"
	case r.Mean < 9.9995 && half < 9.9995:
		return fmt.Sprintf("%.3f ±%.3f", r.Mean, half)
	}
	return times(r.Mean) + fmt.Sprintf(" ±%.1f", half)
}
