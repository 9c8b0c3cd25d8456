package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tokenrouter/runtime/rng"
)

// Follow runs the system request by request, first come first served, until it
// has seen that many commits, after a fifth as many to warm up. It is the one
// method that knows P99: the time between two commits of a request that 99 % do
// not exceed. A step that commits several tokens counts once, one that takes more back
// than it writes not at all.
//
// Throughput / N is the mean speed of a user (renewal-reward), so at a fixed N
// the thresholds of the highest throughput serve the mean user best. What
// delayed batching costs is in the tail that this measures.
//
// The k-th step of a request draws the same number whatever the thresholds.
// Errors are those of [CountSim].
func Follow(s *Spec, commits int, seed uint64) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	if commits < leastEvents {
		return Result{}, fmt.Errorf("%d tokens are too few for a percentile; give at least %d", commits, leastEvents)
	}
	g, err := newStage(s, seed)
	if err != nil {
		return Result{}, err
	}
	return g.follow(s.N, s.vector(), commits)
}

// followBatches is how many batches the mean of a followed run is taken over.
const followBatches = 50

// follow runs n requests under thresholds b.
func (g *stage) follow(n int, b []int, commits int) (Result, error) {
	x := g.enqueue(n, b)
	if err := x.until(commits / 5); err != nil {
		return Result{}, err
	}
	x.commits, x.gaps = 0, make([]int, 0, commits+n)
	p := sample{models: len(b)}
	p.open(0, followBatches)
	row, last := make([]float64, len(p.cols)), make([]float64, len(p.cols))
	x.read(last)
	for i := range followBatches {
		if err := x.until(commits * (i + 1) / followBatches); err != nil {
			return Result{}, err
		}
		x.read(row)
		p.add(row, last)
		row, last = last, row
	}
	res := p.result(g.tick)
	slices.Sort(x.gaps)
	if len(x.gaps) > 0 { // nearest rank
		res.P99 = float64(x.gaps[(len(x.gaps)*99+99)/100-1]) * g.tick
	}
	return res, nil
}

// line is one model of a followed run.
type line struct {
	station
	queue, batch []int // requests
}

// follower is a run that knows its requests.
type follower struct {
	*stage
	at       []line // by model
	requests []follows
	clock    int // ticks
	tokens   float64
	commits  int
	gaps     []int // ticks between commits, nil while warming up
}

// follows is one request.
type follows struct {
	kind, steps int
	last        int // clock of its last commit, -1 before
}

// enqueue starts a run of n requests, all waiting at model 0.
func (g *stage) enqueue(n int, b []int) *follower {
	x := &follower{stage: g, at: make([]line, len(b)), requests: make([]follows, n)}
	for m := range x.at {
		x.at[m].b, x.at[m].cap = b[m], min(n, g.cap[m])
	}
	for i := range x.requests {
		x.requests[i].last = -1
		x.send(i, g.enter[0])
	}
	x.dispatch()
	return x
}

// send lets a request fall on branches and queues it there.
func (x *follower) send(i int, next []branch) *branch {
	r := &x.requests[i]
	b := &next[len(next)-1]
	if len(next) > 1 {
		key := rng.Key{Seed: x.seed, Req: uint64(i), Pos: r.steps, Purpose: rng.Workload}
		u := key.Float64(0)
		for k := range next[:len(next)-1] {
			if u -= next[k].p; u < 0 {
				b = &next[k]
				break
			}
		}
	}
	r.steps++
	r.kind = b.kind
	to := &x.at[x.model[b.kind]]
	to.queue = append(to.queue, i)
	return b
}

// mute is how many completions in a row may commit nothing.
const mute = 1 << 20

var errMute = errors.New("the system commits no token; look at K")

// until goes on to the completion that reaches that many commits.
func (x *follower) until(commits int) error {
	quiet := 0
	for x.commits < commits {
		had := x.commits
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
		x.dispatch()
		if quiet++; x.commits > had {
			quiet = 0
		}
		if quiet == mute {
			return errMute
		}
	}
	return nil
}

func (x *follower) complete(a *line) {
	a.end()
	for _, i := range a.batch {
		r := &x.requests[i]
		b := x.send(i, x.next[r.kind])
		x.tokens += b.commit
		if b.commit <= 0 {
			continue // nothing for a reader, or less
		}
		x.commits++
		if x.gaps != nil && r.last >= 0 {
			x.gaps = append(x.gaps, x.clock-r.last)
		}
		r.last = x.clock
	}
}

// dispatch starts a batch at every idle model whose threshold is reached.
func (x *follower) dispatch() {
	for m := range x.at {
		a := &x.at[m]
		if a.rows > 0 || len(a.queue) < a.b {
			continue
		}
		n := min(len(a.queue), a.cap)
		a.batch = append(a.batch[:0], a.queue[:n]...)
		a.queue = append(a.queue[:0], a.queue[n:]...)
		a.begin(n, x.t[m][n])
	}
}

func (x *follower) read(row []float64) {
	row[colTicks], row[colTokens] = float64(x.clock), x.tokens
	for m := range x.at {
		x.at[m].read(row[colFirst+3*m:])
	}
}

func (x *follower) deadlock() error {
	q, b := []int{}, []int{}
	for m := range x.at {
		q, b = append(q, len(x.at[m].queue)), append(b, x.at[m].b)
	}
	return stuck(q, b)
}
