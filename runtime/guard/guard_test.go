package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// explode is found by name in the stack of its panic.
func explode() { panic("lost pen") }

// Case J2: a panic in a goroutine of the runtime reaches the hooks, newest
// first, with the path of a crash file that tells where it came from.
func TestPanicReachesHooks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "crashes") // not there yet
	var order []string
	var got Crash
	g := New(dir,
		func(c Crash) { order = append(order, "message"); got = c },
		func(Crash) { order = append(order, "session") },
	)
	g.AddHook(func(Crash) { order = append(order, "terminal") })
	g.Go("decode loop 1", func(Crash) { order = append(order, "own") }, explode)
	g.Wait()

	if want := []string{"own", "terminal", "session", "message"}; !slices.Equal(order, want) {
		t.Errorf("hooks ran as %v, want %v", order, want)
	}
	if got.Name != "decode loop 1" || got.Value != "lost pen" || !strings.Contains(string(got.Stack), "explode") {
		t.Errorf("crash %q %v with stack\n%s", got.Name, got.Value, got.Stack)
	}
	if got.Error() != "decode loop 1 panicked: lost pen" {
		t.Errorf("message %q", got.Error())
	}
	text := readCrash(t, got.File)
	for _, want := range []string{"decode loop 1 panicked: lost pen", "explode", "stacks of all goroutines", runtime.Version()} {
		if !strings.Contains(text, want) {
			t.Errorf("crash file lacks %q:\n%s", want, text)
		}
	}
	if filepath.Dir(got.File) != dir {
		t.Errorf("crash file %s lies outside %s", got.File, dir)
	}
	if first, ok := g.First(); !ok || first.File != got.File {
		t.Errorf("First() = %+v, %v", first, ok)
	}
}

func TestNoPanic(t *testing.T) {
	g := New(t.TempDir())
	g.AddHook(func(c Crash) { t.Errorf("hook ran for %v", c) })
	var mu sync.Mutex
	n := 0
	for range 8 {
		g.Go("worker", nil, func() { mu.Lock(); n++; mu.Unlock() })
	}
	// Goexit ends a goroutine without a panic.
	g.Go("leaver", nil, runtime.Goexit)
	g.Wait()
	if _, ok := g.First(); n != 8 || ok {
		t.Errorf("%d goroutines ran, crash %v", n, ok)
	}
}

// A panic inside a hook keeps no later hook from running and is written down.
func TestPanicInHook(t *testing.T) {
	g := New(t.TempDir())
	var seen []Crash
	g.AddHook(func(c Crash) { seen = append(seen, c) })
	g.AddHook(func(Crash) { panic(errors.New("session is gone")) })
	g.AddHook(func(c Crash) { seen = append(seen, c) })
	g.Go("inter-model loop", nil, explode)
	g.Wait()

	if len(seen) != 2 || len(seen[0].Nested) != 0 || len(seen[1].Nested) != 1 {
		t.Fatalf("hooks saw %+v", seen)
	}
	first, _ := g.First()
	for _, text := range []string{seen[1].Nested[0], first.Nested[0], readCrash(t, first.File)} {
		if !strings.Contains(text, "hook 2 of 3 panicked: session is gone") {
			t.Errorf("nested panic is missing in %s", text)
		}
	}
}

// A panic that no hook takes goes on with its own stack.
func TestPanicIsNeverSwallowed(t *testing.T) {
	broken := func(Crash) { panic("broken hook") }
	for name, g := range map[string]*Guard{"no hook": New(""), "only broken hooks": New("")} {
		var own Hook
		if name != "no hook" {
			g.AddHook(broken)
			own = broken
		}
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, ok := recover().(error)
				if !ok || !strings.Contains(err.Error(), "client loop panicked: lost pen") || !strings.Contains(err.Error(), "explode") {
					t.Errorf("panic went on as %v", err)
				}
			}()
			g.Do("client loop", own, explode)
			t.Error("the panic was swallowed")
		})
	}
}

func TestUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := New(file)
	var got Crash
	g.AddHook(func(c Crash) { got = c })
	g.Do("main", nil, explode)
	if got.File != "" || len(got.Nested) != 1 || !strings.Contains(got.Nested[0], "crash file could not be written") {
		t.Errorf("crash %+v", got)
	}
}

func TestPanicValues(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, "main panicked: panic called with nil argument"},
		{fmt.Errorf("wrapped: %w", os.ErrNotExist), "main panicked: wrapped: file does not exist"},
		{badError{}, "main panicked: %!v(PANIC=Error method: in Error)"},
	} {
		g := New(t.TempDir())
		var got Crash
		g.AddHook(func(c Crash) { got = c })
		g.Do("main", nil, func() { panic(c.value) })
		if !strings.HasPrefix(got.Error(), c.want) {
			t.Errorf("panic(%T) gives %q, want %q", c.value, got.Error(), c.want)
		}
	}
}

type badError struct{}

func (badError) Error() string { panic("in Error") }

// Many goroutines panic at once: each crash is handled, one at a time, and
// has a file of its own.
func TestConcurrentPanics(t *testing.T) {
	g := New(t.TempDir())
	files := map[string]bool{} // guarded by the rule that hooks run one at a time
	names := map[string]bool{}
	g.AddHook(func(c Crash) { files[c.File] = true; names[c.Name] = true })
	const n = 12
	for i := range n {
		g.Go(fmt.Sprintf("loop %d", i), nil, explode)
	}
	g.Wait()
	if len(files) != n || len(names) != n || files[""] {
		t.Errorf("%d files and %d names for %d panics", len(files), len(names), n)
	}
}

func readCrash(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
