//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Programs that begin at the same time on the same new file write one first line, and
// none takes what another is writing for a line that a kill has cut short.
func TestManyKeepInOneFile(t *testing.T) {
	type run struct{ From, N int }
	const programs, runs = 8, 12
	name := filepath.Join(t.TempDir(), "kept.jsonl")
	long := strings.Repeat("x", 64<<10)
	errs := make([]error, programs)
	var all sync.WaitGroup
	for p := range programs {
		all.Go(func() {
			for n := range runs {
				k, _, err := openKept(name, "test", "all", func(*run) bool { return true })
				if err == nil {
					err = errors.Join(k.append(struct {
						run
						Long string
					}{run{p, n}, long}), k.close())
				}
				errs[p] = errors.Join(errs[p], err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte(`{"test":1`)); n != 1 {
		t.Errorf("%d first lines", n)
	}
	k, had, err := openKept(name, "test", "all", func(*run) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if err := k.close(); err != nil {
		t.Error(err)
	}
	seen := map[run]bool{}
	for _, r := range had {
		seen[r] = true
	}
	if len(had) != programs*runs || len(seen) != len(had) {
		t.Errorf("%d runs are kept, %d different ones, want %d", len(had), len(seen), programs*runs)
	}
}

// A pipe has no end as long as nobody closes it: it is refused, not waited for.
func TestSweepIsNotReadFromAPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := readSweep(name); err == nil || !strings.Contains(err.Error(), "no file of a sweep") {
		t.Error(err)
	}
	if _, _, err := openKept(name, "test", "all", func(*struct{}) bool { return true }); err == nil || !strings.Contains(err.Error(), "no file that runs can be kept in") {
		t.Error(err)
	}
}
