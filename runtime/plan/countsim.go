package plan

import (
	"fmt"
	"math"

	"tokenrouter/runtime/rng"
)

// CountSim follows counts of requests over that many completion instants, after a
// tenth as many to warm up: one binomial draw per batch and destination, whatever
// N. The law is that of [Chain] (TokenRouter paper, throughput model). Of more
// requests than a batch takes, every choice is as likely as another.
//
// The same arguments give the same result. Throughput is tokens over time
// (renewal-reward) with the luck of the draws taken out as far as it is known (see
// sample); Error is its standard error by batch means.
//
// Errors: a spec that [Spec.Check] refuses, [ErrDeadlock] when the run comes to
// a stand. Of several recurrent classes the run shows the one it falls into.
func CountSim(s *Spec, events int, seed uint64) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	if events < leastEvents {
		return Result{}, fmt.Errorf("%d events are too few for an error; give at least %d", events, leastEvents)
	}
	g, err := newStage(s, seed)
	if err != nil {
		return Result{}, err
	}
	return g.measure(s.N, s.vector(), events)
}

// vector is B, all 1 where it is not given.
func (s *Spec) vector() []int {
	b := make([]int, len(s.P))
	for m := range b {
		b[m] = s.threshold(m)
	}
	return b
}

// leastEvents keeps batch means from being means of next to nothing.
const leastEvents = 200

// measure runs n requests under thresholds b.
func (g *stage) measure(n int, b []int, events int) (Result, error) {
	x := g.open(n, b)
	p := sample{models: len(b)}
	if err := p.take(x, events); err != nil {
		return Result{}, err
	}
	return p.result(g.tick), nil
}

// throughput is measure for a search: tokens per second and the error alone.
func (g *stage) throughput(n int, b []int, events int) (tokensPerS, se float64, err error) {
	x := g.open(n, b)
	var p sample
	if err := p.take(x, events); err != nil {
		return 0, 0, err
	}
	tokensPerS, se = p.rate(colTokens)
	return tokensPerS * 1000 / g.tick, se * 1000 / g.tick, nil
}

// stage is what the runs of one spec share, whatever their N and thresholds.
type stage struct {
	*kinds
	t      [][]int // ticks, by model and rows
	tick   float64 // ms
	cap    []int
	seed   uint64
	ways   [][]way  // by kind, and behind the kinds by model for those who come
	stream []stream // by model
}

// way is a branch as a run over counts takes it.
type way struct {
	branch
	model  int
	coin   binomial
	drawn  bool    // else all who are left take it
	drifts bool    // what is sent here is luck that can be told apart
	spread float64 // p (1-p)
}

// stream hands out the uniform numbers of one model by their count, so that the
// k-th draw at a model is the same whatever the thresholds: systems that are
// compared share their luck (common random numbers).
type stream struct {
	key  rng.Key
	kept []float64
}

// keptDraws bounds what a stream remembers; it covers the runs of a search.
const keptDraws = 1 << 16

func (s *stream) at(k int) float64 {
	if k < len(s.kept) {
		return s.kept[k]
	}
	return s.draw(k)
}

func (s *stream) draw(k int) float64 {
	u := s.key.Float64(k)
	if k == len(s.kept) && k < keptDraws {
		s.kept = append(s.kept, u)
	}
	return u
}

// newStage prepares runs of at most s.N requests.
func newStage(s *Spec, seed uint64) (*stage, error) {
	t, tick, err := s.ticks()
	if err != nil {
		return nil, err
	}
	g := &stage{kinds: kindsOf(s), t: t, tick: tick, seed: seed}
	for m := range s.P {
		g.cap = append(g.cap, s.most(m))
		g.stream = append(g.stream, stream{key: rng.Key{Seed: seed, Model: m, Purpose: rng.Workload}})
	}
	for _, branches := range [][][]branch{g.next, g.enter} {
		for _, next := range branches {
			ways := make([]way, len(next))
			for i, b := range next {
				m := g.model[b.kind]
				ways[i] = way{branch: b, model: m, coin: binomial{p: b.given}, drawn: b.given < 1, drifts: m > 0 && b.p < 1, spread: b.p * (1 - b.p)}
			}
			g.ways = append(g.ways, ways)
		}
	}
	return g, nil
}

// run is one run over counts.
type run struct {
	*stage
	at         []server // by model
	wait, runs []int    // by kind
	clock      int      // ticks
	tokens     float64
}

// server is one model in a run over counts.
type server struct {
	station
	first, last int   // of its kinds
	ticks       []int // by rows
	stream      *stream
	drift       drift
}

// station is one model in a run.
type station struct {
	b, cap               int
	waiting, rows        int // rows 0: idle
	left, length         int // ticks of the batch that runs
	draws                int
	steps, batches, busy int // of batches that ended
}

// begin starts a batch.
func (a *station) begin(rows, ticks int) { a.rows, a.left, a.length = rows, ticks, ticks }

// end books the batch that is over.
func (a *station) end() {
	a.steps += a.rows
	a.batches++
	a.busy += a.length
	a.rows = 0
}

