package tokenrouter_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the repository.
const module = "tokenrouter"

// room is a line of the table of rooms in ARCHITECTURE.md. A package imports
// lower floors only, and of its own room what stands before it. A member that
// ends in /... is every package below that has no place of its own; they do not
// import one another. The order is total within a room and across floors, so a
// cycle, were it ever to compile, would show as an import that goes up.
type room struct {
	floor   int
	members []string
}

var house = []room{
	{0, []string{"kernels/cpu", "kernels/mem", "kernels", "kernels/vec", "kernels/matmul", "kernels/gemm", "kernels/team", "kernels/limits"}},
	{0, []string{"runtime/event"}},
	{0, []string{"runtime/rng"}},
	{0, []string{"runtime/text"}},
	{0, []string{"runtime/guard"}},
	{1, []string{
		"runtime/model/tensor", "runtime/model/gguf", "runtime/model/safetensors", "runtime/model/tokenizer/template", "runtime/model/tokenizer",
		"runtime/model/family", "runtime/model/checkpoint", "runtime/model", "runtime/model/synth", "runtime/model/tiny", "runtime/model/train", "runtime/model/bench",
	}},
	{1, []string{"runtime/tape"}},
	{1, []string{"runtime/kv"}},
	{1, []string{"runtime/cost"}},
	{1, []string{"runtime/plan"}},
	{1, []string{"runtime/workload"}},
	{2, []string{"runtime/sched"}},
	{2, []string{"runtime/metrics"}},
	{3, []string{"runtime/fabric"}},
	{3, []string{"runtime/ladder"}},
	{3, []string{"runtime/frontier"}},
	{4, []string{"runtime/sim"}},
	{4, []string{"runtime/runner", "runtime/runner/..."}},
	{4, []string{"scripting/near", "scripting/api", "scripting", "scripting/..."}},
	{4, []string{"sessions/format", "sessions/store"}},
	{4, []string{"sessions/rows"}},
	{4, []string{"sessions/tapetest"}},
	{5, []string{"algos/reference", "algos", "algos/head/shipped", "algos/head", "algos/head/pair", "algos/head/dataset", "algos/head/eval", "algos/..."}},
	{5, []string{"runtime/telemetry", "runtime/live"}},
	{6, []string{"sessions/replay"}},
	{6, []string{"sessions/compare"}},
	{6, []string{"sessions/export"}},
	{6, []string{"runtime/serve"}},
	{7, []string{"tui/frame", "tui/theme", "tui/keys", "tui/...", "tui/app"}},
	{8, []string{"cmd/..."}},
}

// place is where a package stands.
type place struct {
	room, floor, rank int
}

// find gives the place of a package by its folder; its own name wins over a
// pattern.
func find(house []room, dir string) (p place, ok bool) {
	for i, r := range house {
		for rank, m := range r.members {
			if m == dir {
				return place{i, r.floor, rank}, true
			}
			if base, all := strings.CutSuffix(m, "/..."); all && !ok && strings.HasPrefix(dir, base+"/") {
				p, ok = place{i, r.floor, rank}, true
			}
		}
	}
	return p, ok
}

// source is one Go file.
type source struct {
	name string // slash-separated, relative to the root
	file *ast.File
}

func (s *source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// skipped are folders that hold no code of the project.
func skipped(name string) bool {
	return name == "testdata" || name == "vendor" || (strings.HasPrefix(name, ".") && name != "." && name != ".ci")
}

// isModule says whether a folder is a module of its own, like the generator of
// the kernels: its packages are no part of the program.
func isModule(root, name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name), "go.mod"))
	return err == nil
}

// sources parses every Go file of the module, whatever its build tags.
func sources(t *testing.T, root string) []source {
	t.Helper()
	var out []source
	fset := token.NewFileSet()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (skipped(d.Name()) || name != "." && isModule(root, name)):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, filepath.FromSlash(name)), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, source{name, f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// imports gives the folders of the project's own packages that a file imports.
func (s *source) imports() []string {
	var out []string
	for _, i := range s.file.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if dir, own := strings.CutPrefix(name, module+"/"); err == nil && own {
			out = append(out, dir)
		}
	}
	return out
}

// climbs says why package from must not import package to, "" if it may.
func climbs(house []room, from, to string) string {
	a, ok := find(house, from)
	if !ok {
		return "" // reported once, for the package
	}
	b, ok := find(house, to)
	switch {
	case !ok:
		return fmt.Sprintf("%s is on no floor", to)
	case b.floor > a.floor:
		return fmt.Sprintf("%s is on floor %d, above floor %d", to, b.floor, a.floor)
	case b.floor == a.floor && a.room != b.room:
		return fmt.Sprintf("%s is another room of floor %d", to, b.floor)
	case b.floor == a.floor && b.rank >= a.rank:
		return fmt.Sprintf("%s does not stand before it in their room", to)
	}
	return ""
}

// layerFaults lists what breaks the rules of the house.
func layerFaults(house []room, files []source) []string {
	var faults []string
	documented := map[string]bool{}
	first := map[string]*source{} // of each package, in order of names
	for i := range files {
		s := &files[i]
		if s.test() {
			continue
		}
		dir := path.Dir(s.name)
		if first[dir] == nil {
			first[dir] = s
		}
		documented[dir] = documented[dir] || describes(s.file)
		if dir == "runtime" {
			faults = append(faults, s.name+": no Go file lies directly in runtime/; its package would shadow the standard library's")
			continue
		}
		for _, to := range s.imports() {
			if why := climbs(house, dir, to); why != "" {
				faults = append(faults, fmt.Sprintf("%s: %s must not import %s: %s", s.name, dir, to, why))
			}
		}
	}
	for dir, s := range first {
		if _, ok := find(house, dir); !ok && dir != "runtime" {
			faults = append(faults, fmt.Sprintf("%s: package %s is on no floor; give it a place in layers_test.go and ARCHITECTURE.md", s.name, dir))
		}
		if !documented[dir] {
			faults = append(faults, fmt.Sprintf("%s: package %s has no package comment; write doc.go", s.name, dir))
		}
	}
	slices.Sort(faults)
	return faults
}

