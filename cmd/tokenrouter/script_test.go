package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/store"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tokenrouter": func() { os.Exit(realMain(os.Args[1:])) },
	})
}

// TestScripts runs the command line as a user does; the scripts are its
// documentation by example.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "fast" {
				return cpu.Current() > cpu.Go, nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jsonkeys": jsonKeys,
			"rows":     countRows,
			"samerows": sameRows,
			"chop":     chop,
			"exits":    exits,
			"badbytes": badBytes,
			"sametape": sameTape,
			"manifest": manifest,
			"quiet":    quiet,
			"puthead":  putHead,
		},
	})
}

// jsonKeys FILE KEY...: the file is one JSON object with all the keys.
func jsonKeys(ts *testscript.TestScript, neg bool, args []string) {
	var o map[string]json.RawMessage
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &o))
	for _, k := range args[1:] {
		if _, ok := o[k]; ok == neg {
			ts.Fatalf("key %q: present %v", k, ok)
		}
	}
}

type tokenRow struct {
	Request   int    `json:"request"`
	Task      string `json:"task"`
	Pos       int    `json:"pos"`
	TokenID   int    `json:"token_id"`
	Text      string `json:"text"`
	Model     string `json:"model"`
	Committed *bool  `json:"committed"`
	line      string
}

func readRows(ts *testscript.TestScript, file string) (committed, dropped []tokenRow) {
	in := bufio.NewScanner(strings.NewReader(ts.ReadFile(file)))
	for in.Scan() {
		var r tokenRow
		ts.Check(json.Unmarshal(in.Bytes(), &r))
		r.line = in.Text()
		if r.Committed != nil && !*r.Committed {
			dropped = append(dropped, r)
		} else {
			committed = append(committed, r)
		}
	}
	return committed, dropped
}

// countRows EXPORT SUMMARY: the export has a row for each token that the run's
// summary counts, by role as well.
func countRows(ts *testscript.TestScript, _ bool, args []string) {
	var sum reportJSON
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &sum))
	committed, _ := readRows(ts, args[0])
	byRole := map[string]int{}
	for _, r := range committed {
		byRole[r.Model]++
	}
	if len(committed) != sum.Tokens {
		ts.Fatalf("%d rows for %d tokens", len(committed), sum.Tokens)
	}
	for role, n := range sum.TokensByRole {
		if byRole[role] != n {
			ts.Fatalf("%d rows by %s, the summary has %d", byRole[role], role, n)
		}
	}
}

// sameRows A B: both exports hold the same token rows, sorted by request and
// position, byte for byte but for times, batch and waiting (one seed, one set of
// tokens and writers).
func sameRows(ts *testscript.TestScript, _ bool, args []string) {
	read := func(file string) []string {
		committed, _ := readRows(ts, file)
		slices.SortFunc(committed, func(a, b tokenRow) int {
			if a.Request != b.Request {
				return a.Request - b.Request
			}
			return a.Pos - b.Pos
		})
		var out []string
		for _, r := range committed {
			head, _, ok := strings.Cut(r.line, `,"batch":`)
			if !ok {
				ts.Fatalf("row without batch: %s", r.line)
			}
			out = append(out, head)
		}
		return out
	}
	a, b := read(args[0]), read(args[1])
	if len(a) == 0 {
		ts.Fatalf("no rows")
	}
	if d := cmp.Diff(a, b); d != "" {
		ts.Fatalf("rows differ:\n%s", d)
	}
}

// sameTape A B: the tapes of the newest sessions of two folders are the same,
// byte for byte.
func sameTape(ts *testscript.TestScript, neg bool, args []string) {
	var records []iter.Seq2[tape.Record, error]
	var files []string
	for _, dir := range args {
		path, err := store.Find([]string{ts.MkAbs(dir)}, store.Latest)
		ts.Check(err)
		s, err := store.Open(path)
		ts.Check(err)
		records = append(records, s.Records())
		files = append(files, ts.ReadFile(filepath.Join(path, "tape.trlog")))
	}
	next, stop := iter.Pull2(records[1])
	defer stop()
	differs, n := "", 0
	for a, err := range records[0] {
		ts.Check(err)
		b, err, ok := next()
		ts.Check(err)
		if n++; !ok || !reflect.DeepEqual(a, b) {
			differs = fmt.Sprintf("%+v and %+v", a, b)
			break
		}
	}
	if _, _, more := next(); differs == "" && more {
		differs = "the second goes on"
	}
	if differs == "" && files[0] != files[1] {
		differs = "the records are equal, the files are not"
	}
	if n == 0 || (differs == "") == neg {
		ts.Fatalf("of %d records: %s", n, differs)
	}
}

// manifest DIR TEXT...: the manifest of the newest session there holds the texts.
func manifest(ts *testscript.TestScript, neg bool, args []string) {
	path, err := store.Find([]string{ts.MkAbs(args[0])}, store.Latest)
	ts.Check(err)
	text := ts.ReadFile(filepath.Join(path, "manifest.json"))
	for _, want := range args[1:] {
		if strings.Contains(text, want) == neg {
			ts.Fatalf("%q: %v in %s", want, neg, text)
		}
	}
}

// quiet: the last command said nothing on standard error, but for kernels that are
// slow on this machine or build.
func quiet(ts *testscript.TestScript, _ bool, _ []string) {
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if !strings.HasPrefix(line, "tokenrouter: kernels in plain Go") {
			ts.Fatalf("it says %q", line)
		}
	}
}

// badBytes runs with arguments that are no UTF-8.
func badBytes(ts *testscript.TestScript, _ bool, _ []string) {
	for _, args := range [][]string{{"run", "--stop=\xff"}, {"run", "--sessions", "s\xfe"}, {"export", "\x80"}} {
		exits(ts, false, append([]string{"2", "tokenrouter"}, args...))
	}
}

// chop FILE: cuts the last 100 bytes off, as a kill in the middle of a write
// does.
func chop(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%d files match %s", len(files), args[0])
	}
	st, err := os.Stat(files[0])
	ts.Check(err)
	ts.Check(os.Truncate(files[0], st.Size()-100))
}

// exits CODE PROGRAM ARG...: the program ends with that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("%v ends with code %d, want %d", args[1:], code, want)
	}
}
