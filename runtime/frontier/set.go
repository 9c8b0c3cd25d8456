package frontier

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// CostOf says what is counted as cost: parameters times...
type CostOf string

// Costs, in the order of [Costs]. By steps, every row that gave a candidate counts,
// the small model's dropped ones too: it has read what they cost. By tokens, only who
// wrote a token counts for it, as R2R (arXiv 2505.21600) accounts its activated
// parameters. By positions, all that was computed counts: prompts, and what the
// other model wrote and this one had to feed.
const (
	CostSteps     CostOf = "steps"
	CostTokens    CostOf = "tokens"
	CostPositions CostOf = "positions"
)

// Costs lists them.
func Costs() []CostOf { return []CostOf{CostSteps, CostTokens, CostPositions} }

// Names of what is at the ends of every curve.
const (
	SmallOnly = "small_only"
	LargeOnly = "large_only"
)

// Point is a router at one setting, problem by problem. Its lists are of the
// problems of its set, in their order.
type Point struct {
	Series string
	Label  string // the knobs
	Router string // file@hash, "" of one that was composed

	Right    []float64 // 1 or 0; the chance of it where a coin decides
	Tokens   []float64
	Large    []float64
	Cost     []float64 // in units of 1e9 parameters
	Switches []float64

	Rate    float64 // tokens/s of the run, NaN of one that was composed
	DeviceS float64 // seconds that devices were busy for the whole run, likewise
	Faults  int     // router faults of the run: rows that went the default way

	rows []sums // of the lists above
}

// Composed says that the point was made of others' outcomes, not run.
func (p *Point) Composed() bool { return p.Router == "" }

// Name is the series with the knobs.
func (p *Point) Name() string {
	if p.Label == "" {
		return p.Series
	}
	return p.Series + " " + p.Label
}

// Set is points over the problems that all of them answered.
type Set struct {
	Tasks    []string
	Families []string // of each problem
	Points   []*Point
	Small    *Point // small only
	Large    *Point // large only
	LeftOut  int    // problems that some point lacks, or that have no answer to check
	Cost     CostOf
}

// NewSet pairs runs by problem. Params are the sizes of the models, small first.
// Runs of small only and of large only have to be among them: they are what
// everything is held against.
func NewSet(runs []Run, params []float64, cost CostOf) (*Set, error) {
	if !slices.Contains(Costs(), cost) {
		return nil, fmt.Errorf("there is no cost %q; there are %v", cost, Costs())
	}
	if len(params) < 2 {
		return nil, fmt.Errorf("points are of two models or more, these are of %d", len(params))
	}
	small, large := find(runs, SmallOnly), find(runs, LargeOnly)
	if small == nil || large == nil {
		return nil, fmt.Errorf("points are held against %s and %s, which are not both among them; run the sweep with these baselines", SmallOnly, LargeOnly)
	}
	if err := distinct(runs); err != nil {
		return nil, err
	}
	for i := range runs {
		if x := runs[i].Summary.TokensPerS; !(x >= 0 && x <= most) {
			return nil, fmt.Errorf("%s has %g tokens/s", runs[i].Key(), x)
		}
	}
	s := &Set{Cost: cost}
	tables := make([]map[string]*Outcome, len(runs))
	for i := range runs {
		tables[i] = make(map[string]*Outcome, len(runs[i].Problems))
		for j := range runs[i].Problems {
			o := &runs[i].Problems[j]
			if err := o.check(len(params)); err != nil {
				return nil, fmt.Errorf("%s: problem %s %w", runs[i].Key(), o.Task, err)
			}
			if tables[i][o.Task] != nil {
				return nil, fmt.Errorf("%s: problem %s is there twice", runs[i].Key(), o.Task)
			}
			tables[i][o.Task] = o
		}
	}
	seen := map[string]bool{}
	for i := range runs {
		for j := range runs[i].Problems {
			task := runs[i].Problems[j].Task
			if seen[task] {
				continue
			}
			seen[task] = true
			if !common(tables, task) {
				s.LeftOut++
				continue
			}
			s.Tasks = append(s.Tasks, task)
			s.Families = append(s.Families, tables[0][task].Family)
		}
	}
	if len(s.Tasks) == 0 {
		return nil, errors.New("no problem with an answer to check was answered by all points")
	}
	var ends [2][]*Outcome
	for i := range runs {
		rows := make([]*Outcome, len(s.Tasks))
		for j, task := range s.Tasks {
			rows[j] = tables[i][task]
		}
		p := newPoint(&runs[i], rows, params, cost)
		s.Points = append(s.Points, p)
		switch &runs[i] {
		case small:
			s.Small, ends[0] = p, rows
		case large:
			s.Large, ends[1] = p, rows
		}
	}
	s.compose(ends[0], ends[1], scoredRun(runs, tables, s.Tasks), params)
	for _, p := range s.Points {
		p.lay()
	}
	return s, nil
}

