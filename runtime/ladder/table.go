package ladder

import (
	"math"
	"slices"

	"tokenrouter/runtime/metrics"
)

// Value is a figure over the seeds: its mean and the half-width of the 95 %
// interval, by Student's t. Of one seed the half-width is +Inf, of none N is 0.
type Value struct {
	N          int
	Mean, Half float64
}

// Ratio is by how much a figure exceeds that of another rung: the geometric mean
// over pairs of equal seed, with its 95 % interval. Of one pair the interval is 0
// to +Inf, of none Pairs is 0.
type Ratio struct {
	Of, To string // rungs
	N, ToN int    // their concurrencies
	Key    string // of the figure
	Pairs  int
	Mean   float64
	Lo, Hi float64
}

// compared are the figures that rungs are divided by one another in.
var compared = []string{Throughput, UserMean, UserP5, "itl_ms_p50", "itl_ms_p99", "ttft_ms_p50", "latency_ms_p50"}

// Row is one rung at one concurrency.
type Row struct {
	N      int
	Rung   Rung
	Done   int // seeds that were run
	Values map[string]Value
	Before map[string]Ratio // against the rung before, by figure; nil for the lowest
	Lock   map[string]Ratio // against lock-step; nil for those that are not above it
}

// Table is what a grid comes to.
type Table struct {
	Grid    Grid
	Roles   []string
	Figures []Figure
	Rows    []Row // by concurrency, then by rung
	Missing int   // cells that were not run
}

// NewTable makes a table of cells. Cells that are not of the grid are left out;
// roles are of the subservers, small first.
func NewTable(g Grid, roles []string, cells []Cell) *Table {
	t := &Table{Grid: g, Roles: roles, Figures: figures(roles), Missing: len(g.Missing(cells))}
	for _, n := range g.Concurrency {
		for i, rung := range g.Rungs {
			row := Row{N: n, Rung: rung, Values: map[string]Value{}}
			for _, s := range t.of(cells, rung, n) {
				if s != nil {
					row.Done++
				}
			}
			for _, f := range t.Figures {
				row.Values[f.Key] = t.value(cells, &f, rung, n)
			}
			if i > 0 {
				row.Before = t.ratios(cells, rung, g.Rungs[i-1], n)
			}
			if lock := slices.IndexFunc(g.Rungs, func(r Rung) bool { return r.Name == Lockstep }); lock >= 0 && i > lock {
				row.Lock = t.ratios(cells, rung, g.Rungs[lock], n)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// Row gives a rung at a concurrency, nil if the grid has none.
func (t *Table) Row(rung string, n int) *Row {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Rung.Name == rung && r.N == n })
	if i < 0 {
		return nil
	}
	return &t.Rows[i]
}

// of gives a summary for each seed, nil where the cell is missing.
func (t *Table) of(cells []Cell, rung Rung, n int) []*metrics.Summary {
	out := make([]*metrics.Summary, len(t.Grid.Seeds))
	for i, seed := range t.Grid.Seeds {
		s := Setting{Case: t.Grid.Case, Rung: rung, N: n, Seed: seed}
		if k := slices.IndexFunc(cells, func(c Cell) bool { return c.is(s) }); k >= 0 {
			out[i] = &cells[k].Summary
		}
	}
	return out
}

// numbers gives a figure for each seed, NaN where there is none.
func (t *Table) numbers(cells []Cell, f *Figure, rung Rung, n int) []float64 {
	sums := t.of(cells, rung, n)
	out := make([]float64, len(sums))
	for i, s := range sums {
		if out[i] = math.NaN(); s != nil {
			out[i] = f.of(s)
		}
	}
	return out
}

func (t *Table) value(cells []Cell, f *Figure, rung Rung, n int) Value {
	xs := slices.DeleteFunc(t.numbers(cells, f, rung, n), math.IsNaN)
	mean, half := metrics.MeanInterval(xs)
	return Value{N: len(xs), Mean: mean, Half: half}
}

func (t *Table) ratios(cells []Cell, rung, to Rung, n int) map[string]Ratio {
	out := map[string]Ratio{}
	for _, f := range t.Figures {
		if slices.Contains(compared, f.Key) {
			out[f.Key] = t.ratio(cells, &f, rung, n, to, n)
		}
	}
	return out
}

// ratio pairs by seed; a comparison with NaN is false, so metrics.PairedRatio
// leaves out what is missing on either side.
func (t *Table) ratio(cells []Cell, f *Figure, rung Rung, n int, to Rung, toN int) Ratio {
	r := Ratio{Of: rung.Name, To: to.Name, N: n, ToN: toN, Key: f.Key}
	r.Mean, r.Lo, r.Hi, r.Pairs = metrics.PairedRatio(t.numbers(cells, f, to, toN), t.numbers(cells, f, rung, n))
	return r
}
