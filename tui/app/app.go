package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"tokenrouter/runtime/tape"
	"tokenrouter/tui/board"
	"tokenrouter/tui/theme"
)

// fps bounds the frames a second.
const fps = 30

// closeWithin is how long quitting may take where Config does not say.
const closeWithin = 900 * time.Millisecond

// Config is how the screens are shown. The zero value takes everything from the
// terminal and the environment.
type Config struct {
	Theme   string // auto (or ""), dark, light
	Palette string // default (or ""), deuteranopia
	ASCII   bool   // no braille, box or block characters
	Input   io.Reader
	Output  io.Writer
	Width   int // of the window when Output is no terminal
	Height  int
	Environ []string
	CopyDir string // where copied text is written as well; the session's folder if ""
	// CloseWithin is how long quitting may wait for the step under way. 0 is 0.9 s.
	CloseWithin time.Duration
	// Go starts a goroutine under the guard. Nil starts a plain one.
	Go func(name string, fn func())
	// Do is Go on the calling goroutine. Nil calls fn.
	Do func(name string, fn func())
	// Started gets a function that ends the program at once and restores the
	// terminal; for the guard.
	Started func(kill func())
}

func (c *Config) check() error {
	switch c.Theme {
	case "", "auto", "dark", "light":
	default:
		return fmt.Errorf("unknown theme %q: use auto, dark or light", c.Theme)
	}
	switch theme.Palette(c.Palette) {
	case "", theme.Default, theme.Deuteranopia:
	default:
		return fmt.Errorf("unknown palette %q: use %s or %s", c.Palette, theme.Default, theme.Deuteranopia)
	}
	return nil
}

// App is one terminal session over a Runtime.
type App struct {
	rt  Runtime
	cfg Config
	sub *tape.Sub

	mu    sync.Mutex // guards board
	board *board.Model

	closing atomic.Bool   // Close has been called
	closed  chan struct{} // it has returned
	closeOf error
}

// New subscribes to the tape of rt: records appended later are all seen.
func New(rt Runtime, cfg Config) (*App, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Go == nil {
		cfg.Go = func(_ string, fn func()) { go fn() }
	}
	if cfg.Do == nil {
		cfg.Do = func(_ string, fn func()) { fn() }
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	a := &App{rt: rt, cfg: cfg, sub: rt.Tape().Subscribe(), closed: make(chan struct{})}
	a.board = board.New(rt.Info(), theme.New(theme.Options{
		Profile: colorprofile.Unknown,
		Light:   cfg.Theme == "light",
		Palette: theme.Palette(cfg.Palette),
		ASCII:   cfg.ASCII,
	}))
	a.board.Explain = rt.Explain
	a.board.SetStatus(rt.Status())
	return a, nil
}

// Run shows the screens until the user quits or ctx ends; signals are the
// caller's and end ctx. The session is closed when it returns, or the error says
// why not.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithFPS(fps), tea.WithoutSignalHandler(), tea.WithEnvironment(a.cfg.Environ)}
	if a.cfg.Input != nil {
		opts = append(opts, tea.WithInput(a.cfg.Input))
	}
	if a.cfg.Output != nil {
		opts = append(opts, tea.WithOutput(a.cfg.Output))
	}
	if a.cfg.Width > 0 && a.cfg.Height > 0 {
		opts = append(opts, tea.WithWindowSize(a.cfg.Width, a.cfg.Height))
	}
	m := newModel(a)
	p := tea.NewProgram(m, opts...)
	if a.cfg.Started != nil {
		a.cfg.Started(p.Kill)
	}
	var feeding sync.WaitGroup
	a.feed(ctx, p.Send, &feeding)
	_, err := p.Run()
	cancel()
	feeding.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic) {
		err = nil
	}
	return errors.Join(err, a.end())
}

// end closes the session once and waits for that, but not for ever.
func (a *App) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(a.cfg.CloseWithin, closeWithin))
	defer cancel()
	if a.closing.CompareAndSwap(false, true) {
		a.cfg.Go("close", func() {
			a.closeOf = a.rt.Close(ctx)
			close(a.closed)
		})
	}
	select {
	case <-a.closed:
		return a.closeOf
	case <-ctx.Done():
		select {
		case <-a.closed:
			return a.closeOf
		default:
		}
		return errors.New("the session was not closed in time, as a step is still computing; it can be opened, what was not yet written is lost")
	}
}
