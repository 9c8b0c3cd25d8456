package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/runtime/plan"
)

// coarse refuses step times that the quantum leaves nothing of, or that it cuts
// too fine. The names are those of what to change.
func coarse(name string, steps []plan.Latency, n int, quantum float64, quantumName string) error {
	if !(quantum >= minQuantum && quantum <= maxStepMS) {
		return fmt.Errorf("%s %v is outside %g to %g; give ms such as 0.1", quantumName, quantum, minQuantum, maxStepMS)
	}
	for _, l := range steps {
		switch {
		case l.Of(n) > maxStepMS:
			return fmt.Errorf("%s: a step with %d rows takes %.6g ms; the longest that can be planned for is %g", name, n, l.Of(n), maxStepMS)
		case l.Of(n)/quantum > maxQuanta:
			return fmt.Errorf("%s: a step of %v ms has more than %g quanta of %v ms; give a larger %s", name, l.Of(n), float64(maxQuanta), quantum, quantumName)
		case l.Of(1) < quantum/2:
			return fmt.Errorf("%s: a step of %v ms rounds to 0 quanta of %v ms; give a smaller %s", name, l.Of(1), quantum, quantumName)
		}
	}
	return nil
}

// parseLatency reads a step time such as 6.0 or 6.0+0.1n, n being the rows of
// the batch.
func parseLatency(text string) (plan.Latency, error) {
	text = strings.TrimSpace(text)
	base, slope, l := text, "0", plan.Latency{}
	if rest, affine := strings.CutSuffix(text, "n"); affine {
		base, slope = "0", rest
		// A plus behind an e belongs to an exponent.
		for i := len(rest) - 1; i > 0; i-- {
			if rest[i] == '+' && rest[i-1] != 'e' && rest[i-1] != 'E' {
				base, slope = rest[:i], rest[i+1:]
				break
			}
		}
	}
	for _, f := range []struct {
		text string
		to   *float64
	}{{base, &l.Base}, {slope, &l.PerRow}} {
		x, err := strconv.ParseFloat(strings.TrimSpace(f.text), 64)
		if err != nil {
			return l, fmt.Errorf("--latency %q is not a step time such as 6.0 or 6.0+0.1n (ms, n rows in the batch)", text)
		}
		if !(x >= 0 && x <= maxStepMS) {
			return l, fmt.Errorf("--latency %q: %v ms is outside 0 to %g", text, x, maxStepMS)
		}
		*f.to = x
	}
	if l.Of(1) == 0 {
		return l, fmt.Errorf("--latency %q: a step takes time; give ms above 0", text)
	}
	return l, nil
}

// parseN reads a number of requests, or a range of them.
func parseN(text string) (low, high int, err error) {
	a, b, ranged := strings.Cut(text, "-")
	low, high = 1, 0
	if ranged && a != "" {
		if low, err = strconv.Atoi(a); err == nil {
			high, err = strconv.Atoi(b)
		}
	} else {
		high, err = strconv.Atoi(text)
	}
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && high > maxPlanN:
		return 0, 0, fmt.Errorf("--n %s is above %d active requests", text, maxPlanN)
	case err != nil:
		return 0, 0, fmt.Errorf("--n %q is not a number of active requests such as 8, or a range such as 2-8", text)
	case low < 1 || high < 1:
		return 0, 0, fmt.Errorf("--n %s is less than 1 active request", text)
	case low > high:
		return 0, 0, fmt.Errorf("--n %s runs backwards; give the smaller number first", text)
	}
	return low, high, nil
}

// seats reads --seats: one number for every model, or one each.
func (c *planCmd) seats(models int) ([]int, error) {
	if c.Seats == "" {
		return nil, nil
	}
	parts := strings.Split(c.Seats, ",")
	if len(parts) == 1 {
		parts = slices.Repeat(parts, models)
	}
	if len(parts) != models {
		return nil, fmt.Errorf("--seats %q has %d numbers for %d models; give one, or one per model", c.Seats, len(parts), models)
	}
	var out []int
	for _, text := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--seats %q: %q is not a number of rows, 1 or more", c.Seats, text)
		}
		out = append(out, n)
	}
	return out, nil
}

// parseMatrix reads rows separated by ; of numbers separated by commas.
func parseMatrix(flag, text string) ([][]float64, error) {
	var m [][]float64
	for i, line := range strings.Split(text, ";") {
		var row []float64
		for _, cell := range strings.Split(line, ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%s: %q in row %d is not a number; rows are separated by ; and entries by commas", flag, cell, i+1)
			}
			row = append(row, x)
		}
		m = append(m, row)
	}
	if n := max(len(m), len(m[0])); n > maxPlanModels {
		return nil, fmt.Errorf("%s describes %d models; at most %d can be planned for", flag, n, maxPlanModels)
	}
	return m, nil
}