// describes says whether a file carries its package's comment.
func describes(f *ast.File) bool {
	text := f.Doc.Text()
	return strings.HasPrefix(text, "Package "+f.Name.Name+" ") || (f.Name.Name == "main" && strings.HasPrefix(text, "Command "))
}

// TestLayers proves that packages import lower floors only. Test files may look
// up.
func TestLayers(t *testing.T) {
	files := sources(t, ".")
	if len(files) < 2 {
		t.Fatalf("only %d Go files found", len(files))
	}
	for _, f := range layerFaults(house, files) {
		t.Error(f)
	}
}

// TestLayersFindsFaults shows each kind of fault to the check.
func TestLayersFindsFaults(t *testing.T) {
	const doc = "// Package p is a test.\n"
	for _, c := range []struct {
		name, file, text string
		want             string // "" for none
	}{
		{"down", "runtime/sched/a.go", doc + "package p\nimport _ \"tokenrouter/runtime/kv\"", ""},
		{"up", "runtime/kv/a.go", doc + "package p\nimport _ \"tokenrouter/runtime/sched\"", "runtime/kv/a.go: runtime/kv must not import runtime/sched: runtime/sched is on floor 2, above floor 1"},
		{"aside", "runtime/kv/a.go", doc + "package p\nimport _ \"tokenrouter/runtime/tape\"", "another room of floor 1"},
		{"in the room, down", "runtime/model/a.go", doc + "package p\nimport _ \"tokenrouter/runtime/model/tokenizer\"", ""},
		{"in the room, up", "runtime/model/tokenizer/a.go", doc + "package p\nimport _ \"tokenrouter/runtime/model\"", "does not stand before it"},
		{"in the room, aside", "algos/r2r/a.go", doc + "package p\nimport _ \"tokenrouter/algos/me\"", "does not stand before it"},
		{"test looks up", "runtime/kv/a_test.go", doc + "package p\nimport _ \"tokenrouter/runtime/sched\"", ""},
		{"behind a build tag", "runtime/kv/a.go", "//go:build soak\n\n" + doc + "package p\nimport _ \"tokenrouter/runtime/sched\"", "above floor 1"},
		{"directly in runtime", "runtime/a.go", doc + "package p", "no Go file lies directly in runtime/"},
		{"no floor", "extra/a.go", doc + "package p", "package extra is on no floor"},
		{"unknown import", "tui/a/a.go", doc + "package p\nimport _ \"tokenrouter/extra\"", "extra is on no floor"},
		{"at the root", "a.go", doc + "package p", "package . is on no floor"},
		{"no comment", "runtime/kv/a.go", "package p", "package runtime/kv has no package comment"},
		{"not about the package", "runtime/kv/a.go", "// Copyright\npackage p", "has no package comment"},
		{"command", "cmd/x/a.go", "// Command x is a test.\npackage main", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, filepath.FromSlash(c.file))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(layerFaults(house, sources(t, root)), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNoSleepInTests: a test waits for an event, never for a time.
func TestNoSleepInTests(t *testing.T) {
	for _, s := range sources(t, ".") {
		if !s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && !inBubble(s.file) {
				t.Errorf("%s: a test sleeps; use a script of events, or the timers of testing/synctest", s.name)
			}
			return true
		})
	}
}

// inBubble says that a file tests in bubbles of testing/synctest, where a sleep
// only moves the bubble's own clock.
func inBubble(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

// leftover finds marks of unfinished work, machinePath folders of some machine.
// Both are written so that they do not match themselves.
var (
	leftover    = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	machinePath = regexp.MustCompile(`(^|[\s"'` + "`" + `(=:])/(ho` + `me|Us` + `ers|ro` + `ot|wo` + `rk|fa` + `rm)/[A-Za-z0-9._]`)
)

// texts are the extensions that are read as text; scripts have none.
var texts = []string{"", ".go", ".lua", ".md", ".txt", ".sh", ".mod", ".json", ".jsonl", ".csv", ".yml", ".yaml"}

// TestNoTraces: nothing left to do, no path of the machine it was built on.
func TestNoTraces(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != "testdata" && skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || !slices.Contains(texts, path.Ext(name)):
			return nil
		}
		data, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			given := strings.Contains("/"+name, "/testdata/")
			if !given && leftover.MatchString(line) {
				t.Errorf("%s:%d: unfinished: %s", name, i+1, strings.TrimSpace(line))
			}
			if machinePath.MatchString(line) || (len(here) > 8 && strings.Contains(line, here)) {
				t.Errorf("%s:%d: a path of some machine: %.120s", name, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTracesAreFound(t *testing.T) {
	for line, want := range map[string]bool{
		"// TO" + "DO: later": true, "// FIX" + "ME": true, "no mastodon here": false,
	} {
		if leftover.MatchString(line) != want {
			t.Errorf("%q: found %v", line, !want)
		}
	}
	for line, want := range map[string]bool{
		`open("/ho` + `me/x/y")`: true, "see /wo" + "rk/main": true, "/Us" + "ers/a": true,
		"net/wo" + "rk/main": false, "https://a.org/ho" + "me/x": false, "tokens/ro" + "ot/a": false, "~/.local/state": false,
	} {
		if machinePath.MatchString(line) != want {
			t.Errorf("%q: found %v", line, !want)
		}
	}
}
