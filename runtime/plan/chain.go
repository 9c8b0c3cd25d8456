package plan

import (
	"errors"
	"iter"
)

// maxStates bounds what Chain takes on: about 1 GB at worst.
const maxStates = 1 << 20

// Chain solves the system exactly, as a Markov chain over how many requests wait
// and run where and how long each batch has left (TokenRouter paper, throughput
// model; §1.2). All batches that end at one instant are routed before any
// starts, and requests that stay count towards B like those that come. The start
// is all N requests waiting at model 0.
//
// A figure is what is expected per step of the chain over the time expected per
// step, in its stationary vector (renewal-reward; §2.1). That does not ask for
// an aperiodic chain: p = 1 and deterministic routing are solved as they stand.
// Where a run can end in one of several recurrent classes, figures are the mean
// over runs; where nothing is left to chance, Classes counts also those that
// other placements of the requests lead to, and the figures are of the start.
//
// Errors: what [Spec.Check] refuses, [ErrDeadlock] when a state is reached in
// which nothing can run, [ErrTooLarge] above a million states, step times that
// the quantum rounds to 0, and a chain so near to falling apart that its vector
// cannot be had to six digits.
func Chain(s *Spec) (Result, error) {
	return ChainWithin(s, maxStates)
}

// ChainWithin is [Chain] that gives up with [ErrTooLarge] as soon as it has met
// more than most states, or 32 transitions for each of that many.
func ChainWithin(s *Spec, most int) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	y, err := newSystem(s)
	if err != nil {
		return Result{}, err
	}
	g := newGraph(y, most)
	place := make([]int, len(s.P))
	place[0] = s.N
	if err := g.place(place); err != nil {
		return Result{}, err
	}
	if err := g.walk(); err != nil {
		return Result{}, err
	}
	res, err := g.result()
	if err == nil && y.deterministic() {
		res.Classes = max(res.Classes, y.circles(most))
	}
	return res, err
}

// deterministic says that nothing is left to chance.
func (y *system) deterministic() bool {
	for _, laws := range [][]*law{y.after, y.come} {
		for _, l := range laws {
			if len(l.to) > 1 {
				return false
			}
		}
	}
	return true
}

// circles counts the classes that a deterministic system enters from the
// placements of its waiting requests: it runs in a circle for ever, and in which
// one is settled by the start (p = 1, step times 1 and 3, N = 2: the two requests
// together or in turns, §4.2). Placements that stop are left out, and so is
// what goes beyond most states.
func (y *system) circles(most int) int {
	if ways(y.n, len(y.b)) > float64(most) {
		return 0
	}
	g := newGraph(y, most)
	count := 0
	for place := range placements(y.n, len(y.b)) {
		known := g.states.len()
		err := g.place(place)
		if err == nil && g.states.len() > known {
			if err = g.walk(); err != nil {
				g.row = append(g.row, int32(len(g.to))) // the state that leads nowhere
			} else if int(g.to[len(g.to)-1]) >= known {
				count++
			}
		}
		if errors.Is(err, ErrTooLarge) {
			break
		}
	}
	return count
}

// placements are the ways to put n alike requests on m models. The slice is
// reused.
func placements(n, m int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		place := make([]int, m)
		var put func(i, left int) bool
		put = func(i, left int) bool {
			if i == m-1 {
				place[i] = left
				return yield(place)
			}
			for k := left; k >= 0; k-- {
				place[i] = k
				if !put(i+1, left-k) {
					return false
				}
			}
			return true
		}
		put(0, n)
	}
}

// result solves the graph class by class and takes the mean over runs.
func (g *graph) result() (Result, error) {
	t := g.newTarjan()
	all := g.classes(t)
	m := len(g.b)
	res := Result{States: len(g.row) - 1, Steps: make([]float64, m), Busy: make([]float64, m), MeanBatch: make([]float64, m)}
	weight := g.absorb(all)
	batches := make([]float64, m)
	perSecond := 1000 / g.tick
	for i, c := range all {
		if !c.recurrent {
			continue
		}
		res.Classes++
		r, err := g.solve(c.states, t)
		if err != nil {
			return Result{}, err
		}
		w := weight[i]
		res.Throughput += w * r.tokens * perSecond
		for m := range g.b {
			res.Steps[m] += w * r.rows[m] * perSecond
			res.Busy[m] += w * r.busy[m]
			batches[m] += w * r.batches[m] * perSecond
		}
	}
	for m, b := range batches {
		if b > 0 {
			res.MeanBatch[m] = res.Steps[m] / b
		}
	}
	return res, nil
}
