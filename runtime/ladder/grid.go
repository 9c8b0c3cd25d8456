package ladder

import (
	"fmt"

	"tokenrouter/runtime/metrics"
)

// Case is what a ladder is of where there are several: an algorithm under a
// workload. The zero value is that of the only one.
type Case struct{ Algo, Workload string }

func (c Case) String() string {
	if c == (Case{}) {
		return ""
	}
	return c.Algo + ", " + c.Workload
}

// Grid is all that is run: every rung at every concurrency with every seed.
type Grid struct {
	Case        Case
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
	Case Case
	Rung Rung
	N    int // concurrency
	Seed uint64
}

func (s Setting) String() string {
	text := fmt.Sprintf("%s, n %d, seed %d", s.Rung.Name, s.N, s.Seed)
	if s.Case != (Case{}) {
		return s.Case.String() + ", " + text
	}
	return text
}

// Cell is a setting that was run. Its names are those of the file that a ladder
// can be continued from.
type Cell struct {
	Algo     string          `json:"algo,omitempty"`
	Workload string          `json:"workload,omitempty"`
	Rung     string          `json:"rung"`
	N        int             `json:"n"`
	Seed     uint64          `json:"seed"`
	Summary  metrics.Summary `json:"summary"`
}

// NewCell is what a setting came to.
func NewCell(s Setting, sum metrics.Summary) Cell {
	return Cell{Algo: s.Case.Algo, Workload: s.Case.Workload, Rung: s.Rung.Name, N: s.N, Seed: s.Seed, Summary: sum}
}

// Setting is that of the cell, with the name of its rung alone.
func (c *Cell) Setting() Setting {
	return Setting{Case: Case{c.Algo, c.Workload}, Rung: Rung{Name: c.Rung}, N: c.N, Seed: c.Seed}
}

// named is a setting as cells are found by.
func (s Setting) named() Setting {
	s.Rung = Rung{Name: s.Rung.Name}
	return s
}

func (c *Cell) is(s Setting) bool { return c.Setting() == s.named() }

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
				out = append(out, Setting{Case: g.Case, Rung: g.Rungs[(first+k)%len(g.Rungs)], N: n, Seed: seed})
			}
		}
	}
	return out
}

// Missing gives the settings of g that cells lack, in order.
func (g *Grid) Missing(cells []Cell) []Setting {
	have := map[Setting]bool{}
	for i := range cells {
		have[cells[i].Setting()] = true
	}
	var out []Setting
	for _, s := range g.Order() {
		if !have[s.named()] {
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
		cells = append(cells, NewCell(s, sum))
		if done == nil {
			continue
		}
		if err := done(&cells[len(cells)-1]); err != nil {
			return cells, err
		}
	}
	return cells, nil
}
