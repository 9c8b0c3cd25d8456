package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"github.com/charmbracelet/x/term"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
	"tokenrouter/sessions/store"
	"tokenrouter/tui/app"
)

// boardCmd opens the board, or prints one snapshot of it.
type boardCmd struct {
	clusterFlags
	Once    bool    `help:"Print one snapshot of the board as text and exit."`
	Seconds float64 `default:"3" help:"With --once: how long to run before the snapshot, in the clock's time."`
	Theme   string  `default:"auto" enum:"auto,dark,light" help:"Colours for a dark or a light background: auto, dark or light."`
	Palette string  `default:"default" enum:"default,deuteranopia" help:"default, or deuteranopia: colours that are told apart without red and green."`
	ASCII   bool    `name:"ascii" help:"Draw with ASCII characters only."`

	clockGiven bool
}

// AfterApply notes whether the clock was chosen. Models from disk have a rhythm of
// their own on this machine, so theirs is live unless somebody says otherwise.
func (b *boardCmd) AfterApply(ctx *kong.Context) error {
	for _, p := range ctx.Path {
		b.clockGiven = b.clockGiven || p.Flag != nil && p.Flag.Name == "clock"
	}
	return nil
}

func (b *boardCmd) Run() error {
	terminal := term.IsTerminal(os.Stdout.Fd()) && term.IsTerminal(os.Stdin.Fd())
	if why := noScreen(terminal, os.Getenv("TERM")); why != "" && !b.Once {
		fmt.Fprintf(os.Stderr, "tokenrouter: %s; printing one snapshot instead (as --once does)\n", why)
		b.Once = true
	}
	if b.Once && !(b.Seconds > 0 && b.Seconds <= 3600) {
		return usage(fmt.Errorf("--seconds %g is outside 0 to 3600", b.Seconds))
	}
	if !b.clockGiven && (b.Tokens == "" || b.modelled()) && b.own() {
		b.Clock = live.ClockLive
	}
	w := work{watch: !b.Once}
	switch {
	case b.Once:
		w.horizon = time.Duration(b.Seconds * float64(time.Second))
	case b.Speed == nil:
		one := 1.0
		b.Speed = &one
	}
	c, err := b.build(w)
	if err != nil {
		return err
	}
	if b.Once {
		return b.snapshot(c)
	}
	return b.open(c)
}

// noScreen says why the board cannot be shown, "" if it can.
func noScreen(terminal bool, kind string) string {
	switch {
	case !terminal:
		return "standard input and output are no terminal"
	case kind == "dumb":
		return "a terminal of type dumb (TERM) has no screen to draw on"
	}
	return ""
}

// open shows the board until the user quits. A panic anywhere restores the
// terminal first, then closes the session, then tells what happened.
func (b *boardCmd) open(c *cluster) error {
	ctx, cancel := signal.NotifyContext(context.Background(), endSignals()...)
	defer cancel()
	screen := &screenRuntime{cluster: c}
	a, err := app.New(screen, app.Config{
		Theme: b.Theme, Palette: b.Palette, ASCII: b.ASCII, Environ: os.Environ(),
		Go:      func(name string, fn func()) { c.guard.Go(name, nil, fn) },
		Do:      func(name string, fn func()) { c.guard.Do(name, nil, fn) },
		Started: func(restore func()) { screen.setRestore(restore) },

		CloseWithin: c.timeout(),
	})
	if err != nil {
		return errors.Join(usage(err), screen.Close(ctx))
	}
	c.guard.AddHook(func(guard.Crash) {
		screen.restore()
		cancel()
	})
	c.runtime.Start()
	err = a.Run(ctx)
	err = joinOnce(err, screen.Close(context.Background())) // Run may have told it already
	if crash, ok := c.guard.First(); ok {
		return crashError(crash)
	}
	if path := c.path(); path != "" {
		fmt.Println("session", path)
	}
	if ctx.Err() != nil {
		err = errors.Join(&exitError{exitInterrupted, errors.New("ended by a signal")}, err)
	}
	return err
}

// joinOnce adds an error to others that may hold it already.
func joinOnce(err, more error) error {
	if errors.Is(err, more) {
		return err
	}
	return errors.Join(err, more)
}

// screenRuntime is the runtime as the screens see it.
type screenRuntime struct {
	cluster *cluster
	speed   speedometer

	once     sync.Once
	closeErr error

	mu        sync.Mutex
	restoreFn func()
}

func (s *screenRuntime) setRestore(fn func()) {
	s.mu.Lock()
	s.restoreFn = fn
	s.mu.Unlock()
}

func (s *screenRuntime) restore() {
	s.mu.Lock()
	fn := s.restoreFn
	s.mu.Unlock()
	if fn != nil {
		fn()
	}
}

func (s *screenRuntime) rt() *live.Runtime { return s.cluster.runtime }

func (s *screenRuntime) Tape() *tape.Tape { return s.rt().Tape() }
func (s *screenRuntime) Now() int64       { return s.rt().Now() }

