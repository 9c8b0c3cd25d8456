//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/store"
)

// watched is a run of tiny models that a test may end. It calls act once, as soon
// as the fifth request is over, and returns the summary, the session and what execute
// says.
func watched(t *testing.T, act func(*cluster)) (sum reportJSON, o *store.Opened, ended error) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // for the crash file
	var run runCmd
	parser, err := kong.New(&run, words().CloneWith(kong.Vars{"clock": "live"}))
	if err == nil {
		_, err = parser.Parse([]string{
			"--models=tiny-37k,tiny-114k", "--sessions=" + dir, "--routers=" + dir, "--requests=1000000", "--json",
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.todo()
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.build(w)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer func(f *os.File) { os.Stdout = f }(os.Stdout)
	os.Stdout = out
	sub := c.runtime.Tape().Subscribe()
	go func() {
		for range sub.Ready() {
			for _, r := range sub.Next(nil, 0) {
				if res, ok := r.Host.(*tape.Result); ok && res.Req == 5 {
					act(c)
					return
				}
			}
		}
	}()
	ended = run.execute(c, w)
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &sum); err != nil {
		t.Fatalf("the summary %q: %v", b, err)
	}
	if o, err = store.Open(sum.Session); err != nil {
		t.Fatal(err)
	}
	return sum, o, ended
}

// A signal ends a run in order: open requests are aborted, the summary of what
// was done is printed, the session is closed, and the exit code says that the run
// was interrupted.
func TestSignalEndsRun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the tests were started with it ignored")
			}
			sum, o, err := watched(t, func(*cluster) { _ = syscall.Kill(syscall.Getpid(), sig) })
			if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitInterrupted {
				t.Errorf("the run ends with %v", err)
			}
			all := 0
			for _, n := range sum.Ends {
				all += n
			}
			if sum.Ends["aborted"] == 0 || sum.Ends["stop"] == 0 || sum.Ends["open"] != 0 || all != sum.Requests {
				t.Errorf("%d requests ended %v", sum.Requests, sum.Ends)
			}
			if !o.Report.Whole() || o.Report.Reason != "interrupted" {
				t.Errorf("the session: %s", &o.Report)
			}
		})
	}
}

// A panic of a goroutine ends a run with an error that names it and the file with
// the details; the session is closed and can be read (case J2).
func TestCrashEndsRun(t *testing.T) {
	sum, o, err := watched(t, func(c *cluster) { c.guard.Go("a loop of the test", nil, func() { panic("on purpose") }) })
	if err == nil || !strings.HasPrefix(err.Error(), "a loop of the test panicked: on purpose; the session is closed and readable, details are in ") {
		t.Fatalf("the run ends with %v", err)
	}
	_, file, _ := strings.Cut(err.Error(), "details are in ")
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "on purpose") {
		t.Errorf("the crash file: %v, %.200s", err, b)
	}
	if !o.Report.Whole() || o.Report.Reason != "crashed" || sum.Ends["stop"] == 0 {
		t.Errorf("the session: %s; ends %v", &o.Report, sum.Ends)
	}
}
