package plan

import (
	"cmp"
	"fmt"
	"math"
)

// Row is B* for one number of active requests.
type Row struct {
	N          int
	B          []int
	Solved     bool    // else B is interpolated and what follows is 0
	Throughput float64 // tokens/s of B
	Eager      float64 // tokens/s of B = (1, ..., 1)
	P99        float64 // ms, where it is bounded
	Over       bool    // no vector found keeps the bound; B has the least P99
}

// Table is B*(n) for n = 1, 2, ...: Rows[n-1].
type Table struct{ Rows []Row }

// Vectors is the table as the core takes it: entry n-1 for n active requests.
func (t *Table) Vectors() [][]int {
	var out [][]int
	for i := range t.Rows {
		out = append(out, t.Rows[i].B)
	}
	return out
}

// What a row of a table costs.
const (
	tableEvents = 1500
	tableTokens = 20_000
)

// Tabulate searches B*(n) for n = 1 to maxN; s.N and s.B do not matter. Each row
// starts from the one before, as B* grows by little from row to row, or from the
// threshold of [Explain], and goes to better neighbours (see start); eager is always among what
// it looks at. All rows share their random numbers, so the noise of a row and of
// its neighbours is much the same.
//
// Rows 1 to 32 are solved, beyond them one about every 6 % of n; the rows between
// are interpolated. Auto searches by the count simulator up to n = 256, then by
// the fluid limit. For two models a row takes some 0.3 ms, so that the 16 rows to
// N = 16 are there in 5 ms (BenchmarkReplan, which also states what the rows lose
// by the noise of short runs); with a bound on P99 every vector is looked at and
// requests are followed, which takes longer.
func Tabulate(s *Spec, maxN int, o Options) (Table, error) {
	if maxN < 1 {
		return Table{}, fmt.Errorf("a table up to N = %d has no row; give at least 1", maxN)
	}
	whole := *s
	whole.N = maxN
	o.Events = cmp.Or(o.Events, tableEvents)
	q, err := newSearch(&whole, o)
	if err != nil {
		return Table{}, err
	}
	q.tokens = tableTokens
	t := Table{Rows: make([]Row, maxN)}
	last := Row{B: ones(len(s.P))}
	for n := 1; ; n = min(maxN, n+max(1, n/16)) {
		row, err := q.row(n, &last)
		if err != nil {
			return Table{}, fmt.Errorf("row N = %d: %w", n, err)
		}
		t.Rows[n-1] = row
		for k := last.N + 1; k < n; k++ {
			t.Rows[k-1] = Row{N: k, B: q.between(&last, &row, k)}
		}
		if last = row; n == maxN {
			return t, nil
		}
	}
}

// row solves the row of n requests, from the last one solved.
func (q *search) row(n int, last *Row) (Row, error) {
	q.forget()
	q.n = n
	if q.Method == Auto || q.Method == "" {
		q.method = ByCountSim
		if n > manyRequests {
			q.method = ByFluid
		}
	}
	eager, err := q.value(ones(len(last.B)))
	if err != nil {
		return Row{}, err
	}
	row := Row{N: n, Solved: true, Eager: eager.Throughput}
	if q.MaxP99 > 0 {
		err := q.bounded(&row)
		return row, err
	}
	if err := q.start(last); err != nil {
		return Row{}, err
	}
	if _, err := q.ascend(q.best(), n-last.N); err != nil {
		return Row{}, err
	}
	best := q.best()
	row.B, row.Throughput = best.B, best.Throughput
	return row, nil
}

// start looks at the vectors that a row sets out from. They are all if those are
// few. Else it is one in proportion to that of the row before and, as small
// thresholds all do much the same and rows could linger there, one that owes it
// nothing.
func (q *search) start(last *Row) error {
	const few = 6
	if all := q.vectors(few); all != nil {
		return q.each(all)
	}
	if _, err := q.value(q.between(last, last, q.n)); err != nil {
		return err
	}
	if q.n&(q.n-1) == 0 && (q.FreeB0 || Explain(q.with(nil)) == 0) {
		return q.climb()
	}
	if k := Explain(q.with(nil)); k > 0 {
		b := []int{1, k}
		q.fit(b)
		_, err := q.value(b)
		return err
	}
	return nil
}

// bounded fills a row with the best vector that keeps the bound on P99.
func (q *search) bounded(row *Row) error {
	if err := q.screen(); err != nil {
		return err
	}
	var chosen Point
	for _, p := range q.ranked() {
		ok, err := q.keeps(p)
		if err != nil {
			return err
		}
		if ok {
			chosen = p
			break
		}
	}
	if chosen.B == nil {
		row.Over = true
		chosen = q.points[q.seen[pack(q.least)]]
	}
	row.B, row.Throughput, row.P99 = chosen.B, chosen.Throughput, q.p99s[pack(chosen.B)]
	return nil
}

// between is the vector on the straight line from row x to row y, or beyond x in
// proportion where both are the same.
func (q *search) between(x, y *Row, n int) []int {
	b := make([]int, len(x.B))
	for m := range b {
		at := float64(x.B[m]-1) * float64(n) / float64(max(1, x.N))
		if x.N != y.N {
			at = float64(x.B[m]-1) + float64(y.B[m]-x.B[m])*float64(n-x.N)/float64(y.N-x.N)
		}
		b[m] = 1 + int(math.Round(at))
	}
	q.n = n
	q.fit(b)
	return b
}
