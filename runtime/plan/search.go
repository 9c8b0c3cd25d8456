package plan

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Figures of a search, chosen so that an answer for two models takes well below
// a second.
const (
	manyRequests = 256    // above, the fluid limit searches
	searchStates = 4000   // of a chain that is solved for every vector (some 5 ms)
	reportStates = 10_000 // of a chain that is solved for a figure that is reported
	searchEvents = 20_000 // per vector
	reportEvents = 60_000
	finalists    = 4    // that are measured for a report
	refineEvents = 3000 // per vector that the fluid limit proposes
	followTokens = 50_000
)

// allVectors is up to how many vectors a method looks at all of them.
var allVectors = map[Method]int{ByChain: 40, ByCountSim: 64, ByFluid: 512}

// search looks for the best vector of thresholds of one spec.
type search struct {
	Options
	spec   Spec // B is nil
	n      int
	method Method
	stage  *stage
	seen   map[string]int // packed B -> its index in points
	points []Point
	told   map[string]Result  // reports, by packed B
	large  [][]int            // B whose chain was too large for a report
	tokens int                // to follow for a P99
	p99s   map[string]float64 // by packed B
	least  []int              // B of the least of them
}

func newSearch(s *Spec, o Options) (*search, error) {
	q := &search{Options: o, spec: *s, n: s.N, tokens: followTokens}
	q.forget()
	q.spec.B = nil
	if err := q.spec.Check(); err != nil {
		return nil, err
	}
	q.Events = cmp.Or(o.Events, searchEvents)
	switch {
	case q.Events < leastEvents:
		return nil, fmt.Errorf("%d events are too few for an error; give at least %d", q.Events, leastEvents)
	case o.Near != nil && len(o.Near) != len(s.P):
		return nil, fmt.Errorf("the vector %v to look around has %d thresholds for %d models; give one per model", o.Near, len(o.Near), len(s.P))
	case !(o.MaxP99 >= 0):
		return nil, fmt.Errorf("the bound on P99 is %v ms; give more than 0, or 0 for none", o.MaxP99)
	}
	if net := s.net(); !(net > 0) {
		return nil, fmt.Errorf("a decode step commits %.3g tokens in the long run, so no thresholds are better than others; look at K", net)
	}
	var err error
	if q.stage, err = newStage(&q.spec, o.Seed); err != nil {
		return nil, err
	}
	q.method = cmp.Or(o.Method, Auto)
	switch q.method {
	case Auto, ByChain, ByCountSim, ByFluid:
		return q, nil
	}
	return nil, fmt.Errorf("method %q is unknown; methods are %s, %s, %s and %s", o.Method, Auto, ByChain, ByCountSim, ByFluid)
}

// forget drops what was seen.
func (q *search) forget() {
	q.points, q.seen = nil, map[string]int{}
	q.told = map[string]Result{}
	q.p99s, q.least = map[string]float64{}, nil
}

// screen looks at all vectors or, if they are many, at those on the way to the
// best. It settles what Auto means.
func (q *search) screen() error {
	if q.method != Auto {
		return q.look(q.vectors(allVectors[q.method]))
	}
	if q.n > manyRequests {
		q.method = ByFluid
		return q.screen()
	}
	q.method = ByChain
	if all := q.vectors(allVectors[ByChain]); all != nil {
		err := q.look(all)
		if !errors.Is(err, ErrTooLarge) {
			return err
		}
		q.forget()
	}
	q.method = ByCountSim
	return q.screen()
}

func (q *search) look(vectors [][]int) error {
	if vectors == nil || q.Near != nil {
		return q.climb()
	}
	return q.each(vectors)
}

// each looks at all of the vectors.
func (q *search) each(vectors [][]int) error {
	for _, b := range vectors {
		if _, err := q.value(b); err != nil {
			return err
		}
	}
	return nil
}

// value is the point of b, from what was seen if it is there.
func (q *search) value(b []int) (Point, error) {
	if i, ok := q.seen[pack(b)]; ok {
		return q.points[i], nil
	}
	p := Point{B: slices.Clone(b)}
	var res Result
	var err error
	switch q.method {
	case ByChain:
		most := maxStates
		if q.Method != ByChain {
			most = searchStates
		}
		res, err = ChainWithin(q.with(b), most)
		p.Throughput = res.Throughput
	case ByFluid:
		res, err = q.stage.fluid(q.spec.Step, q.n, b)
		p.Throughput = res.Throughput
	default:
		p.Throughput, p.Error, err = q.stage.throughput(q.n, b, q.Events)
	}
	if errors.Is(err, ErrTooLarge) && q.exact() <= searchStates {
		q.large = append(q.large, slices.Clone(b))
	}
	if err != nil {
		return Point{}, err
	}
	q.seen[pack(b)] = len(q.points)
	q.points = append(q.points, p)
	return p, nil
}

