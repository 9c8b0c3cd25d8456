package live

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/telemetry"
	"tokenrouter/scripting"
	"tokenrouter/scripting/reload"
)

// MaxConcurrency bounds what a person may ask for; KV admission bounds what runs.
const MaxConcurrency = 256

// Clock names.
const (
	ClockLive     = "live"     // models as fast as the machine runs them
	ClockPaced    = "paced"    // at the rhythm of a cost profile
	ClockEmulated = "emulated" // paced, and the tokens are drawn or recorded
	ClockSim      = "sim"      // virtual time
)

// control is what may change while the runtime runs. Setters may be called by
// any goroutine; they return at once and record what they changed.
type control struct {
	rt    *Runtime
	knobs *scripting.Knobs

	// loading is held, before mu, while a router is read, compiled and dry-run:
	// one at a time, and nobody who asks for the status waits for that.
	loading sync.Mutex

	mu          sync.Mutex
	closed      bool
	program     *scripting.Program // the one loaded last
	declared    []tape.Knob        // what New made of its knobs, recorded by announce
	programs    map[string]*scripting.Program
	watcher     *reload.Watcher
	rejected    bool // the file on disk is not the router that is live
	policy      event.Policy
	planned     planned // of the newest plan
	concurrency int
	measured    chan struct{} // a subserver has its first decode step
	routers     []string      // names in the library, looked up once a second
	sampler     *telemetry.Sampler
}

// Status is what the controls stand at.
type Status struct {
	RouterFile, RouterPath, RouterHash string

	Clock       string
	Profile     string
	Speed       float64
	Paused      bool
	Concurrency int
	Policy      event.Policy
	B           []int // thresholds in force for the requests that are outstanding
	Late        int64 // paced steps that this machine was too slow for
}

func (c *control) init(r *Runtime) error {
	c.rt = r
	c.measured = make(chan struct{}, 1)
	c.knobs = scripting.NewKnobs()
	c.programs = map[string]*scripting.Program{}
	c.policy = r.cfg.Policy
	c.concurrency = r.cfg.Concurrency
	if !r.cfg.Virtual { // which knows nothing of this machine
		c.sampler = telemetry.NewSampler()
	}
	c.routers = c.listRouters()
	p, err := c.resolve(r.cfg.Router)
	if err != nil {
		return err
	}
	c.declared = c.knobs.Declare(p)
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Params)) { // in one order, as each is a record
		old, _ := c.knobs.Get(name)
		if err := c.knobs.Set(name, r.cfg.Params[name], "flag"); err != nil {
			return err
		}
		c.declared = append(c.declared, c.moved(p, name, old)...)
	}
	c.keep(p)
	c.policy.W = c.guardW()
	return nil
}

// release lets go of what the loop uses.
func (c *control) release() {
	if c.sampler != nil {
		c.sampler.Close()
	}
}

// announce records what the session begins with.
func (c *control) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.status()
	for _, s := range [][2]string{
		{"clock", ClockText(st.Clock, st.Profile)},
		{"speed", speedText(st.Speed)},
		{"concurrency", strconv.Itoa(st.Concurrency)},
		{"batch", st.Policy.Form()},
	} {
		c.rt.host(event.None, &tape.Setting{Setting: s[0], New: s[1]})
	}
	p := c.program
	c.rt.host(event.None, &tape.Router{Phase: tape.RouterLoaded, File: p.File, Path: p.Path, Hash: p.Hash, Text: p.Text})
	for _, k := range c.declared {
		c.rt.host(event.None, &k)
	}
	c.rt.host(event.None, &tape.Router{Phase: tape.RouterLive, File: p.File, Hash: p.Hash})
	if !c.rt.cfg.Virtual { // a simulation begins with its policy
		c.sendPolicy()
	}
	c.watch()
}

// loop samples the machine and keeps the guard W true to the measured steps.
func (c *control) loop(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.release()
			return
		case <-tick.C:
			if c.sampler != nil && !c.rt.paused.Load() {
				s := c.sampler.Sample()
				c.rt.host(event.None, telemetryRecord(&s))
			}
			names := c.listRouters()
			c.mu.Lock()
			c.routers = names
			c.refreshW()
			c.mu.Unlock()
		case <-c.measured:
			c.mu.Lock()
			c.refreshW()
			c.mu.Unlock()
		}
	}
}

func telemetryRecord(s *telemetry.Snapshot) *tape.Telemetry {
	t := &tape.Telemetry{
		CPU: percent(s.CPU.Process), Machine: percent(s.CPU.Machine), Cores: s.CPU.Cores,
		RSS: s.Memory.Process, GPUNote: s.GPUNote,
	}
	for _, g := range s.GPUs {
		t.GPUs = append(t.GPUs, tape.GPU{
			Device: g.Name, Util: percent(g.Util), Used: g.MemoryUsed, Total: g.MemoryTotal, Watts: known(g.Power),
		})
	}
	return t
}

// Unknown readings are -1 on the tape.
func known(r telemetry.Reading) float64 {
	if !r.Known {
		return -1
	}
	return r.Value
}

func percent(r telemetry.Reading) float64 {
	if !r.Known {
		return -1
	}
	return 100 * r.Value
}

func (c *control) setting(name, from, to string) {
	c.rt.host(event.None, &tape.Setting{Setting: name, Old: from, New: to})
}

// Status tells what the controls stand at.
func (r *Runtime) Status() Status {
	r.ctl.mu.Lock()
	defer r.ctl.mu.Unlock()
	return r.ctl.status()
}

func (c *control) status() Status {
	pacer := c.rt.cfg.Pacer
	st := Status{
		RouterFile: c.program.File, RouterPath: c.program.Path, RouterHash: c.program.Hash,
		Clock: c.rt.cfg.clock(), Speed: pacer.Speed(), Paused: c.rt.paused.Load(),
		Concurrency: c.concurrency, Policy: c.policy, B: c.vector(), Late: pacer.Late(),
	}
	if p := c.rt.cfg.profile(); p != nil {
		st.Profile = p.Name
	}
	return st
}

// profile is the cost profile that is in force, nil on the live clock.
func (c *Config) profile() *cost.Profile {
	if c.Virtual {
		return c.Profile
	}
	return c.Pacer.Profile()
}

// clock is the name of the clock in force.
func (c *Config) clock() string {
	switch {
	case c.Virtual:
		return ClockSim
	case c.Emulated:
		return ClockEmulated
	case c.Pacer.Profile() != nil:
		return ClockPaced
	}
	return ClockLive
}
