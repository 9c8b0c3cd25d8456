package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/internal/synth"
)

// fakeRuntime runs a synthetic cluster by the clock of the test.
type fakeRuntime struct {
	dir   string
	tape  *tape.Tape
	start time.Time

	mu       sync.Mutex
	cluster  *synth.Cluster
	plan     *tape.Plan
	status   Status
	paused   int64 // ns spent in pauses
	since    time.Time
	closed   int
	stuck    bool // Close does not return before its context ends
	explode  bool // Explain and Export panic
	refuse   error
	headless string // router that cannot run here
	broken   error  // the router's file cannot become the router
	stop     chan struct{}
}

var paperPlan = sync.OnceValue(func() *tape.Plan { return synth.Plan(synth.Paper()) })

// planOf is the plan of the paper's pair, or what it says said of a cluster of cfg:
// the screens do not ask whether it is right.
func planOf(cfg synth.Config) *tape.Plan {
	plan := *paperPlan()
	plan.N = cfg.N
	return &plan
}

func newFake(dir string, cfg synth.Config) *fakeRuntime {
	cfg.Plan = planOf(cfg)
	f := &fakeRuntime{dir: dir, tape: tape.New(), start: time.Now(), cluster: synth.New(cfg), plan: cfg.Plan, stop: make(chan struct{})}
	f.status = Status{
		Router: "r2r.lua", Hash: synth.Hash, Clock: "paced", Profile: "a100-r2r", Speed: 1, Concurrency: cfg.N,
		Policy: "table", Recording: true,
		Knobs:   []KnobState{{Name: "threshold", Help: "nats of entropy", Value: 0.5, Default: 0.5, Max: 4}},
		Routers: []string{"r2r.lua", "rstitch.lua", "me.lua"},
	}
	return f
}

// work appends what the cluster does, every 5 ms.
func (f *fakeRuntime) work() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		f.mu.Lock()
		if !f.status.Paused {
			f.tape.Append(f.cluster.Until(int64(time.Since(f.start)) - f.paused)...)
		}
		f.mu.Unlock()
	}
}

func (f *fakeRuntime) Tape() *tape.Tape { return f.tape }
func (f *fakeRuntime) Now() int64       { return int64(time.Since(f.start)) }

func (f *fakeRuntime) Info() Info {
	return Info{
		Program: "tokenrouter",
		Models:  []ModelInfo{{Role: "small", Name: "tiny-37k", Params: 36_800}, {Role: "large", Name: "tiny-3.7m", Params: 3_710_944}},
		Session: f.dir, Profile: "a100-r2r", Text: synth.Text, EOS: []event.Token{synth.EOS}, GPUNote: "no NVIDIA driver",
	}
}

func (f *fakeRuntime) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.B = append([]int(nil), s.B...)
	s.Knobs = append([]KnobState(nil), s.Knobs...)
	return s
}

