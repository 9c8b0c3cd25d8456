package ladder

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"

	"tokenrouter/runtime/metrics"
)

// Report is a table in its stable JSON form: intervals that a single seed leaves
// open are null.
type Report struct {
	Rungs   []RungJSON    `json:"rungs"`
	Rows    []RowJSON     `json:"rows"`
	SLO     []SLOJSON     `json:"slo"`
	Missing []MissingJSON `json:"missing"`
}

// RungJSON says what a rung is made of.
type RungJSON struct {
	Rung      string `json:"rung"`
	Batch     string `json:"batch"`
	MaxActive int    `json:"max_active"`
	Resubmit  bool   `json:"resubmit"`
	What      string `json:"what"`
}

// RowJSON is one rung at one concurrency.
type RowJSON struct {
	N            int                  `json:"n"`
	Rung         string               `json:"rung"`
	Seeds        int                  `json:"seeds"`
	Values       map[string]ValueJSON `json:"values"`
	OverBefore   map[string]RatioJSON `json:"over_before"`
	OverLockstep map[string]RatioJSON `json:"over_lockstep"`
}

// ValueJSON is a mean over seeds with half its 95 % interval.
type ValueJSON struct {
	Mean float64  `json:"mean"`
	Half *float64 `json:"half"`
	N    int      `json:"n"`
}

// RatioJSON is a geometric mean over pairs with its 95 % interval.
type RatioJSON struct {
	Ratio float64  `json:"ratio"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	Pairs int      `json:"pairs"`
}

// SLOJSON is a service-level view.
type SLOJSON struct {
	Bound float64      `json:"bound_tokens_per_s"`
	Of    string       `json:"of"`
	Rows  []SLORowJSON `json:"rows"`
}

// SLORowJSON is what one rung carries; N is 0 and the figures are null where it
// keeps the bound nowhere.
type SLORowJSON struct {
	Rung       string     `json:"rung"`
	N          int        `json:"n"`
	Tokens     *ValueJSON `json:"tokens_per_s"`
	User       *ValueJSON `json:"user_tokens_per_s"`
	OverBefore *RatioJSON `json:"over_before"`
}

// MissingJSON is a run that was not made.
type MissingJSON struct {
	Rung string `json:"rung"`
	N    int    `json:"n"`
	Seed uint64 `json:"seed"`
}

// NewReport is the stable form of a table of cells.
func NewReport(t *Table, cells []Cell, slos ...*SLO) Report {
	out := Report{Rungs: []RungJSON{}, Rows: []RowJSON{}, SLO: []SLOJSON{}, Missing: []MissingJSON{}}
	for _, r := range t.Grid.Rungs {
		out.Rungs = append(out.Rungs, RungJSON{r.Name, r.Policy, r.MaxActive, r.Resubmit, r.What})
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		row := RowJSON{N: r.N, Rung: r.Rung.Name, Seeds: r.Done, Values: map[string]ValueJSON{}, OverBefore: ratiosJSON(r.Before), OverLockstep: ratiosJSON(r.Lock)}
		for key, v := range r.Values {
			if v.N > 0 {
				row.Values[key] = *v.json()
			}
		}
		out.Rows = append(out.Rows, row)
	}
	for _, s := range slos {
		view := SLOJSON{Bound: s.Bound, Of: s.Key, Rows: []SLORowJSON{}}
		for _, r := range s.Rows {
			row := SLORowJSON{Rung: r.Rung, N: r.N}
			if r.N > 0 {
				row.Tokens, row.User = r.Tokens.json(), r.User.json()
			}
			if r.Before != nil && r.Before.Pairs > 0 {
				row.OverBefore = r.Before.json()
			}
			view.Rows = append(view.Rows, row)
		}
		out.SLO = append(out.SLO, view)
	}
	for _, s := range t.Grid.Missing(cells) {
		out.Missing = append(out.Missing, MissingJSON{s.Rung.Name, s.N, s.Seed})
	}
	return out
}

func (v Value) json() *ValueJSON { return &ValueJSON{Mean: v.Mean, Half: finite(v.Half), N: v.N} }

func (r Ratio) json() *RatioJSON {
	out := &RatioJSON{Ratio: r.Mean, Pairs: r.Pairs}
	if r.Pairs > 1 {
		out.Lo, out.Hi = finite(r.Lo), finite(r.Hi)
	}
	return out
}

func ratiosJSON(rs map[string]Ratio) map[string]RatioJSON {
	if rs == nil {
		return nil
	}
	out := map[string]RatioJSON{}
	for key, r := range rs {
		if r.Pairs > 0 {
			out[key] = *r.json()
		}
	}
	return out
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// WriteCSV writes a line for each cell of the grid with all figures; a figure that
// a run has not is empty, and so are all of a cell that is missing.
func WriteCSV(w io.Writer, t *Table, cells []Cell) error {
	out := csv.NewWriter(w)
	head := []string{"rung", "n", "seed"}
	for _, f := range t.Figures {
		head = append(head, f.Key)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, rung := range t.Grid.Rungs {
		for _, n := range t.Grid.Concurrency {
			for _, seed := range t.Grid.Seeds {
				s := Setting{Case: t.Grid.Case, Rung: rung, N: n, Seed: seed}
				line := []string{rung.Name, strconv.Itoa(n), strconv.FormatUint(seed, 10)}
				if err := out.Write(append(line, t.figuresOf(cells, s)...)); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// figuresOf are all figures of a setting as text, empty where there is none.
func (t *Table) figuresOf(cells []Cell, s Setting) []string {
	var sum *metrics.Summary
	if k := slices.IndexFunc(cells, func(c Cell) bool { return c.is(s) }); k >= 0 {
		sum = &cells[k].Summary
	}
	out := make([]string, len(t.Figures))
	for i, f := range t.Figures {
		if sum == nil {
			continue
		}
		if x := finite(f.of(sum)); x != nil {
			out[i] = strconv.FormatFloat(*x, 'g', 10, 64)
		}
	}
	return out
}
