package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
)

// Runtime hosts one subserver per model and their clients.
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
	virtual *virtual // nil on every clock but sim

	started   bool
	stop      context.CancelFunc
	loops     sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// New builds a runtime; nothing runs before Start. The router is compiled and
// dry-run here, so a broken one is an error and not a run.
func New(cfg Config) (*Runtime, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := len(cfg.Runners)
	r := &Runtime{
		cfg: cfg, n: n, start: time.Now(), tape: cfg.Tape, guard: cfg.Guard,
		done: make(chan struct{}), stop: func() {},
	}
	r.planner.init(r)
	if err := r.ctl.init(r); err != nil {
		return nil, err
	}
	cores, err := r.cores()
	if err != nil {
		return nil, err
	}
	for p, core := range cores {
		s := &subserver{
			rt: r, self: event.Peer(p), core: core, run: cfg.Runners[p],
			in: newMailbox[item](), jobs: newMailbox[work](), out: newMailbox[outbound](),
		}
		env := r.env(event.Peer(p))
		env.Print = (&printer{rt: r, self: event.Peer(p)}).print
		s.scorer = r.scorer(event.Peer(p))
		env.Scorer = s.scorer
		if s.vm, err = scripting.NewVM(env, r.ctl.program); err != nil {
			return nil, err
		}
		r.subs = append(r.subs, s)
	}
	r.client = newClient(r)
	if v := r.virtual; v != nil {
		v.listen()
	}
	return r, nil
}

// cores makes the cores; in virtual time they are those of the simulation.
func (r *Runtime) cores() (cores []*sched.Core, err error) {
	cfgs := r.cfg.cluster()
	if r.cfg.Virtual {
		if r.virtual, err = newVirtual(r, cfgs); err != nil {
			return nil, err
		}
	}
	for p := range cfgs {
		var core *sched.Core
		if v := r.virtual; v != nil {
			core = v.sim.Fabric().Core(event.Peer(p))
		} else if core, err = sched.New(cfgs[p]); err != nil {
			return nil, err
		}
		cores = append(cores, core)
	}
	return cores, nil
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

// Now is the time of the session in ns: virtual on the clock sim, else that on
// the wall since New.
func (r *Runtime) Now() int64 {
	if v := r.virtual; v != nil {
		return v.now.Load()
	}
	return int64(time.Since(r.start))
}

// Started is the wall time at which the session's clock read 0.
func (r *Runtime) Started() time.Time { return r.start }

// Tape is where everything that happens is appended.
func (r *Runtime) Tape() *tape.Tape { return r.tape }

// Done is closed when a limited run has finished its last request, or when the
// horizon is reached.
func (r *Runtime) Done() <-chan struct{} { return r.done }

// end closes Done.
func (r *Runtime) end() { r.doneOnce.Do(func() { close(r.done) }) }

// tell states a fact to the front.
func (r *Runtime) tell(ev *event.Event) {
	if v := r.virtual; v != nil {
		v.sim.Tell(event.Front, *ev)
		return
	}
	r.subs[event.Front].in.put(item{ev: ev})
}

func (r *Runtime) host(core event.Peer, h tape.Host) { r.tape.AppendHost(r.Now(), core, h) }

func (r *Runtime) message(l tape.Level, text string) {
	r.host(event.None, &tape.Message{Level: l, Text: text})
}

// Start lets everything run.
func (r *Runtime) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.started, r.stop = true, cancel
	r.ctl.announce()
	r.spawn("control loop", func() { r.ctl.loop(ctx) })
	if v := r.virtual; v != nil {
		r.spawn("driver of virtual time", func() { v.drive(ctx) })
		return
	}
	for _, s := range r.subs {
		role := event.Role(s.self, r.n)
		r.spawn(role+" runner", func() { s.execute(ctx) })
		r.spawn(role+" inter-model loop", func() { s.carry(ctx) })
		r.spawn(role+" decode loop", func() { s.decode(ctx) })
	}
	r.spawn("client loop", func() { r.client.loop(ctx) })
	if h := r.cfg.Horizon; h > 0 {
		r.spawn("horizon", func() { r.endAfter(ctx, h) })
	}
	r.guard.Go("planner", nil, func() { r.planner.loop(ctx) }) // Close does not wait for a plan
}

// endAfter closes Done when so much time has passed on the wall.
func (r *Runtime) endAfter(ctx context.Context, h time.Duration) {
	timer := time.NewTimer(h)
	defer timer.Stop()
	select {
	case <-timer.C:
		r.end()
	case <-ctx.Done():
	}
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
			r.ctl.release()
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
