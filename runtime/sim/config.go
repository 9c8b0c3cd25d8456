package sim

import (
	"fmt"
	"math"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sched"
)

// Config describes a run. Times are virtual.
type Config struct {
	Cluster []sched.Config // one per subserver; see [Roomy] and fabric.Uniform
	Policy  event.Policy   // from the first moment on
	Source  Source         // models and router
	Step    StepTime
	Jitter  float64 // coefficient of variation of each step's time around Step, lognormal with that mean; 0: none
	Latency int64   // ns that a message is under way, between any two subservers

	Clients  int    // each has one request at a time and sends the next at once when it is over, 1 ms later when it was rejected
	Requests int    // that the clients send in all; 0: without end
	Prompt   int    // tokens of each prompt; 0 means 1
	Length   Length // nil: no request ends within the run

	Seed   uint64
	WarmUp int64 // ns before the window that is measured
	Until  int64 // ns; 0: until every request is over

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
		u := rng.Key{Seed: seed, Req: uint64(id), Purpose: drawLength}.Float64(0)
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
	case c.Clients < 1:
		return fmt.Errorf("%d clients send nothing; give at least 1", c.Clients)
	case c.Requests < 0 || c.Prompt < 0 || c.Latency < 0:
		return fmt.Errorf("requests, prompt and latency are %d, %d and %d; none may be below 0", c.Requests, c.Prompt, c.Latency)
	case !(c.Jitter >= 0 && c.Jitter <= 10):
		return fmt.Errorf("the jitter is %v; a coefficient of variation lies in 0 to 10", c.Jitter)
	case c.Until == 0 && (c.Requests == 0 || c.Length == nil):
		return fmt.Errorf("the run would never end; set Until, or Requests and Length")
	case c.WarmUp < 0 || c.Until < 0 || c.Until > 0 && c.WarmUp >= c.Until:
		return fmt.Errorf("a warm-up of %d ns leaves nothing to measure until %d", c.WarmUp, c.Until)
	}
	return nil
}
