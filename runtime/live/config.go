package live

import (
	"errors"
	"fmt"
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
	Profile *cost.Profile // step times of the clocks paced, emulated and sim

	// Pacer is the clock that the runners obey. In virtual time, where they wait for
	// nothing, its speed alone counts: a factor on the wall clock, 0 as fast as the
	// machine can; and without one that is 0.
	Pacer *paced.Pacer

	Virtual    bool          // clock sim: one goroutine drives the cores in virtual time
	Emulated   bool          // clock emulated: the runners draw their tokens and are paced
	Jitter     float64       // sim: coefficient of variation of each step's time; 0: none
	Contention [][]float64   // sim: factor on a step of i while j runs; nil, 0 or 1: none
	Horizon    time.Duration // Done is closed after it, on sim in virtual time; 0: never

	Vocab      int
	Prompt     func(question string) ([]event.Token, error)
	TokenBytes func(event.Token) (b []byte, special bool)
	TokenText  func(event.Token) string
	EOS        []event.Token

	Seats     int // most rows of a batch
	KVTokens  int // size of each subserver's KV pool
	Core      CoreOptions
	Unseen    bool // nobody looks at predictions: a plan is made where the policy follows it, and no figures for people
	Context   int  // positions that every model can hold
	MaxTokens int  // new tokens of a request
	Sampling  event.Sampling
	Stops     []string

	Policy      event.Policy      // W is measured; a Table and a Forecast hold until the first plan
	Concurrency int               // of the closed loop
	Arrivals    workload.Arrivals // of the open loop; nil: the closed one
	Source      workload.Source
	Limit       int // requests to run, 0 without end

	// Check judges answers from outside; nil: each task says how. It is called by
	// the goroutine of the clients.
	Check workload.Checker

	Library library.Library
	Router  string             // name or file
	Params  map[string]float64 // knob values set by flag
	Watch   bool               // reload the router when its file changes

	// Scorer makes what evaluates the heads that a router names, for a subserver
	// whose model computes, or repeats what was recorded with their scores; nil, or
	// one that is nil: there are none. It is asked
	// once for each machine of Lua, from any goroutine.
	Scorer func(p event.Peer) scripting.Scorer

	Tape  *tape.Tape
	Guard *guard.Guard
}

// CoreOptions are choices of every core; see sched.Config.
type CoreOptions struct {
	Chunk      int           // most tokens that a row feeds in a step, 0: no bound
	Budget     int           // most tokens that a batch feeds, 0: no bound
	NoPrefix   bool          // share no KV of common beginnings
	Overcommit int           // worst cases admitted, in % of a pool; 0 means 100
	MaxActive  int           // most requests admitted at a time, 0: as many as fit
	Resubmit   bool          // every switch between models is a new request there
	Stateless  []bool        // of each subserver: it computes the whole text anew whenever a request comes; nil: none does
	Timeout    time.Duration // a request that a peer keeps for longer fails; 0: never
}

// check refuses what cannot be run, and fills in what may be left out.
func (c *Config) check() error {
	switch n := len(c.Runners); {
	case n < 2:
		return fmt.Errorf("a cluster needs at least two models, small first; got %d", n)
	case c.Virtual && c.Emulated:
		return errors.New("a run has one clock: sim or emulated")
	case (c.Virtual || c.Emulated) && c.Profile == nil:
		return fmt.Errorf("the clock %s needs a cost profile; set Profile", c.clock())
	case c.Horizon < 0:
		return fmt.Errorf("the horizon is %v; it may not be below 0", c.Horizon)
	}
	if c.Pacer != nil {
		c.Pacer.Seed(c.Sampling.Seed)
	}
	if c.Emulated {
		c.Pacer.Emulate()
	}
	if c.Pacer == nil && c.Virtual {
		c.Pacer = paced.NewPacer()
		c.Pacer.SetSpeed(0)
	}
	return c.fits(&c.Policy)
}

// cluster is the configuration of every core.
func (c *Config) cluster() (cfgs []sched.Config) {
	n := len(c.Runners)
	seats, pools := make([]int, n), make([]int, n)
	for i := range n {
		seats[i], pools[i] = c.Seats, c.KVTokens
	}
	for p := range n {
		cfgs = append(cfgs, c.coreConfig(event.Peer(p), seats, pools))
	}
	return cfgs
}

func (c *Config) coreConfig(p event.Peer, seats, pools []int) sched.Config {
	cfg := sched.Config{
		Self: p, Seats: seats, KVTokens: pools, Chunk: c.Core.Chunk, Budget: c.Core.Budget,
		NoPrefix: c.Core.NoPrefix, Block: model.BlockLen, Overcommit: c.Core.Overcommit, Timeout: int64(c.Core.Timeout),
		MaxActive: c.Core.MaxActive, Resubmit: c.Core.Resubmit,
	}
	if int(p) < len(c.Core.Stateless) && c.Core.Stateless[p] {
		cfg.Resubmit, cfg.NoPrefix = true, true
	}
	if c.Domains != nil {
		cfg.Domain = c.Domains[p]
	}
	return cfg
}
