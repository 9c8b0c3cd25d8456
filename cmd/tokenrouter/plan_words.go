package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tokenrouter/runtime/plan"
)

func (r *planReport) methodWords() string {
	switch {
	case r.Exact && r.Method == plan.ByChain:
		return fmt.Sprintf("chain: exact, %d %s at B*", r.States, plural(r.States, "state"))
	case r.Exact:
		return fmt.Sprintf("%s searches; the figures of B* are exact, from a chain of %d states", r.Method, r.States)
	case r.Method == plan.ByFluid:
		return "fluid searches: the limit of many requests; the count simulator measures what it finds"
	}
	return string(r.Method) + ": simulated counts"
}

func (r *planReport) commitWords() string {
	switch r.Commit {
	case "replace":
		return "replace: a token routed to a larger model is written anew there"
	case "append":
		return "append: every step commits a token"
	}
	rows := make([]string, len(r.Committed))
	for i, row := range r.Committed {
		cells := make([]string, len(row))
		for j, x := range row {
			cells[j] = short(x, 9)
		}
		rows[i] = strings.Join(cells, ",")
	}
	return "tokens by from and to " + strings.Join(rows, "; ")
}

func stepWords(l specLatency) string {
	if l.Slope == 0 {
		return short(l.Intercept, 9) + " ms"
	}
	return short(l.Intercept, 9) + " + " + short(l.Slope, 9) + " n ms"
}

// barText is a bar of a share of the width, to an eighth of a cell.
func barText(share float64, width int, ascii bool) string {
	if !(share > 0) {
		return ""
	}
	if ascii {
		return strings.Repeat("#", max(1, int(math.Round(share*float64(width)))))
	}
	const eighths = "▏▎▍▌▋▊▉"
	n := max(1, int(math.Round(share*float64(width)*8)))
	out := strings.Repeat("█", n/8)
	if n%8 > 0 {
		out += string([]rune(eighths)[n%8-1])
	}
	return out
}

// vector writes thresholds as the board does.
func vector(b []int) string { return "(" + numbers(b, ",") + ")" }

func numbers(xs []int, sep string) string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = strconv.Itoa(x)
	}
	return strings.Join(out, sep)
}

// rate writes tokens or rows per second with five digits or so.
func rate(x float64) string { return rateBeside(x, x) }

// rateBeside is rate with the decimals of top, the largest of its column.
func rateBeside(x, top float64) string {
	switch {
	case top < 1000:
		return fmt.Sprintf("%.2f", x)
	case top < 10_000:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// errorText is the standard error of a point; the fluid limit has one that is
// not known.
func errorText(p planPoint, m plan.Method) string {
	switch {
	case p.StdErr == 0 && m == plan.ByFluid:
		return ""
	case p.StdErr == 0:
		return "0"
	case p.StdErr < 9.95:
		return fmt.Sprintf("%.2f", p.StdErr)
	}
	return fmt.Sprintf("%.0f", p.StdErr)
}

func millis(x float64) string { return fmt.Sprintf("%.1f", x) }

// percent writes a relative difference; one too small to see has no sign.
func percent(x float64) string {
	if math.Abs(x) < 0.0005 {
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", 100*x)
}

// gain is how much more x is than base.
func gain(x, base float64) string {
	if !(base > 0) {
		return ""
	}
	return percent(x/base - 1)
}

// short writes a figure that was given, in at most width characters if it can.
func short(x float64, width int) string {
	for digits := 6; digits > 1; digits-- {
		if s := strconv.FormatFloat(x, 'g', digits, 64); len(s) <= width {
			return s
		}
	}
	return strconv.FormatFloat(x, 'g', 1, 64)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
