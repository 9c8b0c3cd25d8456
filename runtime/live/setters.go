package live

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// SetPaused stops or resumes the start of batches; steps that run end. In virtual
// time it stops the time, and what is due at the present moment still happens.
func (r *Runtime) SetPaused(on bool) {
	if r.paused.Swap(on) == on {
		return
	}
	r.ctl.setting("paused", strconv.FormatBool(!on), strconv.FormatBool(on))
	r.nudge()
	r.client.nudge()
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

// SetSpeed sets the factor on the clock, which the live one has not. In virtual
// time 0 is as fast as the machine can.
func (r *Runtime) SetSpeed(f float64) error {
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 64.0
	if r.cfg.Virtual {
		most = 1e6
	}
	switch {
	case r.cfg.profile() == nil:
		return errors.New("speed is a factor on the paced clock; the live clock runs as fast as the machine can")
	case r.cfg.Virtual && f == 0:
	case !(f >= 1.0/64 && f <= most): // NaN is neither
		return fmt.Errorf("speed %g is outside 1/64 to %.0f", f, most)
	}
	old := r.cfg.Pacer.Speed()
	r.cfg.Pacer.SetSpeed(f)
	c.setting("speed", speedText(old), speedText(f))
	if r.cfg.Virtual {
		r.nudge() // steps take as long as before, in virtual time
		return nil
	}
	c.sendPolicy()
	return nil
}

// SetClock switches between live and paced; steps that run keep theirs. The
// other clocks are chosen when a run begins.
func (r *Runtime) SetClock(name string) error {
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.status()
	if name == old.Clock {
		return nil
	}
	switch {
	case name == ClockSim || name == ClockEmulated:
		return fmt.Errorf("the clock %s is chosen when a run begins; start one with it", name)
	case name != ClockLive && name != ClockPaced:
		return fmt.Errorf("no clock %q; there are %s and %s, and %s and %s when a run begins", name, ClockLive, ClockPaced, ClockEmulated, ClockSim)
	case r.cfg.Virtual:
		return fmt.Errorf("this run is a simulation in virtual time, which has no clock %s; start another run with it", name)
	case r.cfg.Emulated:
		return fmt.Errorf("this run has no models, its tokens are emulated, so there is no clock %s; start another run with it", name)
	case name == ClockLive:
		r.cfg.Pacer.SetProfile(nil)
	default:
		r.cfg.Pacer.SetProfile(r.cfg.Profile)
	}
	now := c.status()
	for _, s := range r.subs {
		s.stepNs.Store(0)
	}
	c.setting("clock", ClockText(old.Clock, old.Profile), ClockText(now.Clock, now.Profile))
	c.sendPolicy()
	return nil
}

// SetConcurrency sets how many requests the closed loop keeps outstanding.
func (r *Runtime) SetConcurrency(n int) error {
	if n < 1 || n > MaxConcurrency {
		return fmt.Errorf("concurrency %d is outside 1 to %d", n, MaxConcurrency)
	}
	if a := r.cfg.Arrivals; a != nil {
		return fmt.Errorf("requests arrive by %s; a number of them that is kept outstanding belongs to the closed loop", a)
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

// SetPolicy sets the threshold policy by its form, as the --batch flag does.
func (r *Runtime) SetPolicy(form string) error {
	p, err := ParsePolicy(form, r.n)
	if err != nil {
		return err
	}
	c := &r.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.cfg.fits(&p); err != nil {
		return err
	}
	c.setPolicy(p)
	return nil
}

// SetB sets the threshold of one subserver and with it the fixed policy; the
// others keep what they have.
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
	next := c.vector()
	next[p] = b
	to := event.Policy{Kind: event.Fixed, B: next}
	if !slices.ContainsFunc(next, func(b int) bool { return b > 1 }) {
		to.Kind = event.Eager // the same, and said so
	}
	c.setPolicy(to)
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

// Cancel ends a request as aborted.
func (r *Runtime) Cancel(id event.ReqID) { r.client.in.put(clientItem{op: opCancel, req: id}) }
