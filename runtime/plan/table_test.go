package plan

import (
	"slices"
	"testing"
)

// TestTable: rows of a table lose little against the best of all vectors, by the
// chain, over p and the ratio of step times. The bounds are those of the whole
// grid of the benchmark with some room.
func TestTable(t *testing.T) {
	sum, most, rows := 0.0, 0.0, 0
	for _, p := range []float64{.05, .2, .5} {
		for _, ratio := range []float64{2, 4.65, 12} {
			tab, err := Tabulate(pair(1, p, 6, 6*ratio), 6, Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			for n := 2; n <= 6; n++ {
				regret := regretOf(t, pair(n, p, 6, 6*ratio), tab.Rows[n-1].B)
				sum, most, rows = sum+regret, max(most, regret), rows+1
			}
		}
	}
	t.Logf("regret over %d rows: mean %.3f %%, largest %.3f %%", rows, 100*sum/float64(rows), 100*most)
	if sum/float64(rows) > .001 || most > .013 {
		t.Errorf("regret over %d rows: mean %.4f, largest %.4f", rows, sum/float64(rows), most)
	}
}

// regretOf is what b loses against the best vector with B[0] = 1, by the chain.
func regretOf(t testing.TB, s *Spec, b []int) float64 {
	best, own := 0.0, 0.0
	for b1 := 1; b1 <= s.N; b1++ {
		c := *s
		c.B = []int{1, b1}
		r, err := Chain(&c)
		if err != nil {
			t.Fatal(err)
		}
		best = max(best, r.Throughput)
		if b1 == b[1] {
			own = r.Throughput
		}
	}
	return 1 - own/best
}

// TestTableShape: every row is there, feasible, and marked as solved or not;
// vectors are the rows.
func TestTableShape(t *testing.T) {
	for _, c := range shapes() {
		tab, err := Tabulate(c.with(1), 40, Options{})
		if err != nil {
			t.Fatal(c.name, err)
		}
		vectors := tab.Vectors()
		if len(tab.Rows) != 40 || len(vectors) != 40 {
			t.Fatalf("%s: %d rows, %d vectors", c.name, len(tab.Rows), len(vectors))
		}
		for i, r := range tab.Rows {
			if r.N != i+1 || !Feasible(r.B, r.N) || !slices.Equal(r.B, vectors[i]) {
				t.Errorf("%s: row %d is %+v, its vector %v", c.name, i+1, r, vectors[i])
			}
			if r.B[0] != 1 {
				t.Errorf("%s: row %d moves B[0]: %v", c.name, i+1, r.B)
			}
			if r.Solved != (r.Throughput > 0) || r.Throughput < r.Eager || (!r.Solved && r.N <= 32) {
				t.Errorf("%s: row %+v", c.name, r)
			}
			for m, b := range r.B {
				if c.spec.Cap != nil && b > c.spec.Cap[m] {
					t.Errorf("%s: row %d has B = %v above the caps %v", c.name, i+1, r.B, c.spec.Cap)
				}
			}
		}
	}
}

// TestTableBetween: a row that is interpolated loses less than 0.5 % against the
// best threshold for its N.
func TestTableBetween(t *testing.T) {
	const large = 400
	s := pair(large, .35, 6, 27.9)
	tab, err := Tabulate(s, large, Options{})
	if err != nil {
		t.Fatal(err)
	}
	between := 0
	for _, n := range []int{33, 47, 101, 301, 377} {
		row := tab.Rows[n-1]
		if !row.Solved {
			between++
		}
		q, err := newSearch(pair(n, .35, 6, 27.9), Options{Method: ByCountSim, Events: 5000})
		if err != nil {
			t.Fatal(err)
		}
		for b := 1; b <= n; b += 1 + n/40 {
			if _, err := q.value([]int{1, b}); err != nil {
				t.Fatal(err)
			}
		}
		best := q.best()
		own, err := q.value(row.B)
		if err != nil {
			t.Fatal(err)
		}
		if own.Throughput < .995*best.Throughput {
			t.Errorf("N = %d: %v has %.0f tokens/s, %v has %.0f", n, row.B, own.Throughput, best.B, best.Throughput)
		}
	}
	if between < 3 {
		t.Errorf("only %d of the rows looked at are interpolated", between)
	}
}

// TestTableWithBound: rows keep the bound on P99 or say that none does.
func TestTableWithBound(t *testing.T) {
	tab, err := Tabulate(pair(1, .35, 6, 27.9), 6, Options{MaxP99: 60})
	if err != nil {
		t.Fatal(err)
	}
	free, err := Tabulate(pair(1, .35, 6, 27.9), 6, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range tab.Rows {
		if r.Over || r.P99 == 0 || r.P99 > 60 || r.Throughput > free.Rows[i].Throughput*1.01 {
			t.Errorf("%+v; without a bound %+v", r, free.Rows[i])
		}
	}
	tab, err = Tabulate(pair(1, .35, 6, 27.9), 4, Options{MaxP99: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tab.Rows {
		if r.Over != (r.N > 1) {
			t.Errorf("P99 <= 50 ms: %+v", r)
		}
	}
}

func TestTableRefuses(t *testing.T) {
	if _, err := Tabulate(pair(1, .35, 6, 27.9), 0, Options{}); err == nil {
		t.Error("a table without rows was accepted")
	}
	if _, err := Tabulate(&Spec{}, 4, Options{}); err == nil {
		t.Error("a spec without models was accepted")
	}
}

// TestTableLeavesThePlateau: thresholds 1 to 4 of these 16 requests all give 757
// tokens/s, 10 gives 788. A row that comes from eager must not stay there.
func TestTableLeavesThePlateau(t *testing.T) {
	for name, s := range map[string]*Spec{
		"R2R":        pair(16, .2, 6, 48),
		"almost R2R": {N: 16, P: [][]float64{{.8, .2}, {.999, .001}}, Step: flat(6, 48)},
	} {
		q, err := newSearch(s, Options{Method: ByCountSim, Events: tableEvents})
		if err != nil {
			t.Fatal(name, err)
		}
		row, err := q.row(16, &Row{N: 15, B: []int{1, 1}})
		if err != nil {
			t.Fatal(name, err)
		}
		if row.B[1] < 8 || row.B[1] > 12 {
			t.Errorf("%s: B* = %v, want about 10", name, row.B)
		}
	}
}
