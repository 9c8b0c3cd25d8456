package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What cannot be written to standard output is not taken for done.
func TestLostOutputIsAFailure(t *testing.T) {
	name := filepath.Join(t.TempDir(), "full")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full, err := os.Open(name) // for reading, so that every write fails
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if code := realMain([]string{"sim", "--requests", "1", "--max-tokens", "4", "--json", "--sessions", dir}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout = full
	for _, args := range [][]string{
		{"sim", "--requests", "1", "--max-tokens", "4", "--no-record"},
		{"ablate", "--requests", "1", "--max-tokens", "4", "-n", "1", "--repeat", "1", "--rungs", "async"},
		{"replay", "latest", "--sessions", dir},
		{"board", "--once", "--clock", "sim", "--seconds", "0.1", "--no-record"},
		{"sessions", "--sessions", dir},
		{"cost", "list"},
		{"cost", "show", "a100-r2r"},
		{"routers"},
	} {
		if code := realMain(args); code != exitFailed {
			t.Errorf("%v exits with %d", args, code)
		}
	}
}
