package plan

import (
	"errors"
	"fmt"
	"slices"
)

// Method is how thresholds are searched.
type Method string

// Auto takes the chain where it is small, the fluid limit above 256 requests,
// else the count simulator.
const (
	Auto       Method = "auto" // also ""
	ByChain    Method = "chain"
	ByCountSim Method = "countsim"
	ByFluid    Method = "fluid"
)

// Options say what to search for and how.
type Options struct {
	Method Method
	MaxP99 float64 // ms: bound on the 99th percentile of the time between two tokens of a request; 0 is none
	FreeB0 bool    // search the threshold of model 0 too; else it is 1
	Seed   uint64  // of the simulators
	Events int     // of the count simulator per vector; 0 is 20,000, for a table 1,500

	Near    []int // a vector known to be good, as a row of a [Table] is: [Best] looks around it alone, for a fifth of the time or so
	NoTails bool  // leave out the P99 of an answer that no bound asks for

	Names    []string // of the models, for warnings; else "model 0" and so on
	Measured bool     // step times are those of a real system, where a ratio near a whole number means nothing
}

// Point is a vector that the search looked at.
type Point struct {
	B          []int
	Throughput float64 // tokens per second
	Error      float64 // standard error, 0 for the chain and the fluid limit
}

// Answer is B* of one spec. Results are exact where the chain is small, else
// from the count simulator, whatever the method of the search; their P99 is from
// [Follow].
type Answer struct {
	B      []int // B*
	Result       // of B*

	Eager    Result // B = (1, ..., 1)
	Lockstep Result // B = (N, 1, ..., 1), or the cap where that is less: all wait for the slowest (TokenRouter paper, throughput model)

	Low, High float64 // tokens/s of B* while the step time of one model but the first is up to 2 % off
	Flips     bool    // within that band another vector beats B* by more than 0.1 % and more than noise; not asked under a bound on P99
	Regret    float64 // what B* then loses at most, relative

	Method   Method // of the search
	Warnings []string
	Curve    []Point // what the search looked at, ascending by B
}

// Gain is how much more throughput B* has than eager, relative.
func (a *Answer) Gain() float64 { return a.Throughput/a.Eager.Throughput - 1 }

// GainOverLockstep is how much more throughput B* has than lock-step, relative.
func (a *Answer) GainOverLockstep() float64 { return a.Throughput/a.Lockstep.Throughput - 1 }

// ErrBound says that no thresholds keep Options.MaxP99.
var ErrBound = errors.New("the bound cannot be kept")

// Best searches B*, the feasible thresholds of the highest throughput, or of the
// highest among those that keep MaxP99. It ignores s.B. No threshold exceeds its
// model's batch cap. At equal throughput the smaller vector wins: that of the
// smaller sum, then of the smaller first entry that differs.
//
// Where vectors are few all are looked at (40 by the chain, 64 by the count
// simulator, 512 by the fluid limit), else a coarse grid, and the neighbours of
// the best in steps that get smaller. What the search cannot tell apart is
// measured again; so is what the fluid limit finds, and from there the count
// simulator climbs on. No answer is worse than eager, unless for a bound.
func Best(s *Spec, o Options) (Answer, error) {
	q, err := newSearch(s, o)
	if err != nil {
		return Answer{}, err
	}
	if err := q.screen(); err != nil {
		return Answer{}, err
	}
	closer := q // what tells good vectors apart
	if q.method == ByFluid && q.MaxP99 == 0 {
		if closer, err = q.refine(); err != nil {
			return Answer{}, err
		}
	}
	a := Answer{Method: q.method}
	if a.B, a.Result, err = q.final(closer); err != nil {
		return Answer{}, err
	}
	if _, err := q.value(a.B); err != nil {
		return Answer{}, err
	}
	a.Curve = slices.Clone(q.points)
	slices.SortFunc(a.Curve, func(x, y Point) int { return slices.Compare(x.B, y.B) })
	eager, lock := ones(len(s.P)), ones(len(s.P))
	lock[0] = s.most(0)
	if a.Eager, err = q.report(eager); err != nil {
		return Answer{}, err
	}
	if a.Lockstep, err = q.report(lock); err != nil {
		return Answer{}, err
	}
	if err := q.tails(&a, eager, lock); err != nil {
		return Answer{}, err
	}
	if err := closer.band(&a); err != nil {
		return Answer{}, err
	}
	return a, q.warn(&a)
}

// final measures what the screen cannot tell from the best, as far as it keeps
// the bound, and gives the best of it.
func (q *search) final(seen *search) (b []int, best Result, err error) {
	var lead Point
	tried := 0
	for _, p := range seen.ranked() {
		if tried == finalists || (tried > 0 && p.Throughput < lead.Throughput*(1-seen.blur(lead, p))) {
			break
		}
		if ok, err := q.keeps(p); err != nil {
			return nil, best, err
		} else if !ok {
			continue
		}
		r, err := q.report(p.B)
		if err != nil {
			return nil, best, err
		}
		if tried == 0 {
			lead = p
		}
		tried++
		if b == nil || beats(Point{B: p.B, Throughput: r.Throughput}, Point{B: b, Throughput: best.Throughput}) {
			b, best = p.B, r
		}
	}
	if eager := ones(len(q.spec.P)); q.MaxP99 == 0 { // it is in the answer, so no answer shall be worse
		r, err := q.report(eager)
		if err != nil {
			return nil, best, err
		}
		if beats(Point{B: eager, Throughput: r.Throughput}, Point{B: b, Throughput: best.Throughput}) {
			b, best = eager, r
		}
	}
	if b == nil {
		return nil, best, fmt.Errorf("%w: of all thresholds looked at B = %v has the least 99th percentile between two tokens, %.1f ms, above %.1f ms; raise the bound or lower N", ErrBound, q.least, q.p99s[pack(q.least)], q.MaxP99)
	}
	return b, best, nil
}

// refine looks at what the fluid limit likes, and at vectors all over, with the
// count simulator and climbs from the best: the limit is off by more than good
// vectors differ.
func (q *search) refine() (*search, error) {
	v := q.brief(refineEvents)
	for _, p := range q.distinct(finalists, 1.2) {
		if _, err := v.value(p.B); err != nil {
			return nil, err
		}
	}
	if err := v.survey(); err != nil {
		return nil, err
	}
	for _, p := range v.distinct(2, 1.2) {
		if _, err := v.ascend(p, q.n/32); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// tails fills in P99. Where there was a bound the figure is the one it was held
// against.
func (q *search) tails(a *Answer, eager, lock []int) (err error) {
	if q.NoTails && q.MaxP99 == 0 {
		return nil
	}
	if a.P99, err = q.p99(a.B); err != nil {
		return err
	}
	if a.Eager.P99, err = q.p99(eager); err != nil {
		return err
	}
	a.Lockstep.P99, err = q.p99(lock)
	return err
}

func ones(m int) []int {
	b := make([]int, m)
	for i := range b {
		b[i] = 1
	}
	return b
}