// read fills the columns of a model.
func (a *station) read(row []float64) {
	row[0], row[1], row[2] = float64(a.steps), float64(a.batches), float64(a.busy)
}

// drift sums by how much more requests than expected were sent to a model, plain
// and by what they met there. Each sum has mean 0 whatever the system does, so
// what the throughput owes to it is luck.
type drift struct {
	plain   float64
	left    float64 // times the ticks until the model is free
	waiting float64 // times the requests that wait there
	square  float64 // the square, less its mean
}

// open starts a run of n requests, all waiting at model 0.
func (g *stage) open(n int, b []int) *run {
	x := &run{stage: g, at: make([]server, len(b)), wait: make([]int, len(g.model)), runs: make([]int, len(g.model))}
	for m := range x.at {
		a := &x.at[m]
		a.b, a.cap = b[m], min(n, g.cap[m])
		a.first, a.last = g.first[m], g.first[m+1]-1
		a.ticks, a.stream = g.t[m], &g.stream[m]
	}
	x.pour(&x.at[0], n, g.ways[len(g.model)])
	for m := range x.at {
		x.dispatch(&x.at[m])
	}
	return x
}

// pour lets r requests fall on the ways, drawn with the numbers of model m, and
// queues them there.
func (x *run) pour(a *server, r int, ways []way) {
	rest, last, met := r, -1, 0
	for i := range ways {
		w := &ways[i]
		n := rest
		if w.drawn && rest > 0 {
			n = w.coin.draw(rest, a.stream.at(a.draws))
			a.draws++
		}
		rest -= n
		to := &x.at[w.model]
		if w.model != last {
			last, met = w.model, to.waiting // before any of these came: a mean of 0 needs that
		}
		if w.drifts {
			more := float64(n) - w.p*float64(r)
			d := &to.drift
			d.plain += more
			d.waiting += more * float64(met)
			d.left += more * float64(to.left)
			d.square += more*more - w.spread*float64(r)
		}
		x.wait[w.kind] += n
		to.waiting += n
		x.tokens += float64(n) * w.commit
	}
}

// step goes on to the next instant at which batches end, routes their requests
// and then starts what can start.
func (x *run) step() error {
	d := math.MaxInt
	for m := range x.at {
		if a := &x.at[m]; a.rows > 0 && a.left < d {
			d = a.left
		}
	}
	if d == math.MaxInt {
		return x.deadlock()
	}
	x.clock += d
	for m := range x.at {
		if a := &x.at[m]; a.rows > 0 {
			if a.left -= d; a.left == 0 {
				x.complete(a)
			}
		}
	}
	for m := range x.at {
		if a := &x.at[m]; a.rows == 0 && a.waiting >= a.b {
			x.dispatch(a)
		}
	}
	return nil
}

func (x *run) complete(a *server) {
	a.end()
	for k := a.first; k <= a.last; k++ {
		if r := x.runs[k]; r > 0 {
			x.runs[k] = 0
			x.pour(a, r, x.ways[k])
		}
	}
}

// dispatch starts a batch at an idle model if its threshold is reached.
func (x *run) dispatch(a *server) {
	if a.waiting < a.b {
		return
	}
	rows := min(a.waiting, a.cap)
	if k := a.first; k == a.last {
		x.runs[k], x.wait[k] = rows, a.waiting-rows
	} else {
		x.choose(a, rows)
	}
	a.waiting -= rows
	a.begin(rows, a.ticks[rows])
}

// choose moves rows of those waiting at a model into its batch. If not all fit,
// every subset is as likely as another.
func (x *run) choose(a *server, rows int) {
	waiting := a.waiting
	for k := a.first; k <= a.last; k++ {
		have := x.wait[k]
		n := have
		switch rest := waiting - have; {
		case rest == 0:
			n = rows
		case rows < waiting && have > 0:
			n = hypergeometric(have, rest, rows, a.stream.at(a.draws))
			a.draws++
		}
		x.runs[k], x.wait[k] = n, have-n
		rows, waiting = rows-n, waiting-have
	}
}

// hypergeometric draws, by inversion, how many of the requests taken are of a kind
// when have of all are of it and rest are not.
func hypergeometric(have, rest, take int, u float64) int {
	n, most := max(0, take-rest), min(have, take)
	p := math.Exp(logChoose(have, n) + logChoose(rest, take-n) - logChoose(have+rest, take))
	for n < most && u >= p {
		u -= p
		p *= float64(have-n) * float64(take-n) / (float64(n+1) * float64(rest-take+n+1))
		n++
	}
	return n
}

func (x *run) deadlock() error {
	q, b := []int{}, []int{}
	for m := range x.at {
		q, b = append(q, x.at[m].waiting), append(b, x.at[m].b)
	}
	return stuck(q, b)
}

func stuck(q, b []int) error {
	n := 0
	for _, k := range q {
		n += k
	}
	return fmt.Errorf("%w: all %d requests came to wait, %v at models with thresholds B = %v; lower one, the sum of B-1 must be below N", ErrDeadlock, n, q, b)
}
