package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no file of a sweep, and a line of one that is no point, is named.
func TestSweepFileIsHeld(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.jsonl")
	head := `{"sweep":1,"about":{}}` + "\n"
	for text, want := range map[string]string{
		"":                          "no file of a sweep",
		`{"sweep":1}` + "\n" + head: "no file of a sweep",
		head:                        "no points yet",
		head + head:                 "line 2 is no point",
		head + "null\n":             "line 2 is no point",
		head + "\n":                 "line 2",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readSweep(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
