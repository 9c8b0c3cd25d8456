package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/algos"
	"tokenrouter/scripting/library"
)

// Every shipped router has a line that says what it does; one's own files have
// theirs and the path, whatever they hold.
func TestListRouters(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mine":  "--  mine.lua :  what I \x1b[31mtry\nfunction route(r) return STAY end\n",
		"bare":  "function route(r) return STAY end\n",
		"empty": "",
		"r2r":   "-- another one\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".lua"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := listRouters(&out, library.Library{Dir: dir, Embedded: algos.Routers()}); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(line, " ")
		lines[name] = strings.Join(strings.Fields(rest), " ")
	}
	for _, r := range algos.Routers() {
		if r.Name != "r2r" && !strings.HasSuffix(lines[r.Name], ".") {
			t.Errorf("%s: %q", r.Name, lines[r.Name])
		}
	}
	for name, want := range map[string]string{
		"mine":  "what I [31mtry " + dir + "/mine.lua",
		"bare":  dir + "/bare.lua",
		"empty": dir + "/empty.lua",
		"r2r":   "another one " + dir + "/r2r.lua",
		"citer": "the small model writes while a trained head is confident in it.",
	} {
		if lines[name] != want {
			t.Errorf("%s: %q, want %q", name, lines[name], want)
		}
	}
	if len(lines) != len(algos.Routers())+3 {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}
