package ladder_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/ladder"
	"tokenrouter/runtime/metrics"
)

func rungs(t *testing.T, list string) []ladder.Rung {
	t.Helper()
	r, err := ladder.ParseRungs(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRungs(t *testing.T) {
	all := ladder.Names(rungs(t, ""))
	if want := "sequential, lockstep, resubmit, async, tokenrouter, lookahead"; all != want {
		t.Errorf("all rungs are %s, want %s", all, want)
	}
	if got := ladder.Names(rungs(t, " tokenrouter, lockstep")); got != "lockstep, tokenrouter" {
		t.Errorf("not in the order of the ladder: %s", got)
	}
	for list, want := range map[string]string{"eager": `no rung "eager"; known are sequential, lockstep`, "async,async": "named twice", "async,": `no rung ""`} {
		if _, err := ladder.ParseRungs(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

func TestGridRefuses(t *testing.T) {
	r := rungs(t, "async")
	for want, g := range map[string]ladder.Grid{
		"nothing to run":   {Rungs: r, Seeds: []uint64{1}},
		"less than 1":      {Rungs: r, Concurrency: []int{0}, Seeds: []uint64{1}},
		"4 is named twice": {Rungs: r, Concurrency: []int{4, 4}, Seeds: []uint64{1}},
		"seed 1 is given":  {Rungs: r, Concurrency: []int{4}, Seeds: []uint64{1, 1}},
	} {
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// On a wall clock every rung comes first, second and so on equally often when
// there are as many repetitions as rungs.
func TestOrderRotates(t *testing.T) {
	g := ladder.Grid{Rungs: rungs(t, "lockstep,async,tokenrouter"), Concurrency: []int{2, 8}, Seeds: []uint64{5, 6, 7}, Rotate: true}
	place := map[string][3]int{}
	order := g.Order()
	if len(order) != 18 {
		t.Fatalf("%d settings", len(order))
	}
	for i, s := range order {
		if first := order[i-i%3]; s.N != first.N || s.Seed != first.Seed {
			t.Fatalf("%v is among the rungs of %v", s, first)
		}
		p := place[s.Rung.Name]
		p[i%3]++
		place[s.Rung.Name] = p
	}
	for rung, p := range place {
		if p != [3]int{2, 2, 2} {
			t.Errorf("%s comes first, second, third %v times", rung, p)
		}
	}
	g.Rotate = false
	for i, s := range g.Order() {
		if s.Rung.Name != g.Rungs[i%3].Name {
			t.Errorf("setting %d is of %s", i, s.Rung.Name)
		}
	}
}

// summary has the figures that are looked at here.
func summary(tokens, user, p5 float64) metrics.Summary {
	return metrics.Summary{
		TokensPerS: tokens, User: metrics.Speeds{N: 3, Mean: user, P50: user, P5: p5}, Tokens: 100,
		TokensByRole: []metrics.RoleSummary{{Role: "small", Idle: 0.25, MeanBatch: 2, Batches: 9}, {Role: "large"}},
	}
}

// Three seeds whose levels differ a hundredfold: the second rung is 1.2 times the
// first but for a factor e^-0.1, 1, e^0.1, so the paired interval is
// exp(ln 1.2 ± 4.302653 x 0.1/sqrt 3), whatever the levels do.
func TestRatiosArePaired(t *testing.T) {
	g := ladder.Grid{Rungs: rungs(t, "lockstep,async"), Concurrency: []int{4}, Seeds: []uint64{1, 2, 3}}
	level := map[uint64]float64{1: 10, 2: 100, 3: 1000}
	cells, err := g.Run(nil, func(s ladder.Setting) (metrics.Summary, error) {
		x := level[s.Seed]
		if s.Rung.Name == ladder.Async {
			x *= 1.2 * math.Exp(0.1*(float64(s.Seed)-2))
		}
		return summary(x, x/4, x/5), nil
	}, nil)
	if err != nil || len(cells) != 6 {
		t.Fatalf("%d cells, %v", len(cells), err)
	}
	tab := ladder.NewTable(g, []string{"small", "large"}, cells)
	r := tab.Row(ladder.Async, 4).Before[ladder.Throughput]
	near(t, "ratio", r.Mean, 1.2, 1e-12)
	near(t, "lo", r.Lo, 1.2*math.Exp(-0.248414), 1e-5)
	near(t, "hi", r.Hi, 1.2*math.Exp(0.248414), 1e-5)
	if r.Pairs != 3 || r.Of != ladder.Async || r.To != ladder.Lockstep {
		t.Errorf("%+v", r)
	}
	v := tab.Row(ladder.Lockstep, 4).Values[ladder.Throughput]
	near(t, "mean", v.Mean, 370, 1e-12)
	near(t, "half", v.Half, 4.302653*547.4486/math.Sqrt(3), 1e-2)
	near(t, "idle", tab.Row(ladder.Async, 4).Values["idle_small"].Mean, 0.25, 0)
	if n := tab.Row(ladder.Async, 4).Values["mean_batch_large"].N; n != 0 {
		t.Errorf("the mean batch of no batches is of %d runs", n)
	}
	if tab.Row(ladder.Lockstep, 4).Before != nil || tab.Row(ladder.Lockstep, 4).Lock != nil {
		t.Error("the lowest rung is compared with something")
	}
	if tab.Row("async", 5) != nil {
		t.Error("there is a row of a concurrency that is not in the grid")
	}
}

// Case K10: a ladder that is interrupted has what was run, says what is missing,
// and goes on there: nothing is run twice.
func TestInterruptedLadderGoesOn(t *testing.T) {
	g := ladder.Grid{Rungs: rungs(t, "lockstep,async,tokenrouter"), Concurrency: []int{2, 4}, Seeds: []uint64{1, 2}}
	stop := errors.New("interrupted")
	runs := map[string]int{}
	left := 8
	run := func(s ladder.Setting) (metrics.Summary, error) {
		if left == 0 {
			return metrics.Summary{}, stop
		}
		left--
		runs[s.String()]++
		return summary(100*float64(s.N)+float64(s.Seed), 30, 20), nil
	}
	shown := 0
	cells, err := g.Run(nil, run, func(*ladder.Cell) error { shown++; return nil })
	if !errors.Is(err, stop) || len(cells) != 8 || shown != 8 {
		t.Fatalf("%d cells, %d shown, %v", len(cells), shown, err)
	}
	if want := "tokenrouter, n 2, seed 2"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not name %s", err, want)
	}
	tab := ladder.NewTable(g, []string{"small", "large"}, cells)
	if tab.Missing != 4 || tab.Row(ladder.TokenRouter, 2).Done != 1 || tab.Row(ladder.Async, 2).Done != 2 {
		t.Errorf("%d are missing", tab.Missing)
	}
	if p := tab.Row(ladder.TokenRouter, 2).Before[ladder.Throughput].Pairs; p != 1 {
		t.Errorf("%d pairs where one run is missing", p)
	}
	text := ladder.Text(tab)
	for _, want := range []string{"tokenrouter*", "* missing: 4 of 12 runs", "n=2 tokenrouter 1", "n=4 async 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	left = 100
	cells, err = g.Run(cells, run, nil)
	if err != nil || len(cells) != 12 || len(runs) != 12 {
		t.Fatalf("%d cells of %d settings, %v", len(cells), len(runs), err)
	}
	for s, n := range runs {
		if n != 1 {
			t.Errorf("%s was run %d times", s, n)
		}
	}
	if tab = ladder.NewTable(g, nil, cells); tab.Missing != 0 || strings.Contains(ladder.Text(tab), "*") {
		t.Error("something is missing at the end")
	}
	full := errors.New("disk full")
	if _, err := g.Run(nil, run, func(*ladder.Cell) error { return full }); !errors.Is(err, full) {
		t.Errorf("a cell that could not be kept: %v", err)
	}
}

// The service-level view takes the highest throughput among what keeps the bound,
// on average and for nineteen of twenty, and pairs the rungs at their own n.
func TestSLO(t *testing.T) {
	g := ladder.Grid{Rungs: rungs(t, "lockstep,async,tokenrouter"), Concurrency: []int{2, 4, 8}, Seeds: []uint64{1, 2}}
	type point struct{ tokens, user, p5 float64 }
	points := map[string]map[int]point{
		ladder.Lockstep:    {2: {50, 29, 25}, 4: {60, 15, 12}, 8: {70, 9, 8}},
		ladder.Async:       {2: {90, 45, 40}, 4: {160, 40, 29}, 8: {240, 30, 20}},
		ladder.TokenRouter: {2: {110, 55, 50}, 4: {200, 50, 31}, 8: {180, 36, 30}},
	}
	cells, err := g.Run(nil, func(s ladder.Setting) (metrics.Summary, error) {
		p := points[s.Rung.Name][s.N]
		return summary(p.tokens*float64(s.Seed), p.user, p.p5), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := ladder.NewTable(g, []string{"small", "large"}, cells)
	mean := ladder.NewSLO(tab, cells, 30, ladder.UserMean)
	p5 := ladder.NewSLO(tab, cells, 30, ladder.UserP5)
	for _, c := range []struct {
		s    *ladder.SLO
		want []int
	}{{mean, []int{0, 8, 4}}, {p5, []int{0, 2, 4}}} {
		for i, n := range c.want {
			if got := c.s.Rows[i].N; got != n {
				t.Errorf("%s: %s carries most at n %d, want %d", c.s.Key, c.s.Rows[i].Rung, got, n)
			}
		}
		if c.s.Rows[1].Before != nil {
			t.Error("async is compared with a rung that keeps the bound nowhere")
		}
	}
	near(t, "tokens", p5.Rows[2].Tokens.Mean, 300, 1e-12)
	near(t, "ratio at their own n", p5.Rows[2].Before.Mean, 200.0/90, 1e-12)
	near(t, "ratio at their own n", mean.Rows[2].Before.Mean, 200.0/240, 1e-12)
	text := ladder.Text(tab, mean, p5)
	for _, want := range []string{"no n that was run keeps it", "users get 30 tok/s on average", "19 of 20 users get 30 tok/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Whatever is missing and however large figures are: no line is wider than 100
// columns, and each row has its line in every block.
func TestTextFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := ladder.Grid{Rungs: ladder.Rungs(), Concurrency: []int{1, 16, 256}, Seeds: []uint64{1, 2}}
		roles := rapid.SampledFrom([][]string{{"small", "large"}, {"small", "middle", "large"}}).Draw(t, "roles")
		size := rapid.SampledFrom([]float64{0, 0.004, 3, 999.96, 9999.94, 99_999}).Draw(t, "size")
		var cells []ladder.Cell
		for _, s := range g.Order() {
			if rapid.Float64Range(0, 1).Draw(t, "missing") < 0.2 {
				continue
			}
			x := size * rapid.Float64Range(0.01, 1).Draw(t, "x")
			sum := metrics.Summary{
				TokensPerS: x, User: metrics.Speeds{N: 1, Mean: x, P5: x}, Tokens: 1000, Extended: int(200 * x), Recomputed: int(900 * x),
				TTFTms: metrics.Quantiles{N: 1, P50: 100 * x, P99: 1000 * x}, E2Ems: metrics.Quantiles{N: 1, P50: 1000 * x, P99: 1e6 * x},
			}
			for _, r := range roles {
				sum.TokensByRole = append(sum.TokensByRole, metrics.RoleSummary{Role: r, Idle: 1, Batches: 1, MeanBatch: 1024})
			}
			cells = append(cells, ladder.Cell{Rung: s.Rung.Name, N: s.N, Seed: s.Seed, Summary: sum})
		}
		tab := ladder.NewTable(g, roles, cells)
		text := ladder.Text(tab, ladder.NewSLO(tab, cells, 30, ladder.UserMean), ladder.NewSLO(tab, cells, 30, ladder.UserP5)) + ladder.PublishedText(tab)
		lines := strings.Split(text, "\n")
		for _, l := range lines {
			if n := len([]rune(l)); n > 100 {
				t.Fatalf("%d columns: %q", n, l)
			}
			if strings.Contains(l, "NaN") || strings.Contains(l, "Inf") {
				t.Fatalf("%q", l)
			}
		}
		text, _, _ = strings.Cut(text, "* missing") // names them once more
		lines = strings.Split(text, "\n")
		for _, r := range g.Rungs {
			n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
				f := strings.Fields(l)
				return len(f) < 2 || strings.TrimSuffix(f[1], "*") != r.Name && f[0] != r.Name
			}))
			if n != 10 { // three blocks of three, and what it carries
				t.Fatalf("%s has %d lines in\n%s", r.Name, n, text)
			}
		}
	})
}

func near(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > eps {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
