package live

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/tape"
)

// planned is what the cores need of a plan.
type planned struct {
	table    [][]int
	forecast *event.Forecast
}

// planner measures the cluster on the tape, plans, and hands the thresholds to
// the controls. It runs beside the decode loops, at its own pace: they read the
// newest table and never wait for one.
type planner struct {
	rt   *Runtime
	sub  *tape.Sub
	est  *metrics.Estimator
	calm *metrics.Estimator // with a longer memory: figures for people
	wish chan struct{}
	recs []tape.Record

	made  situation // that the newest table was taken for
	table [][]int
	shelf plan.Shelf    // tables made so far
	took  time.Duration // to make the last of them; nothing in virtual time
	since time.Duration // into the session, when that was made
	stale bool          // the figures on the tape are of an older one, or of what has changed since
	of    plan.Spec     // that they are for
	shown time.Duration // when they were made
	told  map[string]bool

	mu   sync.Mutex
	over bool // the runtime closes: what is still being computed goes nowhere
}

// situation is what a plan depends on.
type situation struct {
	n      int // requests that may be active
	policy string
	turns  int    // of the router, its knobs and the clock: a plan stands behind the last one on the tape
	used   []bool // subservers that spec has
	spec   plan.Spec
}

// planEvery is how often the planner looks whether figures have moved; a table
// takes milliseconds. That of three models and hundreds of requests takes a tenth
// of a second and more: such a one is made less often, for one part in planShare of
// a core. showEvery is how often it records figures for people at most; those take
// some 20 ms.
const (
	planEvery = 250 * time.Millisecond
	planShare = 20
	showEvery = 2 * time.Second
	planRow   = 200 * time.Microsecond // of a table, for each model but one
)

// planHalfLife is the memory of the measured shares, in rows of a subserver. With
// planEvery it keeps throughput within 1 % of that of an oracle where the share
// switches every 10 s; at 200 rows and half a second it does not. By sampling
// alone p = 0.35 moves by 0.03 with it.
const planHalfLife = 100

// keptTables is how many tables are kept for when figures come back to where they
// were. By sampling alone those of three models need some hundred.
const keptTables = 256

// Figures that people read should not tremble: by sampling alone p = 0.35 moves by
// 0.01 with this memory.
const calmHalfLife = 1000

func (p *planner) init(r *Runtime) {
	p.rt = r
	p.sub = r.tape.Subscribe()
	p.est = metrics.NewEstimator(r.n, metrics.EstimatorOptions{HalfLife: planHalfLife})
	p.calm = metrics.NewEstimator(r.n, metrics.EstimatorOptions{HalfLife: calmHalfLife})
	p.wish = make(chan struct{}, 1)
	p.told = map[string]bool{}
	p.shown = -showEvery
	p.shelf = plan.Shelf{Seed: r.cfg.Sampling.Seed, Most: keptTables}
}

// now is how long the session has run.
func (p *planner) now() time.Duration { return time.Duration(p.rt.Now()) }

// end keeps what is being planned off the tape. Nobody waits for it: figures of
// many requests take a while.
func (p *planner) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// put calls f, which puts something on the tape, before the end.
func (p *planner) put(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		f()
	}
}

// again asks for a look at once.
func (p *planner) again() {
	select {
	case p.wish <- struct{}{}:
	default:
	}
}

func (p *planner) loop(ctx context.Context) {
	defer p.sub.Close()
	tick := time.NewTicker(planEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.wish:
		}
		p.read()
		p.look()
	}
}

// read folds what has come.
func (p *planner) read() {
	for {
		p.recs = p.sub.Next(p.recs[:0], 4096)
		for i := range p.recs {
			p.est.Add(&p.recs[i])
			p.calm.Add(&p.recs[i])
		}
		if len(p.recs) < 4096 {
			clear(p.recs)
			return
		}
	}
}

