package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tokenrouter/runtime/ladder"
)

// prepared is a ladder of short runs in virtual time.
func prepared(t *testing.T, args ...string) *ablation {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for the crash file
	var cmd ablateCmd
	parser, err := kong.New(&cmd, words().CloneWith(kong.Vars{"clock": "sim", "seconds": "0"}))
	if err == nil {
		_, err = parser.Parse(append([]string{
			"--routers=" + t.TempDir(), "-n2,4", "--repeat=2", "--seconds=4", "--warm-up=1", "--rungs=lockstep,async",
		}, args...))
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := cmd.prepare()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Case K10: an interrupt ends a ladder with what was run; the table marks what is
// missing, and the exit code tells.
func TestInterruptedLadder(t *testing.T) {
	b := prepared(t, "--json")
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := b.run(ctx, func(*ladder.Cell) error {
		if runs++; runs == 3 {
			cancel()
		}
		return nil
	})
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitInterrupted || !strings.Contains(err.Error(), "after 3 of 8 runs") {
		t.Errorf("it ends with %v", err)
	}
	var out strings.Builder
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	var got ablationJSON
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Missing) != 5 || got.Missing[0] != (ladder.MissingJSON{Rung: "async", N: 4, Seed: 1}) {
		t.Errorf("missing: %+v", got.Missing)
	}
	if got.Rows[0].Seeds != 1 || got.Rows[3].Seeds != 0 || got.Rows[1].OverBefore[ladder.Throughput].Pairs != 1 {
		t.Errorf("rows: %+v", got.Rows)
	}
	b.cmd.JSON = false
	out.Reset()
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"async*", "* missing: 5 of 8 runs", "3 runs in"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A kill in the middle of a line leaves the lines before it; the next go writes
// that run anew.
func TestKeptLadderAfterAKill(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kept.jsonl")
	b := prepared(t)
	open := func() *keeper {
		t.Helper()
		k, cells, err := openKeeper(name, &b.about, b.grid)
		if err != nil {
			t.Fatal(err)
		}
		b.cells = cells
		return k
	}
	k := open()
	full, runs := errors.New("enough"), 0
	err := b.run(t.Context(), func(c *ladder.Cell) error {
		if err := k.add(c); err != nil {
			return err
		}
		if runs++; runs == 2 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) {
		t.Fatalf("it ends with %v", err)
	}
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data[:len(data)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	k = open()
	if len(b.cells) != 1 || b.cells[0].Rung != ladder.Lockstep || b.cells[0].Summary.TokensPerS == 0 {
		t.Fatalf("%d runs are left", len(b.cells))
	}
	if err := errors.Join(b.run(t.Context(), k.add), k.close()); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(again), string(data)) { // virtual time: the run comes out as it was
		t.Error("the run that was cut is not what it was before")
	}
	if n := strings.Count(string(again), "\n"); n != 9 {
		t.Errorf("%d lines, want the head and 8 runs", n)
	}
	if err := open().close(); err != nil || len(b.cells) != 8 {
		t.Errorf("%d runs are kept, %v", len(b.cells), err)
	}
	for text, want := range map[string]string{
		"{\"ladder\":2}\n":       "format 2",
		"{}\n":                   "no file of a ladder",
		"not JSON\n":             "no file of a ladder",
		"somebody's notes":       "no file of a ladder",
		string(data[:40]) + "\n": "no file of a ladder",
		strings.Replace(string(data), "rung", "rung\"", 1): "line 2",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openKeeper(name, &b.about, b.grid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
		if left, err := os.ReadFile(name); err != nil || string(left) != text {
			t.Errorf("%.60q was changed: %.60q, %v", text, left, err)
		}
	}
	// What is no plain file is not read: a device may have no end.
	if _, _, err := openKeeper(t.TempDir(), &b.about, b.grid); err == nil || !strings.Contains(err.Error(), "no file that runs can be kept in") {
		t.Errorf("a folder: %v", err)
	}
	// What a kill has left of the first line is written anew.
	if err := os.WriteFile(name, data[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open().close(); err != nil || len(b.cells) != 0 {
		t.Errorf("%d runs are kept, %v", len(b.cells), err)
	}
}

// Two ladders that keep in one file at the same time do not write over each other.
func TestTwoLaddersKeepInOneFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kept.jsonl")
	b := prepared(t)
	var keepers [2]*keeper
	for i := range keepers {
		var err error
		if keepers[i], _, err = openKeeper(name, &b.about, b.grid); err != nil {
			t.Fatal(err)
		}
	}
	order := b.grid.Order()
	for i, s := range order[:4] {
		if err := keepers[i%2].add(&ladder.Cell{Rung: s.Rung.Name, N: s.N, Seed: s.Seed}); err != nil {
			t.Fatal(err)
		}
	}
	k, cells, err := openKeeper(name, &b.about, b.grid)
	if err != nil || len(cells) != 4 {
		t.Fatalf("%d runs are kept, %v", len(cells), err)
	}
	for _, k := range append(keepers[:], k) {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	}
}
