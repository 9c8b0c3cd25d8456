package plan

import (
	"errors"
	"fmt"
	"math"
)

// ErrDeadlock says that the system can reach a state in which every request
// waits below a threshold, for ever. The error wraps it and names that state.
var ErrDeadlock = errors.New("deadlock")

// ErrTooLarge says that the chain has more states than were allowed. [CountSim]
// and [Fluid] do not mind the size.
var ErrTooLarge = errors.New("the chain is too large")

// graph is what of the chain can be reached from a start: states in the order in
// which a breadth-first search meets them, and their transitions by source.
//
// A state is the system at the instant when batches end, before anything is
// routed ("pre-completion", §4.1): states that differ only in how long the
// next completion is away are one. So some tau is 0, and the models with tau 0
// and running requests are those that end now.
type graph struct {
	*system
	states *intern
	row    []int32 // transitions of state i: row[i] up to row[i+1]
	to     []int32
	p      []float64
	wait   []float64 // state -> expected ticks to the next completion
	tokens []float64 // state -> expected tokens committed by what ends now
	ending []uint64  // state -> models whose batch ends now, one bit each
	origin []arrow   // law of the first state

	most int // bound on the states
	// Scratch of the state that is being expanded.
	q, r []int // per kind
	tau  []int // per model
	ends []bundle
	key  []uint64
	seen []int32 // state -> its last transition + 1; stale below the row's first
}

type arrow struct {
	to int32
	p  float64
}

// bundle is some requests that a law routes.
type bundle struct {
	law *law
	n   int
}

// arrowsPerState bounds the transitions along with the states.
const arrowsPerState = 32

// never is a probability that counts as 0: below it quotients overflow.
const never = 1e-290

func newGraph(y *system, most int) *graph {
	kinds, models := len(y.model), len(y.b)
	return &graph{
		system: y, most: min(most, math.MaxInt32/arrowsPerState), states: newIntern(y.words), row: []int32{0},
		q: make([]int, kinds), r: make([]int, kinds), tau: make([]int, models), key: make([]uint64, y.words),
	}
}

// place adds the states that follow once place[m] requests wait at each model m
// and nothing runs. The last placement is the start.
func (g *graph) place(place []int) error {
	g.ends = g.ends[:0]
	for m, n := range place {
		g.ends = append(g.ends, bundle{g.come[m], n})
	}
	clear(g.q)
	clear(g.r)
	clear(g.tau)
	from := len(g.to)
	g.wait = append(g.wait, 0)
	err := g.route(0, 1)
	g.wait = g.wait[:len(g.wait)-1]
	g.origin = g.origin[:0]
	for a := from; a < len(g.to); a++ {
		g.origin = append(g.origin, arrow{g.to[a], g.p[a]})
		g.seen[g.to[a]] = 0
	}
	g.to, g.p = g.to[:from], g.p[:from]
	return err
}

// walk expands every state that can be reached from those known.
func (g *graph) walk() error {
	for i := len(g.wait); i < g.states.len(); i++ {
		g.open(i)
		if err := g.route(0, 1); err != nil {
			return err
		}
		g.row = append(g.row, int32(len(g.to)))
	}
	return nil
}

// open unpacks a state, takes the ended batches off their models and bundles
// their requests by law.
func (g *graph) open(i int) {
	g.unpack(g.states.key(i))
	g.ends = g.ends[:0]
	tokens, ending := 0.0, uint64(0)
	for k, m := range g.model {
		n := g.r[k]
		if n == 0 || g.tau[m] > 0 {
			continue
		}
		g.r[k] = 0
		tokens += float64(n) * g.gain[k]
		ending |= bit(m)
		g.bundle(g.after[k], n)
	}
	g.tokens = append(g.tokens, tokens)
	g.ending = append(g.ending, ending)
	g.wait = append(g.wait, 0)
}

// bit marks a model; beyond 64 models two share one, which costs speed only.
func bit(m int) uint64 { return 1 << (m % 64) }

func (g *graph) bundle(l *law, n int) {
	for i := range g.ends {
		if g.ends[i].law == l {
			g.ends[i].n += n
			return
		}
	}
	g.ends = append(g.ends, bundle{l, n})
}

