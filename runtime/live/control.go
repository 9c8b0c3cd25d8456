package live

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/telemetry"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
	"tokenrouter/scripting/reload"
)

// MaxConcurrency bounds what a person may ask for; KV admission bounds what runs.
const MaxConcurrency = 256

// Clock names.
const (
	ClockLive  = "live"
	ClockPaced = "paced"
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
	concurrency int
	routers     []string // names in the library, looked up once a second
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
	Late        int64 // paced steps that this machine was too slow for
}

func (c *control) init(r *Runtime) error {
	c.rt = r
	c.knobs = scripting.NewKnobs()
	c.programs = map[string]*scripting.Program{}
	c.policy = r.cfg.Policy
	c.policy.B = fullVector(c.policy.B, r.n)
	c.concurrency = r.cfg.Concurrency
	c.sampler = telemetry.NewSampler()
	c.routers = c.listRouters()
	p, err := c.resolve(r.cfg.Router)
	if err != nil {
		return err
	}
	c.declared = c.knobs.Declare(p)
	for name, v := range r.cfg.Params {
		old, _ := c.knobs.Get(name)
		if err := c.knobs.Set(name, v, "flag"); err != nil {
			return err
		}
		c.declared = append(c.declared, c.moved(p, name, old)...)
	}
	c.keep(p)
	return nil
}

// fullVector lengthens a threshold vector with ones.
func fullVector(b []int, n int) []int {
	out := slices.Repeat([]int{1}, n)
	copy(out, b)
	return out
}

func (c *control) keep(p *scripting.Program) {
	c.program = p
	c.programs[p.Hash] = p
}

// resolve finds a router by name or file and compiles it.
func (c *control) resolve(nameOrPath string) (*scripting.Program, error) {
	path, text, embedded, err := c.rt.cfg.Library.Resolve(nameOrPath)
	if err != nil {
		return nil, err
	}
	file := filepath.Base(path)
	if embedded {
		file = strings.TrimSuffix(nameOrPath, library.Ext) + library.Ext
	}
	return c.compile(file, path, text)
}

