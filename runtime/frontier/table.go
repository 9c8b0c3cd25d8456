package frontier

import (
	"math"
	"slices"
)

// Figure is a number with its 95 % interval over resamples of the problems. NaN is
// where there is none.
type Figure struct {
	Value, Lo, Hi float64
	Undefined     int // resamples that have none, left out of the interval
}

// Table is what a set of points comes to.
type Table struct {
	Set      *Set
	Problems int
	Options  Options
	From, To float64 // range of shares that areas are of

	Rows     []Row      // as the points of the set
	Curves   []CurveRow // in the order in which series begin
	Versus   []Versus   // areas of curves against those of references
	Families []string   // in the order in which they begin; empty where there are fewer than two
}

// Options say what a table is made with.
type Options struct {
	Resamples int      // of the bootstrap; 0: no intervals
	Seed      uint64   // of the resamples
	From, To  float64  // range of shares for areas; both 0: from small only to large only
	Against   []string // series that curves are compared with; those that are not there are left out
}

// DefaultResamples is how many there are where nobody says.
const DefaultResamples = 2000

// Row is one point.
type Row struct {
	Point     *Point
	Accuracy  Figure
	Share     Figure // of tokens, by the large model
	OfLarge   Figure // accuracy over that of large only
	Recovered Figure // share of the gap between small only and large only
	Cost      Figure // per problem, in 1e9 parameters
	OfCost    Figure // cost over that of large only
	Switches  Figure // per token
	Lead      Figure // accuracy less that of the first reference at the same share
	ByFamily  []Figure

	BestShare, BestRate, BestCost bool // in the Pareto set of accuracy against that
}

// CurveRow is one curve.
type CurveRow struct {
	Series   string
	Points   []int // of the set
	Composed bool
	Low      float64 // least share of a point, and the most: outside the curve is a
	High     float64 // straight line to small only and to large only
	Area     Figure  // mean accuracy over the range of shares
	APGR     Figure  // average performance gap recovered, over the same range
	CPT      [3]Figure
}

// CPTs are the parts of the gap that a curve's CPT are for: the share of large
// tokens at which so much of it is recovered (RouteLLM's call-performance threshold,
// of tokens instead of calls).
var CPTs = [3]float64{0.5, 0.8, 0.95}

// Versus is how much more area a curve has than a reference: a difference of mean
// accuracies over the range of shares.
type Versus struct {
	Series, Reference string
	Difference        Figure
}

// NewTable measures a set.
func NewTable(s *Set, o Options) *Table {
	m := newMeter(s, o)
	weights := make([]float64, len(s.Tasks))
	for i := range weights {
		weights[i] = 1
	}
	t := m.measure(weights)
	m.mark(t)
	m.intervals(t)
	return t
}

// meter measures a set under weights of its problems.
type meter struct {
	set      *Set
	options  Options
	families []string
	member   [][]float64 // of each family, 1 where a problem is of it
	series   []string
	points   [][]int // of each series
	refs     []int   // series that curves are compared with
}

func newMeter(s *Set, o Options) *meter {
	m := &meter{set: s, options: o}
	for i, p := range s.Points {
		if p == s.Small || p == s.Large {
			continue
		}
		at := slices.Index(m.series, p.Series)
		if at < 0 {
			at = len(m.series)
			m.series, m.points = append(m.series, p.Series), append(m.points, nil)
		}
		m.points[at] = append(m.points[at], i)
	}
	for _, name := range o.Against {
		if at := slices.Index(m.series, name); at >= 0 {
			m.refs = append(m.refs, at)
		}
	}
	for _, f := range s.Families {
		if !slices.Contains(m.families, f) {
			m.families = append(m.families, f)
		}
	}
	if len(m.families) < 2 {
		m.families = nil
	}
	for _, f := range m.families {
		w := make([]float64, len(s.Families))
		for i := range w {
			if s.Families[i] == f {
				w[i] = 1
			}
		}
		m.member = append(m.member, w)
	}
	return m
}

