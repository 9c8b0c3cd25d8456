package sim

import (
	"fmt"
	"math"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sched"
)

// Config describes a run. Times are virtual.
type Config struct {
	Cluster []sched.Config // one per subserver; see [Roomy] and fabric.Uniform
	Policy  event.Policy   // from the first moment on
	Source  Source         // models and router
	Receive fabric.Receive // the router's word on what comes in; nil: every suffix is committed
	Step    StepTime
	Jitter  float64 // coefficient of variation of each step's time around Step, lognormal with that mean; 0: none
	Latency int64   // ns that a message is under way, between any two subservers

	// Overhead is how long after the execution of a batch of so many rows its end
	// is stated; the model is idle then. It is no part of ExecNs. nil: none.
	Overhead func(model, rows int) time.Duration

	// Stall is by how much the step of a model with that number, counted from 1 over
	// all lives of its subserver, is longer than Step says, and its end stated later
	// than by Overhead. It must depend on its arguments alone, of which seed is Seed,
	// and be 0 or more: Profile.Stall of package cost. Jitter does not change it. nil:
	// none.
	Stall func(seed uint64, model int, step uint64) (longer, later time.Duration)

	// Contention[i][j] is the factor by which a step of model i is slowed while
	// one of j executes; 0 and 1 mean not at all. What remains of a step is
	// stretched from the moment j begins and relaxed when j ends. nil: none.
	Contention [][]float64

	Clients  int    // each has one request at a time and sends the next at once when it is over, 1 ms later when it was rejected; 0: requests come by Tell
	Requests int    // that the clients send in all; 0: without end
	Prompt   int    // tokens of each prompt; 0 means 1
	Length   Length // nil: no request ends within the run

	Seed   uint64
	WarmUp int64 // ns before the window that is measured
	Until  int64 // ns, the end of the window and of Run; 0: until every request is over

	// Control may answer the end of a step (a StepDone) at a core with another
	// policy, which holds everywhere from that moment on. It must not keep ev.
	Control func(core event.Peer, ev *event.Event) *event.Policy

	// Tap sees every event with the commands that followed. It may keep them,
	// as the run then makes them anew each time. A Dispatch that ordered nothing
	// changed nothing and is left out.
	Tap func(core event.Peer, ev *event.Event, cmds []event.Command)
}

// StepTime says how long a step of a model takes: a method value of
// cost.Profile, or [Affine]. It must not keep b.
type StepTime func(model int, b *cost.Batch) time.Duration

// Affine is the step time of plan.Spec. What a row feeds does not count.
func Affine(step []plan.Latency) StepTime {
	return func(model int, b *cost.Batch) time.Duration {
		return time.Duration(math.Round(step[model].Of(b.Rows) * float64(time.Millisecond)))
	}
}

// Length is how many new tokens a request may have. It must depend on the
// request alone.
type Length func(event.ReqID) int

// longest stands for no end: no run writes that much to one request.
const longest = 1 << 24

// Fixed gives every request n new tokens.
func Fixed(n int) Length { return func(event.ReqID) int { return n } }

// Exponential draws lengths with that mean, rounded up to whole tokens.
func Exponential(seed uint64, mean float64) Length {
	return func(id event.ReqID) int {
		u := rng.Key{Seed: seed, Req: uint64(id), Purpose: rng.Length}.Float64(0)
		return int(min(max(1, math.Ceil(-mean*math.Log1p(-u))), longest))
	}
}

// Roomy is a cluster whose KV never is the question: clients requests of any
// length fit. seats has one entry per subserver.
func Roomy(clients int, seats ...int) []sched.Config {
	const block = 1 << 20 // few and large, as nobody looks at them
	cfgs := make([]sched.Config, len(seats))
	kv := make([]int, len(seats))
	for m := range seats {
		kv[m] = clients * (longest + block)
		cfgs[m] = sched.Config{Self: event.Peer(m), Seats: seats, KVTokens: kv, Block: block, NoPrefix: true}
	}
	return cfgs
}

// Of is the closed system that spec describes, under its thresholds and without
// a guard that could fire. WarmUp and Until are left to the caller.
func Of(spec *plan.Spec, seed uint64) (Config, error) {
	if err := spec.Check(); err != nil {
		return Config{}, err
	}
	src, err := Markov(seed, 0, *spec)
	if err != nil {
		return Config{}, err
	}
	seats := make([]int, len(spec.P))
	for m := range seats {
		seats[m] = spec.N
		if spec.Cap != nil {
			seats[m] = min(seats[m], spec.Cap[m])
		}
	}
	cfg := Config{
		Cluster: Roomy(spec.N, seats...),
		Source:  src,
		Step:    Affine(spec.Step),
		Clients: spec.N,
		Seed:    seed,
	}
	if spec.B != nil {
		cfg.Policy = event.Policy{Kind: event.Fixed, B: spec.B, W: NoGuard}
	}
	return cfg, nil
}

// NoGuard is a guard W that never fires within a run.
const NoGuard = int64(1) << 60

func (c *Config) check() error {
	switch {
	case c.Source == nil:
		return fmt.Errorf("there is no source of tokens; set Source")
	case c.Step == nil:
		return fmt.Errorf("there are no step times; set Step")
	case c.Clients < 0:
		return fmt.Errorf("there cannot be %d clients; give 0 if requests come otherwise", c.Clients)
	case c.Requests < 0 || c.Prompt < 0 || c.Latency < 0:
		return fmt.Errorf("requests, prompt and latency are %d, %d and %d; none may be below 0", c.Requests, c.Prompt, c.Latency)
	case !(c.Jitter >= 0 && c.Jitter <= 10):
		return fmt.Errorf("the jitter is %v; a coefficient of variation lies in 0 to 10", c.Jitter)
	case c.Until == 0 && c.Clients > 0 && (c.Requests == 0 || c.Length == nil):
		return fmt.Errorf("the run would never end; set Until, or Requests and Length")
	case c.WarmUp < 0 || c.Until < 0 || c.Until > 0 && c.WarmUp >= c.Until:
		return fmt.Errorf("a warm-up of %d ns leaves nothing to measure until %d", c.WarmUp, c.Until)
	}
	return c.checkContention()
}

func (c *Config) checkContention() error {
	if c.Contention == nil {
		return nil
	}
	if len(c.Contention) != len(c.Cluster) {
		return fmt.Errorf("contention has %d rows for %d models", len(c.Contention), len(c.Cluster))
	}
	for i, row := range c.Contention {
		if len(row) != len(c.Cluster) {
			return fmt.Errorf("contention of model %d has %d entries for %d models", i, len(row), len(c.Cluster))
		}
		for j, f := range row {
			if !(f == 0 || f >= 1 && f <= maxSlowdown) || i == j && f > 1 {
				return fmt.Errorf("model %d is slowed by a factor of %v while %d runs; give 1 to %v, or 0 for none, and none by itself", i, f, j, maxSlowdown)
			}
		}
	}
	return nil
}

// maxSlowdown is far beyond what any device does to two models.
const maxSlowdown = 1000.0
