package frontier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Series of query-level routers that are composed. A router of whole requests gives
// each one to the small or to the large model, and both have answered all of them:
// accuracy, tokens and cost at any threshold are sums of what is known, and nothing
// has to be run. Tokens/s are not: requests share batches.
const (
	QueryMix    = "query mix"    // a coin decides
	QueryLength = "query length" // the longest questions go to the large model
	QueryProbe  = "query probe"  // those whose first candidates have the most entropy
	QueryHead   = "query head"   // those that a head scores highest at the first candidate
	QueryBest   = "query best"   // those that it alone gets right, the shortest first: who knows all answers
)

// levels is how many thresholds a composed curve has besides its ends.
const levels = 16

// compose adds the curves of query-level routers. scored may be nil.
func (s *Set) compose(small, large, scored []*Outcome, params []float64) {
	n := len(s.Tasks)
	for k := 1; k < levels; k++ {
		p := float64(k) / levels
		toLarge := make([]float64, n)
		for i := range toLarge {
			toLarge[i] = p
		}
		s.mix(QueryMix, fmt.Sprintf("p=%.4g", p), toLarge, nil)
	}
	s.ranked(QueryLength, "tokens", func(i int) float64 { return float64(small[i].Prompt) }, nil)
	probe := make([]float64, n) // what it costs: the small model has begun
	for i, o := range small {
		probe[i] = float64(max(min(o.Steps[0], ProbeTokens)-large[i].Steps[0], 0)) * params[0] / 1e9
		if s.Cost == CostTokens {
			probe[i] = 0
		}
	}
	s.ranked(QueryProbe, "nats", func(i int) float64 { return small[i].Entropy }, probe)
	if scored != nil {
		s.ranked(QueryHead, "score", func(i int) float64 { return scored[i].Score }, nil)
	}
	s.best(small, large)
}

// headRouter is the shipped router that asks a head of questions once.
const headRouter = "query_head"

// scoredRun gives outcomes of a run of it in which the head was asked for every
// problem; nil if there is none.
func scoredRun(runs []Run, tables []map[string]*Outcome, tasks []string) []*Outcome {
	for r, t := range tables {
		if !strings.HasPrefix(runs[r].Series, headRouter) {
			continue
		}
		rows := make([]*Outcome, len(tasks))
		all := true
		for i, task := range tasks {
			rows[i] = t[task]
			all = all && rows[i].Scored
		}
		if all {
			return rows
		}
	}
	return nil
}

// mix adds a point that sends problem i to the large model with the chance
// toLarge[i]; those it sends cost extra besides.
func (s *Set) mix(series, label string, toLarge, extra []float64) {
	n := len(toLarge)
	p := &Point{
		Series: series, Label: label, Rate: math.NaN(), DeviceS: math.NaN(),
		Right: make([]float64, n), Tokens: make([]float64, n), Large: make([]float64, n), Cost: make([]float64, n), Switches: make([]float64, n),
	}
	for i, c := range toLarge {
		lerp := func(small, large []float64) float64 { return (1-c)*small[i] + c*large[i] }
		p.Right[i] = lerp(s.Small.Right, s.Large.Right)
		p.Tokens[i] = lerp(s.Small.Tokens, s.Large.Tokens)
		p.Large[i] = lerp(s.Small.Large, s.Large.Large)
		p.Cost[i] = lerp(s.Small.Cost, s.Large.Cost)
		p.Switches[i] = lerp(s.Small.Switches, s.Large.Switches)
		if extra != nil {
			p.Cost[i] += c * extra[i]
		}
	}
	s.Points = append(s.Points, p)
}

// ranked adds the points of a router with a threshold: problems of a score of at
// least the threshold go to the large model.
func (s *Set) ranked(series, unit string, score func(int) float64, extra []float64) {
	order := make([]int, len(s.Tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	last := 0
	for k := 1; k < levels; k++ {
		cut := k * len(order) / levels
		for cut < len(order) && cut > 0 && score(order[cut]) == score(order[cut-1]) {
			cut++ // a threshold does not tell them apart
		}
		if cut <= last || cut >= len(order) {
			continue
		}
		last = cut
		toLarge := make([]float64, len(order))
		for _, i := range order[:cut] {
			toLarge[i] = 1
		}
		s.mix(series, fmt.Sprintf("%s>=%.4g", unit, score(order[cut-1])), toLarge, extra)
	}
}

// best adds the points of who knows both answers: first the problems that only the
// large model gets right, then those where it makes no difference, those with the
// fewest tokens first.
func (s *Set) best(small, large []*Outcome) {
	gain := func(i int) int { return int(truth(large[i].Right) - truth(small[i].Right)) }
	order := make([]int, len(s.Tasks))
	gains := 0
	for i := range order {
		order[i] = i
		if gain(i) > 0 {
			gains++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(gain(b), gain(a)), cmp.Compare(large[a].Total(), large[b].Total()))
	})
	var cuts []int
	for k := 1; k <= levels; k++ {
		cuts = append(cuts, k*gains/levels)
	}
	for k := 1; k < levels; k++ {
		cuts = append(cuts, gains+k*(len(order)-gains)/levels)
	}
	last := 0
	for _, cut := range cuts {
		if cut <= last || cut >= len(order) {
			continue
		}
		last = cut
		toLarge := make([]float64, len(order))
		for _, i := range order[:cut] {
			toLarge[i] = 1
		}
		s.mix(QueryBest, fmt.Sprintf("problems=%d", cut), toLarge, nil)
	}
}
