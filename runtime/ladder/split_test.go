package ladder_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/ladder"
	"tokenrouter/runtime/metrics"
)

// Every rung that official code stands on, and every baseline, has a way up to
// TokenRouter's on which one thing is switched at a time.
func TestPaths(t *testing.T) {
	for from, want := range map[string]string{
		ladder.Stateless:   "stateless sequential lockstep async tokenrouter",
		ladder.Recompute:   "recompute lockstep async tokenrouter",
		ladder.Resubmit:    "resubmit async tokenrouter",
		ladder.Sequential:  "sequential lockstep async tokenrouter",
		ladder.TokenRouter: "tokenrouter",
		ladder.LookAhead:   "", // beside it, not below
	} {
		if got := strings.Join(ladder.Path(from), " "); got != want {
			t.Errorf("from %s: %q, want %q", from, got, want)
		}
	}
	by := map[string]ladder.Rung{}
	for _, r := range append(ladder.Official(), ladder.Rungs()...) {
		by[r.Name] = r
	}
	for from := range by {
		path := ladder.Path(from)
		for i := 1; i < len(path); i++ {
			a, b := by[path[i-1]], by[path[i]]
			differ := 0
			for _, d := range []bool{a.Policy != b.Policy, a.MaxActive != b.MaxActive, a.Resubmit != b.Resubmit || a.Stateless != b.Stateless} {
				if d {
					differ++
				}
			}
			// Alone a request meets nobody to wait for: eager and lock-step are one.
			if a.MaxActive == 1 && a.Policy == "eager" && b.Policy == "lock-step" {
				differ--
			}
			if differ != 1 {
				t.Errorf("%s and %s differ in %d things", a.Name, b.Name, differ)
			}
		}
	}
	for _, a := range ladder.Algorithms() {
		if ladder.Path(a.Official) == nil {
			t.Errorf("%s: no way up from %s", a.Name, a.Official)
		}
		for i, row := range a.P {
			if sum := row[0] + row[1]; math.Abs(sum-1) > 1e-12 {
				t.Errorf("%s: row %d of P sums to %v", a.Name, i, sum)
			}
		}
	}
}

// The parts multiply to the total exactly, whatever was measured and whatever is
// missing.
func TestSplitAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algo := ladder.Algorithms()[rapid.IntRange(0, 4).Draw(t, "algorithm")]
		g := ladder.Grid{
			Case: ladder.Case{Algo: algo.Name, Workload: "light"}, Rungs: algo.Rungs(ladder.Rungs()),
			Concurrency: []int{4}, Seeds: []uint64{1, 2, 3},
		}
		var cells []ladder.Cell
		for _, s := range g.Order() {
			if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
				continue
			}
			cells = append(cells, ladder.NewCell(s, metrics.Summary{TokensPerS: rapid.Float64Range(1, 1e4).Draw(t, "tok/s"), Tokens: 1}))
		}
		table := ladder.NewTable(g, []string{"small", "large"}, cells)
		for _, from := range append(ladder.Baselines(), algo.Official) {
			s, ok := table.Split(cells, ladder.Throughput, from, 4)
			if !ok {
				continue
			}
			log := 0.0
			for _, p := range s.Parts {
				if p.Ratio.Pairs != s.Total.Pairs {
					t.Fatalf("%s is over %d seeds, the total over %d", p.Cause, p.Ratio.Pairs, s.Total.Pairs)
				}
				log += math.Log(p.Ratio.Mean)
			}
			if math.Abs(log-math.Log(s.Total.Mean)) > 1e-9 {
				t.Fatalf("from %s the parts make %v, the total is %v", from, math.Exp(log), s.Total.Mean)
			}
		}
	})
}

// A cross keeps cases apart, names what it cannot say, and no line of its text is
// wider than a page.
func TestCross(t *testing.T) {
	algos := ladder.Algorithms()
	var grids []ladder.Grid
	var cells []ladder.Cell
	for i, a := range algos {
		g := ladder.Grid{Case: ladder.Case{Algo: a.Name, Workload: "multi-turn"}, Rungs: a.Rungs(ladder.Rungs()), Concurrency: []int{4, 1024}, Seeds: []uint64{7, 8}}
		grids = append(grids, g)
		for k, s := range g.Order() {
			if a.Name == "me" && s.N == 4 {
				continue
			}
			cells = append(cells, ladder.NewCell(s, metrics.Summary{TokensPerS: float64((i + 1) * (k + 1) * 100), Tokens: 9}))
		}
	}
	x := ladder.NewCross(algos, grids, []string{"small", "large"}, cells)
	text := x.Text()
	for _, want := range []string{"r2r", "drop and redo", "commit and go", "missing: 12 of", "re-prefill", "stateless"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if r := x.Report(); len(r) != len(algos) || r[0].Official != ladder.Lockstep || len(r[4].Missing) != 12 {
		t.Errorf("report: %+v", r)
	}
	var csv strings.Builder
	if err := x.WriteCSV(&csv); err != nil {
		t.Fatal(err)
	}
	want := 1
	for i := range grids {
		want += len(grids[i].Order())
	}
	if n := strings.Count(csv.String(), "\n"); n != want {
		t.Errorf("%d lines, want %d", n, want)
	}
}

func TestParseAlgorithms(t *testing.T) {
	got, err := ladder.ParseAlgorithms("me, r2r")
	if err != nil || len(got) != 2 || got[0].Name != "me" {
		t.Errorf("%v, %v", got, err)
	}
	for list, want := range map[string]string{"r2d2": `no algorithm "r2d2"; known are r2r, citer`, "me,me": "named twice"} {
		if _, err := ladder.ParseAlgorithms(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
	a := got[1]
	a.Set("small_large", 0.1)
	if a.P[0][1] != 0.1 || got[1].Params["small_large"] != 0.35 {
		t.Errorf("P is %v, the other's knobs %v", a.P, got[1].Params)
	}
}
