package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tokenrouter/scripting/lint"
)

// print writes what was found, as compilers do, and a table of costs.
func (c *checked) print(to io.Writer) error {
	var b strings.Builder
	name := onTerminal(c.File)
	if c.Shipped {
		name += " (shipped)"
	}
	count := map[lint.Severity]int{}
	for i := range c.Findings {
		f := &c.Findings[i]
		count[f.Severity]++
		fmt.Fprintln(&b, onTerminal(f.String()))
	}
	if len(c.Findings) == 0 {
		fmt.Fprintf(&b, "%s: nothing found\n", name)
	} else {
		var parts []string
		for s := lint.Error; ; s-- {
			if n := count[s]; n > 0 {
				parts = append(parts, counted(n, s.String()))
			}
			if s == lint.Hint {
				break
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(parts, ", "))
	}
	if c.Cost != nil {
		c.Cost.print(&b)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (c *routerCost) print(to io.Writer) {
	rows := "built-in rows"
	if c.Rows != "built-in" {
		rows = "rows of " + onTerminal(c.Rows)
	}
	fmt.Fprintf(to, "cost of a call with %d models, on %s: mean over the calls, fastest of %d rounds of %d ms\n",
		c.Models, rows, c.Rounds, lint.RoundTime.Milliseconds())
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, k := range c.Calls {
		fmt.Fprintf(w, "  %s\tat %s\t%s\t%.0f instructions\t%.1f allocations\t%.0f B\t%s\n",
			k.Hook, k.Model, micros(k.Ns), k.Instructions, k.Allocs, k.Bytes, counted(k.Calls, "call"))
	}
	for _, h := range c.Heads {
		fmt.Fprintf(w, "  head %s\t\t%s a score, alone\n", h.Name, micros(h.Ns))
	}
	w.Flush()
	if c.Share > 0 {
		what := "route"
		if len(c.Heads) > 0 {
			what = "route and its heads"
		}
		fmt.Fprintf(to, "%s at the small model: %s a row, %.2g %% of a step of one row (%.3g ms by %s)\n",
			what, micros(c.Share*c.StepMs*1e6), 100*c.Share, c.StepMs, c.Profile)
	}
}

func counted(n int, what string) string { return fmt.Sprintf("%d %s", n, plural(n, what)) }

func micros(ns float64) string { return fmt.Sprintf("%.2f us", ns/1e3) }