// with is the spec under thresholds b.
func (q *search) with(b []int) *Spec {
	s := q.spec
	s.N, s.B = q.n, b
	return &s
}

// beats says that x is better than y, or as good and smaller.
func beats(x, y Point) bool {
	const same = 1e-9
	if d := x.Throughput - y.Throughput; math.Abs(d) > same*y.Throughput {
		return d > 0
	}
	sum := 0
	for m := range x.B {
		sum += x.B[m] - y.B[m]
	}
	return cmp.Or(sum, slices.Compare(x.B, y.B)) < 0
}

// order puts the better of two points first.
func order(x, y Point) int {
	switch {
	case beats(x, y):
		return -1
	case beats(y, x):
		return 1
	}
	return 0
}

// blur is the relative difference up to which the screen cannot tell two points
// apart. Points of the count simulator share their luck, so this is wide; the
// error of the fluid limit is much the same for neighbours.
func (q *search) blur(x, y Point) float64 {
	switch q.method {
	case ByChain:
		return 0
	case ByFluid:
		return 0.01
	}
	return 3 * math.Hypot(x.Error, y.Error) / x.Throughput
}

// best is the best point seen.
func (q *search) best() Point {
	best := q.points[0]
	for _, p := range q.points {
		if beats(p, best) {
			best = p
		}
	}
	return best
}

// report is the result of b as an answer gives it.
func (q *search) report(b []int) (Result, error) {
	if r, ok := q.told[pack(b)]; ok {
		return r, nil
	}
	r, err := q.solve(b)
	if err == nil {
		q.told[pack(b)] = r
	}
	return r, err
}

func (q *search) solve(b []int) (Result, error) {
	s := q.with(b)
	switch q.Method {
	case ByChain:
		return Chain(s)
	case ByCountSim, ByFluid:
	default:
		if slices.ContainsFunc(q.large, func(l []int) bool { return below(b, l) }) {
			break
		}
		r, err := ChainWithin(s, q.exact())
		if !errors.Is(err, ErrTooLarge) {
			return r, err
		}
		q.large = append(q.large, slices.Clone(b))
	}
	// The error falls with N as it does with the events.
	return q.stage.measure(q.n, b, max(searchEvents, q.longest()*16/max(16, q.n)))
}

// exact bounds the states of a chain that is solved for a report, and longest the
// events that it is simulated for.
func (q *search) exact() int {
	if q.Near != nil {
		return searchStates
	}
	return reportStates
}

func (q *search) longest() int {
	if q.Near != nil {
		return searchEvents
	}
	return reportEvents
}

// below says that no threshold of b is above that of l, as a rule the chain is
// larger then: more can happen at once.
func below(b, l []int) bool {
	for m := range b {
		if b[m] > l[m] {
			return false
		}
	}
	return true
}

// ranked is what was seen, the best first.
func (q *search) ranked() []Point {
	out := slices.Clone(q.points)
	slices.SortFunc(out, order)
	return out
}

// keeps says whether p keeps the bound on P99.
func (q *search) keeps(p Point) (bool, error) {
	if q.MaxP99 == 0 {
		return true, nil
	}
	v, err := q.p99(p.B)
	return v <= q.MaxP99, err
}

// p99 follows a run under b.
func (q *search) p99(b []int) (float64, error) {
	if v, ok := q.p99s[pack(b)]; ok {
		return v, nil
	}
	res, err := q.stage.follow(q.n, b, max(q.tokens, 20*q.n))
	if err != nil {
		return 0, err
	}
	if q.least == nil || res.P99 < q.p99s[pack(q.least)] {
		q.least = slices.Clone(b)
	}
	q.p99s[pack(b)] = res.P99
	return res.P99, nil
}

func pack(b []int) string {
	var key []byte
	for _, x := range b {
		key = binary.AppendUvarint(key, uint64(x))
	}
	return string(key)
}
