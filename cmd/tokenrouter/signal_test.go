//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/store"
)

// A signal ends a run in order: open requests are aborted, the summary of what
// was done is printed, the session is closed, and the exit code says that the run
// was interrupted.
func TestSignalEndsRun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the tests were started with it ignored")
			}
			dir := t.TempDir()
			var run runCmd
			parser, err := kong.New(&run, kong.Vars{"models": ""})
			if err == nil {
				_, err = parser.Parse([]string{
					"--models=tiny-37k,tiny-114k", "--sessions=" + dir, "--routers=" + dir, "--requests=1000000", "--json",
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			source, err := run.problems()
			if err != nil {
				t.Fatal(err)
			}
			c, err := run.build(work{source: source, limit: run.Requests, name: "problems", clock: run.Clock})
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
							_ = syscall.Kill(syscall.Getpid(), sig)
							return
						}
					}
				}
			}()
			err = run.execute(c, run.Requests)
			if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitInterrupted {
				t.Errorf("the run ends with %v", err)
			}

			b, err := os.ReadFile(out.Name())
			if err != nil {
				t.Fatal(err)
			}
			var sum reportJSON
			if err := json.Unmarshal(b, &sum); err != nil {
				t.Fatalf("the summary %q: %v", b, err)
			}
			all := 0
			for _, n := range sum.Ends {
				all += n
			}
			if sum.Ends["aborted"] == 0 || sum.Ends["stop"] == 0 || sum.Ends["open"] != 0 || all != sum.Requests {
				t.Errorf("%d requests ended %v", sum.Requests, sum.Ends)
			}
			o, err := store.Open(sum.Session)
			if err != nil {
				t.Fatal(err)
			}
			if !o.Report.Whole() || o.Report.Reason != "interrupted" {
				t.Errorf("the session: %s", &o.Report)
			}
		})
	}
}
