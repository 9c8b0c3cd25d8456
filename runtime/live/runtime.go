package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
)

// Config says what a Runtime hosts. Runners are given small first; they share
// one vocabulary of Vocab rows.
type Config struct {
	Runners []runner.Runner
	Domains []uint64      // model and tokenizer of each runner, whose KV it is; nil: they are not told apart
	Pacer   *paced.Pacer  // the clock the runners obey
	Profile *cost.Profile // step times of the paced clock

	Vocab      int
	Prompt     func(question string) ([]event.Token, error)
	TokenBytes func(event.Token) (b []byte, special bool)
	TokenText  func(event.Token) string
	EOS        []event.Token

	Seats     int // most rows of a batch
	KVTokens  int // size of each subserver's KV pool
	Core      CoreOptions
	Context   int // positions that every model can hold
	MaxTokens int // new tokens of a request
	Sampling  event.Sampling
	Stops     []string

	Policy      event.Policy // W is measured; a Table and a Forecast hold until the first plan
	Concurrency int
	Source      workload.Source
	Limit       int // requests to run, 0 without end

	Library library.Library
	Router  string             // name or file
	Params  map[string]float64 // knob values set by flag
	Watch   bool               // reload the router when its file changes

	Tape  *tape.Tape
	Guard *guard.Guard
}

// CoreOptions are choices of every core; see sched.Config.
type CoreOptions struct {
	Chunk      int           // most tokens that a row feeds in a step, 0: no bound
	Budget     int           // most tokens that a batch feeds, 0: no bound
	NoPrefix   bool          // share no KV of common beginnings
	Overcommit int           // worst cases admitted, in % of a pool; 0 means 100
	Timeout    time.Duration // a request that a peer keeps for longer fails; 0: never
}

// Runtime hosts one subserver per model and a closed loop of clients.
type Runtime struct {
	cfg   Config
	n     int
	start time.Time
	tape  *tape.Tape
	guard *guard.Guard
	subs  []*subserver

	client   *client
	done     chan struct{}
	doneOnce sync.Once

	paused  atomic.Bool
	ctl     control
	planner planner

	started   bool
	stop      context.CancelFunc
	loops     sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// New builds a runtime; nothing runs before Start. The router is compiled and
// dry-run here, so a broken one is an error and not a run.
func New(cfg Config) (*Runtime, error) {
	n := len(cfg.Runners)
	if n < 2 {
		return nil, fmt.Errorf("a cluster needs at least two models, small first; got %d", n)
	}
	if err := cfg.fits(&cfg.Policy); err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg: cfg, n: n, start: time.Now(), tape: cfg.Tape, guard: cfg.Guard,
		done: make(chan struct{}), stop: func() {},
	}
	seats, pools := make([]int, n), make([]int, n)
	for i := range n {
		seats[i], pools[i] = cfg.Seats, cfg.KVTokens
	}
	r.planner.init(r)
	if err := r.ctl.init(r); err != nil {
		return nil, err
	}
	for p := range n {
		core, err := sched.New(cfg.coreConfig(event.Peer(p), seats, pools))
		if err != nil {
			return nil, err
		}
		s := &subserver{
			rt: r, self: event.Peer(p), core: core, run: cfg.Runners[p],
			in: newMailbox[item](), jobs: newMailbox[work](), out: newMailbox[outbound](),
		}
		env := r.env(event.Peer(p))
		env.Print = (&printer{rt: r, self: event.Peer(p)}).print
		if s.vm, err = scripting.NewVM(env, r.ctl.program); err != nil {
			return nil, err
		}
		r.subs = append(r.subs, s)
	}
	left := cfg.Limit
	if left == 0 {
		left = -1
	}
	r.client = &client{
		rt: r, in: newMailbox[clientItem](), want: cfg.Concurrency, next: 1, left: left,
		open: map[event.ReqID]*request{},
	}
	return r, nil
}

func (c *Config) coreConfig(p event.Peer, seats, pools []int) sched.Config {
	cfg := sched.Config{
		Self: p, Seats: seats, KVTokens: pools, Chunk: c.Core.Chunk, Budget: c.Core.Budget,
		NoPrefix: c.Core.NoPrefix, Block: model.BlockLen, Overcommit: c.Core.Overcommit, Timeout: int64(c.Core.Timeout),
	}
	if c.Domains != nil {
		cfg.Domain = c.Domains[p]
	}
	return cfg
}