func (s *screenRuntime) Info() app.Info {
	c := s.cluster
	info := app.Info{
		Program: "tokenrouter " + version(), Session: c.path(), Profile: c.profile.Name, Seed: c.flags.Seed,
		Text: c.text, EOS: c.cast.eos, Tokens: c.flags.Tokens, Arrivals: c.flags.openLoop(),
		Step: func(p event.Peer, rows int) time.Duration {
			b := cost.Decoding(rows, 0)
			return c.profile.Step(int(p), &b)
		},
	}
	for _, m := range c.cast.models {
		info.Models = append(info.Models, app.ModelInfo{Role: m.Role, Name: m.Name, Params: m.Params, Hash: m.Hash, Seats: c.flags.Seats})
	}
	return info
}

func (s *screenRuntime) Status() app.Status {
	c := s.cluster
	st := s.rt().Status()
	out := app.Status{
		Router: st.RouterFile, Hash: st.RouterHash, Clock: st.Clock, Profile: st.Profile, Speed: st.Speed,
		Paused: st.Paused, Concurrency: st.Concurrency, Policy: st.Policy.Kind.String(), B: st.B,
		Routers: s.rt().Routers(), Editable: st.RouterPath,
	}
	select {
	case <-s.rt().Done():
		out.Over = true
	default:
	}
	if out.Virtual() {
		still := st.Paused || out.Over // with no request left time has nowhere to go
		reached, wall := s.speed.read(time.Now(), s.rt().Now(), st.Speed, still)
		if out.Wall = int64(wall); !still {
			out.Reached = reached
		}
	}
	for _, k := range s.rt().Knobs() {
		out.Knobs = append(out.Knobs, app.KnobState{Name: k.Name, Help: k.Help, Value: k.Value, Default: k.Default, Min: k.Min, Max: k.Max})
	}
	if c.session == nil {
		out.RecordNote = "not recorded (--no-record)"
		return out
	}
	out.Recorded = uint64(c.session.Bytes())
	out.RecordNote = c.session.Stopped()
	out.Recording = out.RecordNote == ""
	return out
}

func (s *screenRuntime) SetPaused(on bool)                    { s.rt().SetPaused(on) }
func (s *screenRuntime) SetSpeed(f float64) error             { return s.rt().SetSpeed(f) }
func (s *screenRuntime) SetClock(name string) error           { return s.rt().SetClock(name) }
func (s *screenRuntime) SetConcurrency(n int) error           { return s.rt().SetConcurrency(n) }
func (s *screenRuntime) SetRouter(name string) error          { return s.rt().SetRouter(name) }
func (s *screenRuntime) SetKnob(name string, v float64) error { return s.rt().SetKnob(name, v) }
func (s *screenRuntime) SetB(p event.Peer, b int) error       { return s.rt().SetB(p, b) }
func (s *screenRuntime) SetPolicy(form string) error          { return s.rt().SetPolicy(form) }
func (s *screenRuntime) Edit() (string, error)                { return s.rt().Edit() }

func (s *screenRuntime) Explain(d app.Decided) string {
	in := scripting.Row{
		Req: d.Row.Req, Output: &d.Row.Output, Pos: d.Pos, PromptLen: d.PromptLen, Step: d.Pos - d.PromptLen,
		Prefill: d.Prefill, State: d.State, Fields: d.Fields, Emitted: d.Emitted,
		Last: d.MaxLen > 0 && d.Pos+1 >= d.MaxLen, // the runtime knows the end tokens
	}
	file, line, src, err := s.rt().Explain(d.Core, &d.Row, &in, d.Knobs)
	switch {
	case err != nil:
		return err.Error()
	case line == 0:
		return "" // a fault before its first line; the fault says where
	}
	return fmt.Sprintf("%s:%d  %s", file, line, withoutComment(src))
}

// withoutComment cuts a Lua comment off a line, unless it stands in a string.
func withoutComment(src string) string {
	for at := 0; ; {
		i := strings.Index(src[at:], "--")
		if i < 0 {
			return src
		}
		at += i
		if code := src[:at]; strings.Count(code, `"`)%2 == 0 && strings.Count(code, "'")%2 == 0 {
			return strings.TrimRight(code, " \t")
		}
		at += 2
	}
}

// Export writes the session so far; the recorder flushes several times a
// second, so what is shown is nearly what is written.
func (s *screenRuntime) Export(format string) (string, error) {
	if s.cluster.session == nil {
		return "", errors.New("nothing is recorded (--no-record), so there is nothing to export")
	}
	opened, err := store.Open(s.cluster.path())
	if err != nil {
		return "", err
	}
	out, err := writeExport(opened, format, "")
	if err != nil {
		// The session's folder may be full or read-only; the run goes on, and
		// so does the wish to have the file.
		var second error
		if out, second = writeExport(opened, format, filepath.Join(".", filepath.Base(s.cluster.path())+"-"+exportName[format])); second != nil {
			return "", errors.Join(err, second)
		}
	}
	return out, nil
}

// Close ends the run and the session, once.
func (s *screenRuntime) Close(ctx context.Context) error {
	s.once.Do(func() { s.closeErr = s.cluster.close(ctx, "quit") })
	return s.closeErr
}
