package ladder

import (
	"fmt"

	"tokenrouter/runtime/metrics"
)

// Grid is all that is run: every rung at every concurrency with every seed.
type Grid struct {
	Rungs       []Rung
	Concurrency []int
	Seeds       []uint64 // one for each repetition

	// Rotate lets each repetition begin with another rung, so that no rung is
	// always first or always behind the same other one. Wall clocks need it: a
	// machine warms up, and others use it. Virtual time does not.
	Rotate bool
}

// Setting is what one run is made of.
type Setting struct {
	Rung Rung
	N    int // concurrency
	Seed uint64
}

func (s Setting) String() string { return fmt.Sprintf("%s, n %d, seed %d", s.Rung.Name, s.N, s.Seed) }

// Cell is a setting that was run. Its names are those of the file that a ladder
// can be continued from.
type Cell struct {
	Rung    string          `json:"rung"`
	N       int             `json:"n"`
	Seed    uint64          `json:"seed"`
	Summary metrics.Summary `json:"summary"`
}

func (c *Cell) is(s Setting) bool { return c.Rung == s.Rung.Name && c.N == s.N && c.Seed == s.Seed }

// Check refuses a grid that says nothing or something twice.
func (g *Grid) Check() error {
	if len(g.Rungs) == 0 || len(g.Concurrency) == 0 || len(g.Seeds) == 0 {
		return fmt.Errorf("a ladder of %d rungs, %d concurrencies and %d seeds has nothing to run", len(g.Rungs), len(g.Concurrency), len(g.Seeds))
	}
	n := map[int]bool{}
	for _, c := range g.Concurrency {
		if c < 1 {
			return fmt.Errorf("a concurrency of %d is less than 1", c)
		}
		if n[c] {
			return fmt.Errorf("the concurrency %d is named twice", c)
		}
		n[c] = true
	}
	seeds := map[uint64]bool{}
	for _, s := range g.Seeds {
		if seeds[s] {
			return fmt.Errorf("the seed %d is given twice; pairs need seeds of their own", s)
		}
		seeds[s] = true
	}
	return nil
}

// Order gives the settings in the order they are run in: all rungs of one
// concurrency and seed follow one another, so that what changes with time changes
// for all of them.
func (g *Grid) Order() []Setting {
	var out []Setting
	for i, seed := range g.Seeds {
		for j, n := range g.Concurrency {
			first := 0
			if g.Rotate {
				first = i + j
			}
			for k := range g.Rungs {
				out = append(out, Setting{Rung: g.Rungs[(first+k)%len(g.Rungs)], N: n, Seed: seed})
			}
		}
	}
	return out
}

// Missing gives the settings of g that cells lack, in order.
func (g *Grid) Missing(cells []Cell) []Setting {
	have := map[Setting]bool{}
	for i := range cells {
		have[Setting{Rung: Rung{Name: cells[i].Rung}, N: cells[i].N, Seed: cells[i].Seed}] = true
	}
	var out []Setting
	for _, s := range g.Order() {
		if !have[Setting{Rung: Rung{Name: s.Rung.Name}, N: s.N, Seed: s.Seed}] {
			out = append(out, s)
		}
	}
	return out
}

// Run runs what the given cells lack and returns all cells. Each new one is shown
// to done, if that is not nil, before the next begins. The first error ends it:
// what was run until then is returned with it.
func (g *Grid) Run(cells []Cell, run func(Setting) (metrics.Summary, error), done func(*Cell) error) ([]Cell, error) {
	if err := g.Check(); err != nil {
		return cells, err
	}
	for _, s := range g.Missing(cells) {
		sum, err := run(s)
		if err != nil {
			return cells, fmt.Errorf("%v: %w", s, err)
		}
		cells = append(cells, Cell{Rung: s.Rung.Name, N: s.N, Seed: s.Seed, Summary: sum})
		if done == nil {
			continue
		}
		if err := done(&cells[len(cells)-1]); err != nil {
			return cells, err
		}
	}
	return cells, nil
}
