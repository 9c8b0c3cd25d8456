package plan

import (
	"math"
	"slices"
	"testing"

	"tokenrouter/runtime/rng"
)

// measured is s with the routing that so many rows of each model would show: every
// share is off by about its standard error.
func measured(s *Spec, rows float64, seed uint64) *Spec {
	c := *s
	c.P = nil
	for i, row := range s.P {
		out, sum := make([]float64, len(row)), 0.0
		for j, p := range row {
			k := rng.Key{Seed: seed, Pos: i, Model: j}
			off := math.Sqrt(12) * (k.Float64(0) - 0.5) * math.Sqrt(p*(1-p)/rows)
			out[j] = max(0, p+off)
			sum += out[j]
		}
		for j := range out {
			out[j] /= sum
		}
		c.P = append(c.P, out)
	}
	return &c
}

// TestShelfIsAsGood: rows of a table that is found lose as little against the best
// of all vectors as rows of one that is made (TestTable), for pairs by the chain.
func TestShelfIsAsGood(t *testing.T) {
	const n = 5
	sum, most, rows := 0.0, 0.0, 0
	for i, c := range []*Spec{pair(n, .05, 6, 27.9), pair(n, .2, 6, 48), pair(n, .35, 6, 27.9), pair(n, .5, 6, 15)} {
		shelf := Shelf{Most: 64}
		for k := range uint64(60) {
			s := measured(c, 144, 1000*uint64(i)+k)
			tab, ok := shelf.Find(s, n)
			if !ok {
				if _, err := shelf.Tabulate(s, n); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if k%6 > 0 {
				continue
			}
			for m := 3; m <= n; m++ {
				at := *s
				at.N = m
				regret := regretOf(t, &at, tab.Rows[m-1].B)
				sum, most, rows = sum+regret, max(most, regret), rows+1
			}
		}
		if made := len(shelf.kept); made > 12 {
			t.Errorf("p = %v: %d tables were made for 60 measures of one system", c.P[0][1], made)
		}
	}
	t.Logf("regret over %d rows: mean %.3f %%, largest %.3f %%", rows, 100*sum/float64(rows), 100*most)
	if rows < 60 || sum/float64(rows) > .001 || most > .013 {
		t.Errorf("regret over %d rows: mean %.4f, largest %.4f", rows, sum/float64(rows), most)
	}
}

// TestShelfOfThree: three models have six shares, and still most tables are found;
// they lose little against those that would have been made.
func TestShelfOfThree(t *testing.T) {
	const n = 12
	me := []float64{6. / 11, 3. / 11, 2. / 11}
	truth := &Spec{N: n, P: [][]float64{me, me, me}, Step: []Latency{{6, .1}, {14.3, .3}, {27.9, .5}}}
	shelf := Shelf{Most: 256}
	sum, most, rows, found := 0.0, 0.0, 0, 0
	const asked = 240
	for k := range uint64(asked) {
		s := measured(truth, 144, k)
		tab, ok := shelf.Find(s, n)
		if !ok {
			if _, err := shelf.Tabulate(s, n); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if found++; found%12 > 0 {
			continue
		}
		fresh, err := Tabulate(s, n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []int{4, 8, n} {
			var rate [2]float64
			for i, of := range []Table{tab, fresh} {
				at := *s
				at.N, at.B = m, of.Rows[m-1].B
				r, err := CountSim(&at, 30_000, 7)
				if err != nil {
					t.Fatal(err)
				}
				rate[i] = r.Throughput
			}
			loss := 1 - rate[0]/rate[1]
			sum, most, rows = sum+loss, max(most, loss), rows+1
		}
	}
	t.Logf("%d of %d found, loss over %d rows: mean %.3f %%, largest %.3f %%", found, asked, rows, 100*sum/float64(rows), 100*most)
	if found < asked/2 || sum/float64(rows) > .002 || most > .013 {
		t.Errorf("%d of %d found, loss over %d rows: mean %.4f, largest %.4f", found, asked, rows, sum/float64(rows), most)
	}
}

// TestShelfTellsApart: a table is for a system with another routing, step time,
// cap or law of sends only if that is within bounds, and for no other number of
// models.
func TestShelfTellsApart(t *testing.T) {
	const n = 8
	base := func() *Spec {
		return &Spec{
			N: n, P: [][]float64{{.94, .05, .01}, {.8, .2, 0}, {1, 0, 0}}, K: [][]float64{{1, 1, 0}, {1, 1, 1}, {1, 1, 1}},
			Step: []Latency{{6, .1}, {14.5, .2}, {27.9, .5}}, Cap: []int{8, 8, 8}, Quantum: .1,
			Send: []*Phases{nil, Stays([]float64{.2}), nil},
		}
	}
	var shelf Shelf
	shelf.Most = 1
	if _, err := shelf.Tabulate(base(), n); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(s *Spec)
		found  bool
	}{
		"nothing":                      {func(*Spec) {}, true},
		"a share within":               {func(s *Spec) { s.P[0] = []float64{.93, .06, .01} }, true},
		"a share":                      {func(s *Spec) { s.P[0] = []float64{.91, .08, .01} }, false},
		"a share of few steps":         {func(s *Spec) { s.P[2] = []float64{.9, .1, 0} }, true},
		"what is committed":            {func(s *Spec) { s.K[0][1] = .5 }, true},
		"a step time within":           {func(s *Spec) { s.Step[2].Base = 28.3 }, true},
		"a step time":                  {func(s *Spec) { s.Step[2].Base = 29.5 }, false},
		"a step of one row":            {func(s *Spec) { s.Step[2] = Latency{27.9 - 8*.5, 1} }, false},
		"a cap":                        {func(s *Spec) { s.Cap[1] = 4 }, false},
		"the quantum":                  {func(s *Spec) { s.Quantum = .05 }, false},
		"no law":                       {func(s *Spec) { s.Send = nil }, false},
		"a law within":                 {func(s *Spec) { s.Send[1] = Stays([]float64{.22}) }, true},
		"another law of the same mean": {func(s *Spec) { s.Send[1] = Stays([]float64{0.1, 0.6, .98}) }, false},
		"fewer models":                 {func(s *Spec) { *s = *pair(n, .35, 6, 27.9); s.Cap = []int{8, 8, 8} }, false},
	} {
		s := base()
		c.change(s)
		if _, ok := shelf.Find(s, n); ok != c.found {
			t.Errorf("%s: found %v, want %v", name, ok, c.found)
		}
	}
	for maxN, want := range map[int]bool{-1: false, 0: false, 1: true, n: true, n + 1: false} {
		if tab, ok := shelf.Find(base(), maxN); ok != want || ok && len(tab.Rows) != maxN {
			t.Errorf("%d rows: found %v with %d", maxN, ok, len(tab.Rows))
		}
	}
	if _, err := shelf.Tabulate(base(), 0); err == nil || len(shelf.kept) != 1 {
		t.Errorf("a table without rows: %v, %d kept", err, len(shelf.kept))
	}
}

// TestShelfKeepsTheLastUsed: there are never more tables than Most, and those go
// first that were not asked for; of several that would do the nearest is taken.
func TestShelfKeepsTheLastUsed(t *testing.T) {
	const n = 4
	shelf := Shelf{Most: 3}
	at := func(p float64) *Spec { return pair(n, p, 6, 27.9) }
	put := func(p float64) {
		t.Helper()
		if _, err := shelf.Tabulate(at(p), n); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() (out []float64) {
		for i := range shelf.kept {
			out = append(out, shelf.kept[i].spec.P[0][1])
		}
		return out
	}
	for _, p := range []float64{.1, .3, .5} {
		put(p)
	}
	if _, ok := shelf.Find(at(.1), n); !ok {
		t.Fatal("the oldest is gone")
	}
	put(.7)
	if got := kept(); !slices.Equal(got, []float64{.5, .1, .7}) {
		t.Fatalf("kept are %v", got)
	}
	put(.11)
	for _, c := range []struct{ ask, want float64 }{{.104, .1}, {.106, .11}} {
		if _, ok := shelf.Find(at(c.ask), n); !ok || shelf.kept[2].spec.P[0][1] != c.want {
			t.Errorf("for p = %v found %v that of %v", c.ask, ok, shelf.kept[2].spec.P[0][1])
		}
	}
	if got := kept(); !slices.Equal(got, []float64{.7, .1, .11}) {
		t.Errorf("kept are %v", got)
	}
	shelf = Shelf{}
	put(.1)
	if len(shelf.kept) > 0 {
		t.Error("a shelf without room keeps a table")
	}
}

// TestVisits: the shares solve their equations, also with periods and with models
// that are never left.
func TestVisits(t *testing.T) {
	for _, c := range []struct {
		p    [][]float64
		want []float64
	}{
		{[][]float64{{1}}, []float64{1}},
		{[][]float64{{.65, .35}, {1, 0}}, []float64{1 / 1.35, .35 / 1.35}},
		{[][]float64{{0, 1}, {1, 0}}, []float64{.5, .5}},
		{[][]float64{{.999999, .000001}, {.000002, .999998}}, []float64{2. / 3, 1. / 3}},
		{[][]float64{{.5, .5}, {0, 1}}, []float64{0, 1}},
		{[][]float64{{1, 0}, {.5, .5}}, []float64{1, 0}},
		{[][]float64{{0, .25, .75}, {0, 1, 0}, {0, 0, 1}}, []float64{0, .25, .75}},
	} {
		got := visits(c.p)
		for i, want := range c.want {
			if math.Abs(got[i]-want) > 1e-9 {
				t.Errorf("%v: %v, want %v", c.p, got, c.want)
				break
			}
		}
	}
}

// TestFlowsHoldUnderThresholds: steps are shared out as marks say, whatever the
// thresholds, so K makes no vector better than another.
func TestFlowsHoldUnderThresholds(t *testing.T) {
	for _, c := range shapes() {
		flow, commits := marksOf(c.with(4)).flow, 0.0
		s := c.with(4)
		for i := range flow {
			for j := range flow {
				commits += flow[i][j] * s.committed(i, j)
			}
		}
		for _, b := range [][]int{{1, 1, 1}, {1, 2, 1}, {1, 1, 2}} {
			r, err := Chain(c.with(4, b[:len(flow)]...))
			if err != nil {
				t.Fatal(c.name, err)
			}
			all := 0.0
			for _, steps := range r.Steps {
				all += steps
			}
			near(t, c.name+": tokens of a step", r.Throughput/all, commits, 1e-6)
			for i, steps := range r.Steps {
				share := 0.0
				for _, f := range flow[i] {
					share += f
				}
				near(t, c.name+": steps of a model", steps/all, share, 1e-6)
			}
		}
	}
}

// TestShelfHasNoneAtAJump: at t1/t0 = 3 the best B1 for eight is 2 on one side and 4
// on the other, 8 % apart, so a table is made anew there.
func TestShelfHasNoneAtAJump(t *testing.T) {
	const n = 8
	for small, want := range map[float64]bool{9.2: false, 9.3: false, 9.4: false, 10.5: true, 6: true, 14: false, 27.9: false} {
		shelf := Shelf{Most: 4}
		s := pair(n, .35, small, 27.9)
		if _, err := shelf.Tabulate(s, n); err != nil {
			t.Fatal(err)
		}
		if _, ok := shelf.Find(s, n); ok != want {
			t.Errorf("%v ms: found %v, want %v", small, ok, want)
		}
	}
}