// route goes through all ways in which the bundles from i on can fall.
func (g *graph) route(i int, p float64) error {
	if p < never {
		return nil
	}
	if i == len(g.ends) {
		return g.dispatch(0, p)
	}
	l := g.ends[i].law
	s := l.split(g.ends[i].n, g.most)
	if s == nil {
		return g.tooLarge()
	}
	d := len(l.to)
	for w, pw := range s.p {
		count := s.count[w*d : (w+1)*d]
		for k, n := range count {
			g.q[l.to[k]] += int(n)
		}
		if err := g.route(i+1, p*pw); err != nil {
			return err
		}
		for k, n := range count {
			g.q[l.to[k]] -= int(n)
		}
	}
	return nil
}

// dispatch starts a batch at every idle model from m on that has its threshold.
func (g *graph) dispatch(m int, p float64) error {
	for ; m < len(g.b); m++ {
		if g.tau[m] > 0 {
			continue
		}
		a, z := g.first[m], g.first[m+1]
		waiting := 0
		for k := a; k < z; k++ {
			waiting += g.q[k]
		}
		if waiting < g.b[m] {
			continue
		}
		rows := min(waiting, g.cap[m])
		g.tau[m] = g.t[m][rows]
		err := g.choose(m, a, rows, waiting, p)
		g.tau[m] = 0
		return err
	}
	return g.land(p)
}

// choose fills a batch of model m with rows of the requests that wait there, of
// the kinds from k on. If not all fit, every subset is as likely as another.
func (g *graph) choose(m, k, rows, waiting int, p float64) error {
	if k == g.first[m+1] {
		return g.dispatch(m+1, p)
	}
	have := g.q[k]
	rest := waiting - have
	for n := max(0, rows-rest); n <= min(have, rows); n++ {
		w := p
		if rows < waiting {
			// The chance that n of the rows are of this kind (hypergeometric).
			w *= math.Exp(logChoose(have, n) + logChoose(rest, rows-n) - logChoose(waiting, rows))
		}
		g.q[k], g.r[k] = have-n, n
		err := g.choose(m, k+1, rows-n, rest, w)
		g.q[k], g.r[k] = have, 0
		if err != nil {
			return err
		}
	}
	return nil
}

func logChoose(n, k int) float64 {
	return logFact(n) - logFact(k) - logFact(n-k)
}

func logFact(n int) float64 {
	v, _ := math.Lgamma(float64(n + 1))
	return v
}

// land lets time go on to the next completion and adds the transition.
func (g *graph) land(p float64) error {
	delta := 0
	for _, t := range g.tau {
		if t > 0 && (delta == 0 || t < delta) {
			delta = t
		}
	}
	if delta == 0 {
		return g.deadlock()
	}
	g.wait[len(g.wait)-1] += p * float64(delta)
	g.pack(delta)
	to := g.states.id(g.key)
	if to == len(g.seen) {
		if to >= g.most {
			return g.tooLarge()
		}
		g.seen = append(g.seen, 0)
	}
	if at := g.seen[to]; at > g.row[len(g.row)-1] {
		g.p[at-1] += p
		return nil
	}
	if len(g.to) >= arrowsPerState*g.most {
		return g.tooLarge()
	}
	g.to, g.p = append(g.to, int32(to)), append(g.p, p)
	g.seen[to] = int32(len(g.to))
	return nil
}

// pack writes the scratch state into key, delta ticks on.
func (g *graph) pack(delta int) {
	clear(g.key)
	kinds := len(g.q)
	for i := range g.q {
		f := &g.fields[i]
		g.key[f.word] |= uint64(g.q[i]) << f.shift
		f = &g.fields[kinds+i]
		g.key[f.word] |= uint64(g.r[i]) << f.shift
	}
	for m, t := range g.tau {
		f := &g.fields[2*kinds+m]
		g.key[f.word] |= uint64(max(0, t-delta)) << f.shift
	}
}

func (g *graph) unpack(key []uint64) {
	kinds := len(g.q)
	for i := range g.q {
		f := &g.fields[i]
		g.q[i] = int(key[f.word] >> f.shift & f.mask)
		f = &g.fields[kinds+i]
		g.r[i] = int(key[f.word] >> f.shift & f.mask)
	}
	for m := range g.tau {
		f := &g.fields[2*kinds+m]
		g.tau[m] = int(key[f.word] >> f.shift & f.mask)
	}
}

func (g *graph) deadlock() error {
	q := make([]int, len(g.b))
	for k, m := range g.model {
		q[m] += g.q[k]
	}
	return stuck(q, g.b)
}

func (g *graph) tooLarge() error {
	return fmt.Errorf("%w: more than %d states, or %d transitions for each; simulate, or take a larger quantum", ErrTooLarge, g.most, arrowsPerState)
}