// compile turns a router's text into a program that has survived a dry run on
// the last rows that were routed. An embedded router has no path.
func (c *control) compile(file, path, text string) (*scripting.Program, error) {
	p, err := scripting.Compile(file, text)
	if err != nil {
		return nil, err
	}
	p.Path = path
	for peer := range c.rt.n {
		var rows []scripting.Row
		if peer < len(c.rt.subs) {
			rows = c.rt.subs[peer].lastRows()
		}
		env := c.rt.env(event.Peer(peer))
		env.Knobs = scripting.NewKnobs()
		env.Knobs.Declare(p)
		if err := scripting.DryRun(p, env, rows); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (s *subserver) lastRows() []scripting.Row {
	s.recentMu.Lock()
	defer s.recentMu.Unlock()
	return slices.Clone(s.recent)
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
		{"batch", PolicyText(st.Policy)},
	} {
		c.rt.host(event.None, &tape.Setting{Setting: s[0], New: s[1]})
	}
	p := c.program
	c.rt.host(event.None, &tape.Router{Phase: tape.RouterLoaded, File: p.File, Path: p.Path, Hash: p.Hash, Text: p.Text})
	for _, k := range c.declared {
		c.rt.host(event.None, &k)
	}
	c.rt.host(event.None, &tape.Router{Phase: tape.RouterLive, File: p.File, Hash: p.Hash})
	c.sendPolicy()
	c.watch()
}

// moved is the record of a knob of p whose value was old, if it is another now.
func (c *control) moved(p *scripting.Program, name string, old float64) []tape.Knob {
	for _, k := range c.knobs.List() {
		if k.Name == name && k.Value != old {
			return []tape.Knob{{
				Router: p.File, Knob: k.Name, Help: k.Help, Min: k.Min, Max: k.Max, Default: k.Default,
				Old: old, New: k.Value, Source: k.Source, Hash: p.Hash,
			}}
		}
	}
	return nil
}

// loop samples the machine and keeps the guard W true to the measured steps.
func (c *control) loop(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.sampler.Close()
			return
		case <-tick.C:
			if !c.rt.paused.Load() {
				s := c.sampler.Sample()
				c.rt.host(event.None, telemetryRecord(&s))
			}
			names := c.listRouters()
			c.mu.Lock()
			c.routers = names
			if w := c.guardW(); c.policy.Kind != event.Eager && outside(w, c.policy.W, 1.25) {
				c.sendPolicy()
			}
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

// outside tells whether a and b differ by more than a factor.
func outside(a, b int64, factor float64) bool {
	x, y := float64(a), float64(b)
	return x > y*factor || y > x*factor
}

// guardW is twice the slowest model's decode step: by the cost profile on the
// paced clock; measured on the live one, where a model that has not decoded yet
// does not count, and 0 while none has.
func (c *control) guardW() int64 {
	var slowest int64
	for i, s := range c.rt.subs {
		step := int64(c.rt.cfg.Pacer.Step(i, 1, 0))
		if step == 0 {
			step = s.stepNs.Load()
		}
		slowest = max(slowest, step)
	}
	return 2 * slowest
}

// sendPolicy tells every core the policy in force with a fresh W.
func (c *control) sendPolicy() {
	c.policy.W = c.guardW()
	for _, s := range c.rt.subs {
		p := c.policy
		p.B = slices.Clone(p.B)
		s.in.put(item{ev: &event.Event{Kind: event.SetPolicy, Policy: &p}})
	}
}

func (c *control) setting(name, from, to string) {
	c.rt.host(event.None, &tape.Setting{Setting: name, Old: from, New: to})
}

// SetPaused stops or resumes the start of batches; steps that run end.
func (r *Runtime) SetPaused(on bool) {
	if r.paused.Swap(on) == on {
		return
	}
	r.ctl.setting("paused", strconv.FormatBool(!on), strconv.FormatBool(on))
	r.nudge()
}

// nudge lets every decode loop look again.
func (r *Runtime) nudge() {
	for _, s := range r.subs {
		select {
		case s.in.note <- struct{}{}:
		default:
		}
	}
}

// SetSpeed sets the factor on the paced clock.
func (r *Runtime) SetSpeed(f float64) error {
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.cfg.Pacer.Profile() == nil:
		return errors.New("speed is a factor on the paced clock; the live clock runs as fast as the machine can")
	case !(f >= 1.0/64 && f <= 64): // NaN is neither
		return fmt.Errorf("speed %g is outside 1/64 to 64", f)
	}
	old := r.cfg.Pacer.Speed()
	r.cfg.Pacer.SetSpeed(f)
	c.setting("speed", speedText(old), speedText(f))
	c.sendPolicy()
	return nil
}

// SetClock switches between live and paced; steps that run keep theirs.
func (r *Runtime) SetClock(name string) error {
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.status()
	switch name {
	case ClockLive:
		r.cfg.Pacer.SetProfile(nil)
	case ClockPaced:
		r.cfg.Pacer.SetProfile(r.cfg.Profile)
	default:
		return fmt.Errorf("no clock %q; there are %s and %s", name, ClockLive, ClockPaced)
	}
	now := c.status()
	if old.Clock != now.Clock {
		for _, s := range r.subs {
			s.stepNs.Store(0)
		}
		c.setting("clock", ClockText(old.Clock, old.Profile), ClockText(now.Clock, now.Profile))
		c.sendPolicy()
	}
	return nil
}

// SetConcurrency sets how many requests the closed loop keeps outstanding.
func (r *Runtime) SetConcurrency(n int) error {
	if n < 1 || n > MaxConcurrency {
		return fmt.Errorf("concurrency %d is outside 1 to %d", n, MaxConcurrency)
	}
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	if n != c.concurrency {
		c.setting("concurrency", strconv.Itoa(c.concurrency), strconv.Itoa(n))
		c.concurrency = n
		r.client.in.put(clientItem{op: opConcurrency, want: n})
	}
	return nil
}

// SetB sets the threshold of one subserver and with it the fixed policy.
func (r *Runtime) SetB(p event.Peer, b int) error {
	if p < 0 || int(p) >= r.n {
		return fmt.Errorf("no subserver %d; there are %d", p, r.n)
	}
	if b < 1 || b > r.cfg.Seats {
		return fmt.Errorf("threshold B %d is outside 1 to %d, the seats of a batch", b, r.cfg.Seats)
	}
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	old := PolicyText(c.policy)
	next := slices.Clone(c.policy.B)
	if c.policy.Kind == event.Eager {
		next = fullVector(nil, r.n)
	}
	next[p] = b
	c.policy = event.Policy{Kind: event.Fixed, B: next}
	c.setting("batch", old, PolicyText(c.policy))
	c.sendPolicy()
	return nil
}

// SetKnob moves a knob of the router.
func (r *Runtime) SetKnob(name string, v float64) error {
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	old, _ := c.knobs.Get(name)
	if err := c.knobs.Set(name, v, "slider"); err != nil {
		return err
	}
	for _, k := range c.moved(c.program, name, old) {
		r.host(event.None, &k)
	}
	return nil
}

// Knobs lists the knobs of the router that is live.
func (r *Runtime) Knobs() []scripting.Knob { return r.ctl.knobs.List() }

func (c *control) listRouters() []string {
	var names []string
	for _, e := range c.rt.cfg.Library.List() {
		names = append(names, e.Name)
	}
	return names
}

// Routers lists the names that SetRouter takes.
func (r *Runtime) Routers() []string {
	r.ctl.mu.Lock()
	defer r.ctl.mu.Unlock()
	return r.ctl.routers
}

// Cancel ends a request as aborted.
func (r *Runtime) Cancel(id event.ReqID) { r.client.in.put(clientItem{op: opCancel, req: id}) }

// Status tells what the controls stand at.
func (r *Runtime) Status() Status {
	r.ctl.mu.Lock()
	defer r.ctl.mu.Unlock()
	return r.ctl.status()
}

func (c *control) status() Status {
	st := Status{
		RouterFile: c.program.File, RouterPath: c.program.Path, RouterHash: c.program.Hash,
		Clock: ClockLive, Speed: c.rt.cfg.Pacer.Speed(), Paused: c.rt.paused.Load(),
		Concurrency: c.concurrency, Policy: c.policy, Late: c.rt.cfg.Pacer.Late(),
	}
	if p := c.rt.cfg.Pacer.Profile(); p != nil {
		st.Clock, st.Profile = ClockPaced, p.Name
	}
	return st
}

// ClockText is a clock with the profile it is paced by.
func ClockText(clock, profile string) string {
	if profile == "" {
		return clock
	}
	return clock + " " + profile
}

func speedText(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }

// RouterText is the source of the router loaded last.
func (r *Runtime) RouterText() string { return r.ctl.current().Text }

// PolicyText is a policy in the form of the --batch flag.
func PolicyText(p event.Policy) string {
	if p.Kind == event.Eager {
		return p.Kind.String()
	}
	parts := make([]string, len(p.B))
	for i, b := range p.B {
		parts[i] = strconv.Itoa(b)
	}
	return p.Kind.String() + ":" + strings.Join(parts, ",")
}

// ParsePolicy reads the form of the --batch flag for n subservers: "eager" or
// "fixed:B0,B1,...".
func ParsePolicy(s string, n int) (event.Policy, error) {
	if s == "" || s == event.Eager.String() {
		return event.Policy{Kind: event.Eager}, nil
	}
	list, ok := strings.CutPrefix(s, event.Fixed.String()+":")
	if !ok {
		return event.Policy{}, fmt.Errorf("batch policy %q is neither eager nor fixed:B0,B1", s)
	}
	p := event.Policy{Kind: event.Fixed}
	for part := range strings.SplitSeq(list, ",") {
		b, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || b < 1 {
			return event.Policy{}, fmt.Errorf("batch policy %q: %q is not a threshold of 1 or more", s, part)
		}
		p.B = append(p.B, b)
	}
	if len(p.B) != n {
		return event.Policy{}, fmt.Errorf("batch policy %q gives %d thresholds for %d models", s, len(p.B), n)
	}
	return p, nil
}

// swapTo hands a program to every decode loop.
func (c *control) swapTo(p *scripting.Program) {
	left := new(atomic.Int32)
	left.Store(int32(c.rt.n))
	for _, s := range c.rt.subs {
		s.in.put(item{swap: &swap{program: p, left: left}})
	}
}