func (f *fakeRuntime) set(name string, change func(s *Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
	f.cluster.Host(&tape.Setting{Setting: name, Old: "", New: ""})
}

func (f *fakeRuntime) SetPaused(on bool) {
	f.set("paused", func(s *Status) {
		if s.Paused == on {
			return
		}
		s.Paused = on
		if on {
			f.since = time.Now()
			return
		}
		f.paused += int64(time.Since(f.since))
	})
}

func (f *fakeRuntime) SetSpeed(v float64) error {
	f.set("speed", func(s *Status) { s.Speed = v })
	return nil
}

func (f *fakeRuntime) SetClock(c string) error {
	f.set("clock", func(s *Status) { s.Clock = c })
	return nil
}

func (f *fakeRuntime) SetConcurrency(n int) error {
	if n > 64 {
		return errors.New("concurrency 64 is the most: every KV is reserved")
	}
	f.set("concurrency", func(s *Status) { s.Concurrency = n })
	return nil
}

func (f *fakeRuntime) SetRouter(name string) error {
	if f.headless == name {
		return errors.New(name + ":10: there is no head")
	}
	f.set("router", func(s *Status) { s.Router = name })
	return nil
}

func (f *fakeRuntime) SetKnob(name string, v float64) error {
	f.set("knob", func(s *Status) { s.Knobs[0].Value = v })
	return nil
}

func (f *fakeRuntime) SetB(p event.Peer, b int) error {
	f.mu.Lock()
	next := slices.Repeat([]int{1}, len(f.Info().Models))
	switch f.status.Policy {
	case "fixed":
		copy(next, f.status.B)
	case "table":
		copy(next, f.plan.B)
	}
	f.mu.Unlock()
	next[p] = b
	return f.setPolicy(event.Policy{Kind: event.Fixed, B: next})
}

func (f *fakeRuntime) SetPolicy(form string) error {
	if f.refuse != nil {
		return f.refuse
	}
	for _, p := range []event.Policy{{}, {Kind: event.Table, Table: f.plan.Table}, {Kind: event.LookAhead, B: f.plan.B}, {Kind: event.LockStep}, {Kind: event.Fixed, B: f.plan.B}, {Kind: event.Fixed, B: []int{1, 4}}} {
		if p.Form() == form {
			return f.setPolicy(p)
		}
	}
	return fmt.Errorf("no policy %q", form)
}

func (f *fakeRuntime) setPolicy(p event.Policy) error {
	f.set("batch", func(s *Status) {
		s.Policy, s.B = p.Kind.String(), nil
		if p.Kind == event.Fixed {
			s.B = p.B
		}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster.SetPolicy(p)
	plan := *f.plan
	plan.Policy = p.Form()
	f.cluster.Host(&plan)
	return nil
}

func (f *fakeRuntime) Edit() (string, error) { return filepath.Join(f.dir, "r2r.lua"), f.broken }

func (f *fakeRuntime) Explain(d Decided) string {
	if f.explode {
		panic("explained too much")
	}
	return fmt.Sprintf("r2r.lua:7  return to(%q), %s", "large", d.Row.Action)
}

func (f *fakeRuntime) Export(format string) (string, error) {
	if f.explode {
		panic("exported too much")
	}
	path := filepath.Join(f.dir, "export."+format)
	return path, os.WriteFile(path, []byte("{}\n"), 0o600)
}

func (f *fakeRuntime) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed++
	stuck := f.stuck
	f.mu.Unlock()
	if stuck {
		<-ctx.Done()
	}
	return nil
}

// screen is a terminal in the test: the program's output goes into it, what is
// typed and what the terminal answers goes to the program.
type screen struct {
	t     *testing.T
	emu   *vt.Emulator
	in    *io.PipeWriter
	fake  *fakeRuntime
	app   *App
	kill  context.CancelFunc
	done  chan error
	ended chan struct{}

	stopped sync.Once
	mu      sync.Mutex
	raw     bytes.Buffer
	writes  int
}

// Write implements io.Writer. Without a raw terminal the program writes bare
// line feeds, as for a cooked one.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.raw.Write(p)
	s.writes++
	s.mu.Unlock()
	if _, err := s.emu.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// start runs the whole program in a window of w by h. It must be called inside
// a synctest bubble.
func start(t *testing.T, w, h int, cfg synth.Config, app Config) *screen {
	t.Helper()
	s := &screen{t: t, emu: vt.NewEmulator(w, h), fake: newFake(t.TempDir(), cfg), done: make(chan error, 1), ended: make(chan struct{})}
	r, in := io.Pipe()
	s.in = in
	app.Input, app.Output, app.Width, app.Height = r, s, w, h
	if app.Environ == nil {
		app.Environ = []string{"TERM=xterm-256color", "COLORTERM=truecolor", "EDITOR=true"}
	}
	a, err := New(s.fake, app)
	if err != nil {
		t.Fatal(err)
	}
	s.app = a
	ctx, cancel := context.WithCancel(t.Context())
	s.kill = cancel
	go func() { // answers of the terminal
		buf := make([]byte, 256)
		for {
			n, err := s.emu.Read(buf)
			if err != nil {
				return
			}
			if _, err := in.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	go s.fake.work()
	go func() {
		defer close(s.ended)
		s.done <- a.Run(ctx)
	}()
	t.Cleanup(s.stop)
	return s
}

// stop ends the program and everything around it.
func (s *screen) stop() {
	s.stopped.Do(func() {
		s.in.Close()
		synctest.Wait()
		s.kill()
		<-s.ended
		close(s.fake.stop)
		_ = s.emu.Close()
		synctest.Wait()
	})
}

// text is the screen as it stands, after time has passed.
func (s *screen) text(d time.Duration) string {
	time.Sleep(d)
	synctest.Wait()
	return s.emu.String()
}

// press types keys and gives the frame behind it.
func (s *screen) press(keys string) string {
	s.t.Helper()
	if _, err := s.in.Write([]byte(keys)); err != nil {
		s.t.Fatal(err)
	}
	wait := 2 * frameTime
	if strings.HasSuffix(keys, "\x1b") {
		wait += 2 * uv.DefaultEscTimeout
	}
	return s.text(wait)
}

// sent is all that the program has written, and in how many pieces.
func (s *screen) sent() (raw string, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String(), s.writes
}

func (s *screen) has(text string, want ...string) {
	s.t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			s.t.Errorf("the screen does not show %q:\n%s", w, text)
		}
	}
}
