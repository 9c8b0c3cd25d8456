package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"tokenrouter/runtime/plan"
)

// Bounds of what can be asked: the table of B*(n) grows with the first, the
// number of vectors with the power of the second.
const (
	maxPlanN      = 100_000
	maxPlanModels = 8
	maxStepMS     = 3.6e6
	minQuantum    = 1e-6 // ms
	maxQuanta     = 1e9
	maxCommitted  = 1e6 // tokens of a step
)

// system is what the flags describe: a spec without thresholds, and the words
// for it.
type system struct {
	plan.Spec
	Algo   string // a preset, or matrix
	Commit string // replace, append or matrix
	Low    int    // the table of B*(n) runs from here to N
}

// system puts the flags together. Every error names a flag and what to give.
func (c *planCmd) system() (*system, error) {
	s := &system{}
	var err error
	if s.Low, s.N, err = parseN(c.number()); err != nil {
		return nil, err
	}
	if err = c.routing(s); err != nil {
		return nil, err
	}
	if err = c.commits(s); err != nil {
		return nil, err
	}
	if s.Step, err = c.stepTimes(len(s.P), s.N); err != nil {
		return nil, err
	}
	if s.Cap, err = c.seats(len(s.P)); err != nil {
		return nil, err
	}
	s.Quantum = c.Quantum
	return s, s.Check()
}

// presets are the algorithms that --algo names, with the flags that each takes.
var presets = map[string][]string{
	"r2r": {"--p"}, "citer": {"--p"}, "collm": {"--p"},
	"r-stitch": {"--p01", "--p10"},
	"me":       {"--weights"},
}

// routing fills in P, from a preset or from --P. Without --algo the flags given
// say which one is meant.
func (c *planCmd) routing(s *system) error {
	given := c.routingFlags()
	s.Algo = c.Algo
	if s.Algo == "rstitch" { // as the shipped router is called
		s.Algo = "r-stitch"
	}
	switch {
	case s.Algo != "" && presets[s.Algo] == nil:
		return fmt.Errorf("--algo %q is unknown; presets are r2r, citer, collm, r-stitch, me, and --P describes any other", c.Algo)
	case s.Algo != "":
	case len(given) == 0:
		return errors.New("no routing is given; give the probability that a step of the small model goes to the large one, such as --p 0.35, or a matrix with --P")
	case given[0] == "--P":
		s.Algo = "matrix"
	case given[0] == "--weights":
		s.Algo = "me"
	case given[0] == "--p":
		s.Algo = "r2r"
	default:
		s.Algo = "r-stitch"
	}
	wants := presets[s.Algo]
	if s.Algo == "matrix" {
		wants = []string{"--P"}
	}
	for _, name := range given {
		if !slices.Contains(wants, name) {
			return fmt.Errorf("%s does not go with %s, which takes %s", name, s.words(), strings.Join(wants, " and "))
		}
	}
	for _, name := range wants {
		if !slices.Contains(given, name) {
			return fmt.Errorf("%s is missing; %s takes %s", name, s.words(), strings.Join(wants, " and "))
		}
	}
	var err error
	switch s.Algo {
	case "matrix":
		s.P, err = parseMatrix("--P", c.Matrix)
		if err == nil {
			err = stochastic("--P", s.P)
		}
	case "me":
		s.P, err = weighted(c.Weights)
	case "r-stitch":
		if err = errors.Join(probability("--p01", *c.P01), probability("--p10", *c.P10)); err == nil {
			s.P = [][]float64{{1 - *c.P01, *c.P01}, {*c.P10, 1 - *c.P10}}
		}
	default:
		if err = probability("--p", *c.P); err == nil {
			s.P = [][]float64{{1 - *c.P, *c.P}, {1, 0}}
		}
	}
	return err
}

// words names the system's routing in a sentence.
func (s *system) words() string {
	if s.Algo == "matrix" {
		return "a matrix"
	}
	return s.Algo
}

// routingFlags are those of the routing that were given, --P first.
func (c *planCmd) routingFlags() []string {
	var out []string
	for _, f := range []struct {
		name  string
		given bool
	}{{"--P", c.Matrix != ""}, {"--weights", c.Weights != ""}, {"--p", c.P != nil}, {"--p01", c.P01 != nil}, {"--p10", c.P10 != nil}} {
		if f.given {
			out = append(out, f.name)
		}
	}
	return out
}

func probability(flag string, p float64) error {
	if !(p >= 0 && p <= 1) {
		return fmt.Errorf("%s %v is outside 0 to 1; give a probability", flag, p)
	}
	return nil
}

// stochastic checks the rows of P, and makes up for figures with few digits: a
// row of thirds typed as 0.333 is refused, one of 0.3333333333 is not.
func stochastic(flag string, p [][]float64) error {
	for i, row := range p {
		if len(row) != len(p) {
			return fmt.Errorf("%s: row %d has %d entries for %d %s; give as many entries as rows", flag, i+1, len(row), len(p), plural(len(p), "model"))
		}
		total := 0.0
		for j, x := range row {
			if !(x >= 0 && x <= 1) {
				return fmt.Errorf("%s: entry %d of row %d is %v, outside 0 to 1", flag, j+1, i+1, x)
			}
			total += x
		}
		if math.Abs(total-1) > 1e-6 {
			return fmt.Errorf("%s: row %d sums to %.9g; make it sum to 1", flag, i+1, total)
		}
		for j := range row {
			row[j] /= total
		}
	}
	return nil
}

