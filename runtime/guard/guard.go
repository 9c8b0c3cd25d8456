package guard

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Crash is a recovered panic.
type Crash struct {
	Name  string // the goroutine, as given to Go or Do
	Value any    // what was given to panic
	Stack []byte // stack of the goroutine at the panic
	File  string // path of the crash file; empty when there is none

	// Nested holds what went wrong while this crash was handled: a crash file
	// that could not be written, hooks that panicked themselves.
	Nested []string
}

// Error makes a Crash usable as an error: name and value in one line.
func (c Crash) Error() string {
	return fmt.Sprintf("%s panicked: %v", c.Name, c.Value)
}

// Hook takes a crash. Hooks run on the goroutine that panicked, one crash at
// a time, so a hook must not wait for [Guard.Wait] or start a guarded
// goroutine and wait for it.
type Hook func(Crash)

// Guard starts goroutines and handles their panics. The zero value is a guard
// that writes no files. It is safe for concurrent use.
type Guard struct {
	dir     string
	running sync.WaitGroup

	handling sync.Mutex // held while a crash is handled
	serial   int        // crash files tried; under handling

	mu    sync.Mutex // guards what hooks may reach
	hooks []Hook
	first *Crash
}

// New returns a guard that writes crash files into dir (created when needed;
// none are written if dir is empty) and has the given hooks, added in order.
func New(dir string, hooks ...Hook) *Guard {
	return &Guard{dir: dir, hooks: slices.Clone(hooks)}
}

// AddHook adds a hook. Hooks run newest first, like deferred calls: what was
// set up last (the terminal) is put back first, so that the others can print.
func (g *Guard) AddHook(hook Hook) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hooks = append(g.hooks, hook)
}

// Go runs fn on a new goroutine. When it panics, the crash file is written,
// then onPanic (may be nil) and the guard's hooks see the crash. If there is
// no hook at all, or each of them panicked too, the panic goes on and ends the
// process.
func (g *Guard) Go(name string, onPanic Hook, fn func()) {
	g.running.Go(func() { g.Do(name, onPanic, fn) })
}

// Do is Go on the calling goroutine: it returns after fn has returned or its
// panic was handled.
func (g *Guard) Do(name string, onPanic Hook, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			g.handle(Crash{Name: name, Value: v, Stack: debug.Stack()}, onPanic)
		}
	}()
	fn()
}

// Wait returns when every goroutine started by Go has ended and its panic, if
// any, has been handled.
func (g *Guard) Wait() { g.running.Wait() }

// First returns the first crash of this guard, for the exit code and the last
// line on the terminal. Hooks may call it.
func (g *Guard) First() (Crash, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == nil {
		return Crash{}, false
	}
	return *g.first, true
}

func (g *Guard) handle(c Crash, onPanic Hook) {
	g.handling.Lock()
	defer g.handling.Unlock()

	if g.dir != "" {
		g.serial++
		path, err := writeFile(g.dir, g.serial, c)
		if err != nil {
			c.Nested = append(c.Nested, fmt.Sprintf("the crash file could not be written: %v", err))
		}
		c.File = path
	}
	_, earlier := g.First()
	if !earlier {
		g.setFirst(c)
	}

	hooks := g.hooksFor(onPanic)
	handled := false
	for i, hook := range hooks {
		nested := runHook(hook, c)
		if nested == "" {
			handled = true
			continue
		}
		nested = fmt.Sprintf("hook %d of %d panicked: %s", i+1, len(hooks), nested)
		c.Nested = append(c.Nested[:len(c.Nested):len(c.Nested)], nested)
		if err := appendFile(c.File, nested); err != nil {
			c.Nested = append(c.Nested, fmt.Sprintf("the crash file could not be extended: %v", err))
		}
		if !earlier {
			g.setFirst(c)
		}
	}
	if !handled {
		// The runtime prints the stack of this frame, so the one that matters
		// travels in the value.
		panic(unhandled{c})
	}
}

// hooksFor returns the hooks of one crash in the order they run.
func (g *Guard) hooksFor(onPanic Hook) []Hook {
	g.mu.Lock()
	defer g.mu.Unlock()
	hooks := make([]Hook, 0, len(g.hooks)+1)
	if onPanic != nil {
		hooks = append(hooks, onPanic)
	}
	for _, hook := range slices.Backward(g.hooks) {
		hooks = append(hooks, hook)
	}
	return hooks
}

func (g *Guard) setFirst(c Crash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.first = &c
}

// runHook runs one hook and returns its panic with its stack, or "".
func runHook(hook Hook, c Crash) (nested string) {
	defer func() {
		if v := recover(); v != nil {
			nested = fmt.Sprintf("%v\n%s", v, debug.Stack())
		}
	}()
	hook(c)
	return ""
}

// unhandled is the value of a panic that no hook took.
type unhandled struct{ Crash }

func (u unhandled) Error() string {
	return fmt.Sprintf("%s\n%s", u.Crash.Error(), u.Stack)
}
