package main

import (
	"cmp"
	"math"
	"slices"
)

const (
	planRows = 24 // most lines of a table; --json has them all
	planNear = 7  // lines around B* that stay
)

// shownPoint is a line of the table of thresholds.
type shownPoint struct {
	planPoint
	name string
	best bool
}

// shown picks the lines: along one threshold evenly, and all near B*; otherwise
// the best ones, the best first. Lock-step stands behind where the search does
// not come by. The others are hidden.
func (r *planReport) shown() (out []shownPoint, hidden int) {
	curve := slices.Clone(r.Curve)
	if !r.flat {
		slices.SortStableFunc(curve, func(x, y planPoint) int { return cmp.Compare(y.TokensPerS, x.TokensPerS) })
	}
	at := func(b []int) int {
		return slices.IndexFunc(curve, func(p planPoint) bool { return slices.Equal(p.B, b) })
	}
	best := max(0, at(r.Best))
	keep := map[int]bool{best: true, max(0, at(r.Eager.B)): true, at(r.Lockstep.B): true}
	near := min(len(curve), planRows)
	if r.flat && len(curve) > planRows {
		near = planNear
		for k := range planRows - planNear {
			keep[k*(len(curve)-1)/(planRows-planNear-1)] = true
		}
	}
	first := 0
	if r.flat {
		first = min(max(0, best-near/2), len(curve)-near)
	}
	for i := range near {
		keep[first+i] = true
	}
	for i, p := range curve {
		if !keep[i] {
			hidden++
			continue
		}
		name := ""
		switch {
		case slices.Equal(p.B, r.Best) && slices.Equal(p.B, r.Eager.B):
			name = "B*, eager"
		case slices.Equal(p.B, r.Best):
			name = "B*"
		case slices.Equal(p.B, r.Eager.B):
			name = "eager"
		case slices.Equal(p.B, r.Lockstep.B):
			name = "lock-step"
		}
		out = append(out, shownPoint{p, name, slices.Equal(p.B, r.Best)})
	}
	if at(r.Lockstep.B) < 0 {
		out = append(out, shownPoint{r.Lockstep, "lock-step", false})
	}
	return out, hidden
}

// tableShown are the rows of the table that are printed: all, or the first ones
// and some of those that were solved.
func (r *planReport) tableShown() []planRow {
	if len(r.Table) <= planRows {
		return r.Table
	}
	const dense = 8
	out := slices.Clone(r.Table[:dense])
	next := float64(out[dense-1].N)
	grow := math.Pow(float64(r.N)/next, 1/float64(planRows-dense))
	next *= grow
	for _, row := range r.Table[dense:] {
		if !row.Interpolated && (float64(row.N) >= next || row.N == r.N) {
			out = append(out, row)
			next = max(next*grow, float64(row.N)+0.5)
		}
	}
	return out
}