func (r *Runtime) env(p event.Peer) scripting.Env {
	return scripting.Env{
		Self: p, Peers: r.n, Seed: r.cfg.Sampling.Seed, Vocab: r.cfg.Vocab,
		Text: r.cfg.TokenText, Load: r.loadOf, Knobs: r.ctl.knobs,
	}
}

// loadOf tells a router how full subserver p is, and how old that knowledge is.
func (r *Runtime) loadOf(p event.Peer) (ready, batch int, age time.Duration, ok bool) {
	if p < 0 || int(p) >= len(r.subs) {
		return 0, 0, 0, false
	}
	l := &r.subs[p].load
	return int(l.ready.Load()), int(l.batch.Load()), time.Duration(r.Now() - l.at.Load()), true
}

// Now is the time of the session in ns.
func (r *Runtime) Now() int64 { return int64(time.Since(r.start)) }

// Started is the wall time at which the session's clock read 0.
func (r *Runtime) Started() time.Time { return r.start }

// Tape is where everything that happens is appended.
func (r *Runtime) Tape() *tape.Tape { return r.tape }

// Done is closed when a limited run has finished its last request.
func (r *Runtime) Done() <-chan struct{} { return r.done }

func (r *Runtime) host(core event.Peer, h tape.Host) { r.tape.AppendHost(r.Now(), core, h) }

func (r *Runtime) message(l tape.Level, text string) {
	r.host(event.None, &tape.Message{Level: l, Text: text})
}

// Start lets everything run.
func (r *Runtime) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.started, r.stop = true, cancel
	r.ctl.announce()
	for _, s := range r.subs {
		role := event.Role(s.self, r.n)
		r.spawn(role+" runner", func() { s.execute(ctx) })
		r.spawn(role+" inter-model loop", func() { s.carry(ctx) })
		r.spawn(role+" decode loop", func() { s.decode(ctx) })
	}
	r.spawn("client loop", func() { r.client.loop(ctx) })
	r.spawn("control loop", func() { r.ctl.loop(ctx) })
	r.guard.Go("planner", nil, func() { r.planner.loop(ctx) }) // Close does not wait for a plan
}

func (r *Runtime) spawn(name string, fn func()) {
	r.loops.Add(1)
	r.guard.Go(name, nil, func() {
		defer r.loops.Done()
		fn()
	})
}

// Close ends every request as aborted and stops all loops. It returns early
// with an error when ctx ends first; a step that is still computing is then
// left to the end of the process. Later calls do nothing and return the same.
func (r *Runtime) Close(ctx context.Context) error {
	r.closeOnce.Do(func() {
		r.ctl.end()
		r.planner.end()
		if !r.started {
			r.ctl.sampler.Close()
			r.closeErr = r.closeRunners()
			return
		}
		r.closeErr = r.close(ctx)
	})
	return r.closeErr
}

func (r *Runtime) close(ctx context.Context) error {
	reply := make(chan struct{})
	r.client.in.put(clientItem{op: opAbort, reply: reply})
	var err error
	select {
	case <-reply:
	case <-ctx.Done():
		err = errors.New("requests were still running when the time to close was over; they are recorded as unfinished")
	}
	r.cfg.Pacer.Hurry() // nobody waits for the rhythm of a step that is cut
	var steps sync.WaitGroup
	steps.Add(r.n)
	r.subs[event.Front].in.put(item{drain: &steps})
	r.waitFor(ctx, steps.Wait)
	r.stop()
	if !r.waitFor(ctx, r.loops.Wait) {
		return errors.Join(err, errors.New("a step was still computing when the time to close was over"))
	}
	return errors.Join(err, r.closeRunners())
}

func (r *Runtime) closeRunners() (err error) {
	for _, run := range r.cfg.Runners {
		err = errors.Join(err, run.Close())
	}
	return err
}

// waitFor calls wait and tells whether it returned before ctx ended.
func (r *Runtime) waitFor(ctx context.Context, wait func()) bool {
	over := make(chan struct{})
	r.guard.Go("close", nil, func() {
		wait()
		close(over)
	})
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}