// measure gives all figures under weights of the problems, whose sum is their number.
func (m *meter) measure(weights []float64) *Table {
	s := m.set
	t := &Table{Set: s, Problems: len(s.Tasks), Options: m.options, Families: m.families, Rows: make([]Row, len(s.Points))}
	n := float64(len(s.Tasks))
	views := make([]view, len(s.Points))
	for i, p := range s.Points {
		views[i] = p.look(weights, n)
	}
	small, large := s.Small.look(weights, n), s.Large.look(weights, n)
	ends := []XY{{small.share(), small.right}, {large.share(), large.right}}
	t.From, t.To = ends[0].X, ends[1].X
	if m.options.From != 0 || m.options.To != 0 {
		t.From, t.To = max(t.From, m.options.From), min(t.To, m.options.To)
	}
	curves := make([]Curve, len(m.series))
	for i, points := range m.points {
		curves[i] = m.curve(views, points, ends)
	}
	var lead Curve
	if len(m.refs) > 0 {
		lead = curves[m.refs[0]]
	}
	for i, p := range s.Points {
		v := &views[i]
		t.Rows[i] = Row{
			Point: p, Accuracy: exactly(v.right), Share: exactly(v.share()),
			OfLarge: exactly(ratio(v.right, large.right)), Recovered: exactly(Recovered(v.right, small.right, large.right)),
			Cost: exactly(v.cost), OfCost: exactly(ratio(v.cost, large.cost)), Switches: exactly(ratio(v.switches, v.tokens)),
			Lead: exactly(v.right - lead.At(v.share())), ByFamily: m.byFamily(p, weights),
		}
	}
	for i, c := range curves {
		t.Curves = append(t.Curves, m.summary(t, i, c, small.right, large.right))
	}
	for _, ref := range m.refs {
		for i, c := range curves {
			if i != ref {
				t.Versus = append(t.Versus, Versus{m.series[i], m.series[ref], exactly(c.Area(t.From, t.To) - curves[ref].Area(t.From, t.To))})
			}
		}
	}
	return t
}

// curve joins points of a series with what is at both ends. Points outside of these
// are left out: a curve is from small only to large only.
func (m *meter) curve(views []view, points []int, ends []XY) Curve {
	xy := slices.Clone(ends)
	for _, i := range points {
		p := XY{views[i].share(), views[i].right}
		if p.X >= ends[0].X && p.X <= ends[1].X {
			xy = append(xy, p)
		}
	}
	return NewCurve(xy...)
}

func (m *meter) summary(t *Table, series int, c Curve, small, large float64) CurveRow {
	area := c.Area(t.From, t.To)
	out := CurveRow{
		Series: m.series[series], Points: m.points[series], Low: math.Inf(1), High: math.Inf(-1), Composed: true,
		Area: exactly(area), APGR: exactly(Recovered(area, small, large)),
	}
	for _, i := range out.Points {
		x := t.Rows[i].Share.Value
		out.Low, out.High = min(out.Low, x), max(out.High, x)
		out.Composed = out.Composed && m.set.Points[i].Composed()
	}
	for k, part := range CPTs {
		x := math.NaN()
		if large > small {
			x = c.Reach(small + part*(large-small))
		}
		out.CPT[k] = exactly(x)
	}
	return out
}

func (m *meter) byFamily(p *Point, weights []float64) []Figure {
	var out []Figure
	for _, member := range m.member {
		right, n := 0.0, 0.0
		for i, w := range member {
			if w == 0 {
				continue
			}
			right += weights[i] * p.Right[i]
			n += weights[i]
		}
		out = append(out, exactly(ratio(right, n)))
	}
	return out
}

func exactly(x float64) Figure { return Figure{Value: x, Lo: math.NaN(), Hi: math.NaN()} }

// mark finds the Pareto sets. Points that were composed take part where they have
// the figure: they are routers as well, but for who knows all answers.
func (m *meter) mark(t *Table) {
	n := len(t.Rows)
	share, rate, cost := make([]XY, n), make([]XY, n), make([]XY, n)
	for i := range t.Rows {
		r := &t.Rows[i]
		y := r.Accuracy.Value
		if r.Point.Series == QueryBest {
			y = math.NaN()
		}
		share[i], rate[i], cost[i] = XY{r.Share.Value, y}, XY{r.Point.Rate, y}, XY{r.Cost.Value, y}
	}
	byShare, byRate, byCost := Pareto(share, false), Pareto(rate, true), Pareto(cost, false)
	for i := range t.Rows {
		t.Rows[i].BestShare, t.Rows[i].BestRate, t.Rows[i].BestCost = byShare[i], byRate[i], byCost[i]
	}
}

// Row gives the row of a point, nil if there is none.
func (t *Table) Row(p *Point) *Row {
	for i := range t.Rows {
		if t.Rows[i].Point == p {
			return &t.Rows[i]
		}
	}
	return nil
}