// look takes another table if what the last one is for has changed, and records
// figures if those on the tape are of another table or number of requests. The
// table has a row for every number that may be active, so that it need not be
// made anew when requests come and go. Where no core goes by a table there is one
// for the figures alone.
func (p *planner) look() {
	st := p.rt.Status()
	followed := st.Policy.Kind == event.Table || st.Policy.Kind == event.LookAhead
	if p.rt.cfg.Unseen && !followed {
		return
	}
	e := p.est.Estimate()
	if !e.Ready {
		return
	}
	now := situation{
		n: st.Concurrency, policy: st.Policy.Form(), turns: e.Turns, used: e.Used,
		spec: e.Spec(st.Concurrency, p.seats()),
	}
	asked := now.n != p.made.n || now.policy != p.made.policy || now.turns != p.made.turns
	if asked {
		clear(p.told)
		p.stale = true
	}
	n := now.n
	if e.Active > 0 {
		n = e.Active // fewer where KV does not admit all, more after the concurrency was lowered
	}
	var f figures
	due := !p.rt.cfg.Unseen && (asked || p.now()-p.shown >= p.showEvery())
	if due {
		f = p.figures(e, n)
	}
	if asked || (followed || due && p.lag(&f)) && now.moved(&p.made) {
		if !p.plan(&e, now, asked) {
			return
		}
	}
	if due && p.lag(&f) {
		p.show(&f)
	}
}

// seats is how many rows a batch can have: one with a token each.
func (p *planner) seats() int {
	if b := p.rt.cfg.Core.Budget; b > 0 {
		return min(p.rt.cfg.Seats, b)
	}
	return p.rt.cfg.Seats
}

// options are those of every plan.
func (p *planner) options(e *metrics.Estimate) plan.Options {
	return plan.Options{Seed: p.rt.cfg.Sampling.Seed, Names: names(e), Measured: true}
}

// plan hands a table to the controls, one of the shelf if there is one for such
// figures. Nothing happens where there is none and it is too early to make one,
// unless at once. It says false if none can be made; then the one before holds
// until something changes.
func (p *planner) plan(e *metrics.Estimate, now situation, atOnce bool) bool {
	rows := max(now.n, e.Active)
	table, ok := p.shelf.Find(&now.spec, rows)
	if begin := p.now(); !ok {
		if !atOnce && begin-p.since < planShare*p.cost() {
			return true
		}
		var err error
		p.since = begin
		if table, err = p.shelf.Tabulate(&now.spec, rows); err != nil {
			p.made = now
			p.tell(tape.Warn, "no table of thresholds: "+err.Error())
			return false
		}
		p.took = p.now() - begin
	}
	p.made = now
	next := planned{forecast: e.Forecast(int64(e.Latency))}
	for _, b := range table.Vectors() {
		next.table = append(next.table, e.Spread(b))
	}
	p.rt.ctl.follow(next)
	p.stale = p.stale || !slices.EqualFunc(next.table, p.table, slices.Equal)
	p.table = next.table
	return true
}

// cost is what it took to make the newest table; in virtual time, where that
// must not count, about what such a one takes.
func (p *planner) cost() time.Duration {
	if p.rt.cfg.Virtual {
		return time.Duration(len(p.table)*(p.rt.n-1)) * planRow
	}
	return p.took
}

// showEvery is how often figures are shown at most. Where virtual time rushes by,
// nobody reads along, and the figures would cost more than all else.
func (p *planner) showEvery() time.Duration {
	if p.rt.cfg.Virtual && p.rt.cfg.Pacer.Speed() == 0 {
		return max(showEvery, p.now()/2)
	}
	return showEvery
}

// names are the roles of the subservers in use.
func names(e *metrics.Estimate) (out []string) {
	for i, used := range e.Used {
		if used {
			out = append(out, "the "+event.Role(event.Peer(i), e.Peers))
		}
	}
	return out
}

// moved says whether what is measured gives another table than it did for old.
func (s *situation) moved(old *situation) bool {
	return !slices.Equal(s.used, old.used) || s.spec.Moved(&old.spec)
}

// tell says a thing once until a person changes something, whatever figures it has in it.
func (p *planner) tell(level tape.Level, text string) {
	key := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
	if !p.told[key] {
		p.told[key] = true
		p.put(func() { p.rt.message(level, text) })
	}
}