// most is what no count of tokens comes near.
const most = 1e12

// check refuses what no run gives, since outcomes may come from a file.
func (o *Outcome) check(models int) error {
	for _, counts := range [][]int{o.Tokens, o.Steps, o.Fed, {o.Prompt, o.Switches}} {
		for _, n := range counts {
			if n < 0 || n > most {
				return fmt.Errorf("has a count of %d", n)
			}
		}
	}
	if len(o.Tokens) != models || len(o.Steps) != models || len(o.Fed) != models {
		return fmt.Errorf("has figures of another number of models than %d", models)
	}
	return nil
}

func find(runs []Run, series string) *Run {
	for i := range runs {
		if runs[i].Series == series && len(runs[i].Knobs) == 0 {
			return &runs[i]
		}
	}
	return nil
}

func distinct(runs []Run) error {
	keys := map[string]bool{}
	for i := range runs {
		if k := runs[i].Key(); keys[k] {
			return fmt.Errorf("the point %q is there twice", k)
		}
		keys[runs[i].Key()] = true
	}
	return nil
}

// common says that all have the problem, and can tell whether they are right.
func common(tables []map[string]*Outcome, task string) bool {
	for _, t := range tables {
		if o := t[task]; o == nil || !o.Checked {
			return false
		}
	}
	return true
}

func newPoint(r *Run, rows []*Outcome, params []float64, cost CostOf) *Point {
	p := &Point{Series: r.Series, Label: KnobText(r.Knobs), Router: r.Router, Rate: r.Summary.TokensPerS, Faults: r.Summary.Faults}
	for _, role := range r.Summary.TokensByRole {
		p.DeviceS += role.BusyS
	}
	for _, o := range rows {
		p.Right = append(p.Right, truth(o.Right))
		p.Tokens = append(p.Tokens, float64(o.Total()))
		p.Large = append(p.Large, float64(o.Large()))
		p.Cost = append(p.Cost, costOf(o, params, cost))
		p.Switches = append(p.Switches, float64(o.Switches))
	}
	return p
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// costOf is in units of 1e9 parameters.
func costOf(o *Outcome, params []float64, cost CostOf) (c float64) {
	counts := o.Steps
	switch cost {
	case CostTokens:
		counts = o.Tokens
	case CostPositions:
		counts = o.Fed
	}
	for i, n := range counts {
		c += float64(n) * params[i] / 1e9
	}
	return c
}

// view is the sums of a point over problems with weights.
type view struct {
	right, tokens, large, cost, switches float64 // per problem
}

// sums are the figures of a problem beside one another, as a resample adds them up.
type sums [5]float64

// lay puts them so.
func (p *Point) lay() {
	p.rows = make([]sums, len(p.Right))
	for i := range p.rows {
		p.rows[i] = sums{p.Right[i], p.Tokens[i], p.Large[i], p.Cost[i], p.Switches[i]}
	}
}

// look sums a point under weights of its problems, of which there are n in all.
func (p *Point) look(weights []float64, n float64) view {
	var s sums
	for i, w := range weights {
		r := &p.rows[i]
		s[0] += w * r[0]
		s[1] += w * r[1]
		s[2] += w * r[2]
		s[3] += w * r[3]
		s[4] += w * r[4]
	}
	return view{s[0] / n, s[1] / n, s[2] / n, s[3] / n, s[4] / n}
}

// share of tokens that the large model wrote.
func (v *view) share() float64 { return ratio(v.large, v.tokens) }

// ratio is a/b, NaN where there is none.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