// weighted is the P of ME: every step draws the next model by weight.
func weighted(text string) ([][]float64, error) {
	m, err := parseMatrix("--weights", text)
	if err != nil {
		return nil, err
	}
	if len(m) != 1 {
		return nil, fmt.Errorf("--weights %q has %d rows; give one weight per model, such as 0.6,0.25,0.15", text, len(m))
	}
	row, total := m[0], 0.0
	for i, w := range row {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return nil, fmt.Errorf("--weights: weight %d is %v; give 0 or more", i+1, w)
		}
		total += w
	}
	if total == 0 {
		return nil, errors.New("--weights are all 0; give at least one above it")
	}
	for i := range row {
		row[i] /= total
	}
	p := make([][]float64, len(row))
	for i := range p {
		p[i] = row
	}
	return p, nil
}

// commits fills in K: which steps commit a token.
func (c *planCmd) commits(s *system) error {
	m := len(s.P)
	s.Commit = c.Commit
	switch {
	case c.Commit == "" && s.Algo == "me":
		s.Commit = "append"
	case c.Commit == "":
		s.Commit = "replace"
	case c.Commit == "replace", c.Commit == "append":
	case strings.IndexFunc(c.Commit, unicode.IsDigit) < 0:
		return fmt.Errorf("--commit %q is none of replace, append and a matrix of the tokens committed by a step at i that goes to j, such as '1,0;1,1'", c.Commit)
	default:
		var err error
		s.Commit = "matrix"
		if s.K, err = parseMatrix("--commit", c.Commit); err != nil {
			return err
		}
		most := 0.0
		for i, row := range s.K {
			if len(s.K) != m || len(row) != m {
				return fmt.Errorf("--commit: row %d of %d has %d entries; %d models take %d rows of %d", i+1, len(s.K), len(row), m, m, m)
			}
			if least := slices.Min(row); least < 0 {
				return fmt.Errorf("--commit: %v in row %d is negative; give tokens, 0 or more", least, i+1)
			}
			most = max(most, slices.Max(row))
		}
		if most == 0 {
			return errors.New("--commit commits no token at all; give at least one entry above 0")
		}
		return bounded("--commit", s.K)
	}
	s.K = make([][]float64, m)
	for i := range s.K {
		s.K[i] = make([]float64, m)
		for j := range s.K[i] {
			// Replace: a token routed to a larger model is written anew there.
			if s.Commit == "append" || j <= i {
				s.K[i][j] = 1
			}
		}
	}
	return nil
}

// bounded refuses tokens of a step that no figure could hold.
func bounded(name string, committed [][]float64) error {
	for i, row := range committed {
		for _, k := range row {
			if k > maxCommitted {
				return fmt.Errorf("%s: a step of row %d commits %v tokens; give at most %g", name, i+1, k, maxCommitted)
			}
		}
	}
	return nil
}

// stepTimes are those of --latency, else those of a cost profile.
func (c *planCmd) stepTimes(models, n int) ([]plan.Latency, error) {
	if c.Latency == "" {
		return c.profileTimes(models, n)
	}
	switch {
	case c.Profile != "":
		return nil, errors.New("--latency and --profile exclude each other; give one of them")
	case c.Context != nil:
		return nil, errors.New("--context goes with a cost profile; --latency says itself what a step takes")
	}
	parts := strings.Split(c.Latency, ",")
	if len(parts) != models {
		return nil, fmt.Errorf("--latency %q has %d %s for %d %s; give one per model in ms, small first, such as 6.0,27.9 or 6.0+0.1n,27.9+0.5n", c.Latency, len(parts), plural(len(parts), "step time"), models, plural(models, "model"))
	}
	var out []plan.Latency
	for _, text := range parts {
		l, err := parseLatency(text)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, coarse("--latency", out, n, c.Quantum, "--quantum")
}

// profileTimes are those of a profile for decode rows behind a mean context: what
// a step takes and what lies between it and the next, each with its stalls in the
// mean. The model of throughput knows no prefill.
func (c *planCmd) profileTimes(models, n int) ([]plan.Latency, error) {
	p, err := readProfile(cmp.Or(c.Profile, defaultProfile))
	if err == nil {
		p, err = p.For(models)
	}
	if err != nil {
		return nil, fmt.Errorf("--profile: %w; or give the step times with --latency", err)
	}
	ctx := defaultContext
	if c.Context != nil {
		ctx = *c.Context
	}
	if ctx < 0 || ctx > maxContext {
		return nil, fmt.Errorf("--context %d; give 0 to %d tokens", ctx, maxContext)
	}
	var out []plan.Latency
	for i := range p.Rows {
		base, perRow := p.Affine(i, float64(ctx))
		out = append(out, plan.Latency{Base: base + p.Rows[i].Overhead + p.MeanStall(i), PerRow: perRow + p.Rows[i].OverheadPerRow})
	}
	return out, coarse("--profile", out, n, c.Quantum, "--quantum")
}
