package library

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var shipped = []Router{{"r2r", "-- r2r"}, {"me", "-- me"}, {"random", "-- random"}}

func lib(t *testing.T, files map[string]string) Library {
	t.Helper()
	l := Library{Dir: filepath.Join(t.TempDir(), "routers"), Embedded: shipped}
	for name, text := range files {
		put(t, filepath.Join(l.Dir, name), text)
	}
	return l
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(list []Entry) string {
	var out []string
	for _, e := range list {
		mark := ""
		if e.Embedded {
			mark = "*"
		}
		out = append(out, e.Name+mark)
	}
	return strings.Join(out, " ")
}

func TestList(t *testing.T) {
	if got := names(lib(t, nil).List()); got != "r2r* me* random*" {
		t.Error(got)
	}
	l := lib(t, map[string]string{"zeta.lua": "", "me.lua": "-- mine", "alpha.lua": "", "note.txt": "", ".hidden.lua": "", "x.lua~": ""})
	put(t, filepath.Join(l.Dir, "folder.lua", "inside"), "")
	if got := names(l.List()); got != "r2r* me random* alpha zeta" {
		t.Error(got)
	}
	if got := names(Library{Embedded: shipped}.List()); got != "r2r* me* random*" {
		t.Error(got)
	}
}

func TestResolve(t *testing.T) {
	l := lib(t, map[string]string{"me.lua": "-- mine", "own.lua": "-- own"})
	elsewhere := filepath.Join(t.TempDir(), "else.lua")
	put(t, elsewhere, "-- else")
	for _, c := range []struct {
		ask, path, text string
		embedded        bool
	}{
		{"r2r", "", "-- r2r", true},
		{"r2r.lua", "", "-- r2r", true},
		{"me", l.path("me"), "-- mine", false},
		{"me.lua", l.path("me"), "-- mine", false},
		{"own", l.path("own"), "-- own", false},
		{elsewhere, elsewhere, "-- else", false},
		{strings.TrimSuffix(elsewhere, ".lua"), elsewhere, "-- else", false},
	} {
		path, text, embedded, err := l.Resolve(c.ask)
		if err != nil || path != c.path || text != c.text || embedded != c.embedded {
			t.Errorf("Resolve(%q) = %q %q %v %v", c.ask, path, text, embedded, err)
		}
	}
	for ask, want := range map[string]string{
		"rr2":                      `no router "rr2"; did you mean "r2r"? routers: r2r, me, random, own (or the path of a .lua file)`,
		"zzz.lua":                  `no router "zzz.lua"; routers: r2r, me, random, own`,
		elsewhere + "x":            "no router file " + elsewhere + "x; give the path of a .lua file, or a name: r2r, me, random, own",
		"":                         `no router ""`,
		"..":                       `no router ".."`,
		filepath.Dir(elsewhere):    "is a folder; a router is a .lua file",
		filepath.Join("no", "r2r"): "no router file no/r2r",
	} {
		if _, _, _, err := l.Resolve(ask); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q): %v, want %s", ask, err, want)
		}
	}
	if err := os.Symlink(os.DevNull, filepath.Join(l.Dir, "null.lua")); err == nil {
		for _, ask := range []string{"null", os.DevNull} {
			if _, _, _, err := l.Resolve(ask); err == nil || !strings.Contains(err.Error(), "is no regular file; a router is a .lua file") {
				t.Errorf("Resolve(%q): %v", ask, err)
			}
		}
	}
	put(t, filepath.Join(l.Dir, "big.lua"), strings.Repeat("x", maxFile+1))
	if _, _, _, err := l.Resolve("big"); err == nil || !strings.Contains(err.Error(), "a router is a small text file") {
		t.Errorf("%v", err)
	}
}

// A relative path with a folder in it is a file, never a name.
func TestResolveRelative(t *testing.T) {
	l := lib(t, nil)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "sub", "r2r.lua"), "-- sub")
	put(t, filepath.Join(dir, "here.lua"), "-- here")
	t.Chdir(dir)
	for ask, want := range map[string]string{"sub/r2r.lua": "-- sub", "./here.lua": "-- here", "here.lua": "-- here"} {
		if _, text, embedded, err := l.Resolve(filepath.FromSlash(ask)); err != nil || text != want || embedded {
			t.Errorf("Resolve(%q) = %q %v", ask, text, err)
		}
	}
}

func TestCopyForEdit(t *testing.T) {
	l := lib(t, nil)
	path, err := l.CopyForEdit("r2r.lua")
	if err != nil || path != l.path("r2r") {
		t.Fatalf("%q %v", path, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "-- r2r" {
		t.Fatalf("%q %v", b, err)
	}
	put(t, path, "-- edited")
	if again, err := l.CopyForEdit("r2r"); err != nil || again != path {
		t.Fatalf("%q %v", again, err)
	}
	if _, text, embedded, _ := l.Resolve("r2r"); text != "-- edited" || embedded {
		t.Errorf("%q, embedded %v", text, embedded)
	}
	if shipped[0].Text != "-- r2r" {
		t.Error("the embedded router changed")
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if _, err := l.CopyForEdit("nope"); err == nil {
		t.Error("an unknown router was copied")
	}
	if _, err := (Library{Embedded: shipped}).CopyForEdit("r2r"); err == nil || !strings.Contains(err.Error(), "--routers DIR") {
		t.Errorf("%v", err)
	}
}

func TestCopyIntoReadOnly(t *testing.T) {
	// A file where the folder should be fails for every user, root included.
	l := lib(t, nil)
	put(t, l.Dir, "a file")
	_, err := l.CopyForEdit("r2r")
	if err == nil || !strings.Contains(err.Error(), "cannot be copied to "+l.path("r2r")) || !strings.Contains(err.Error(), "--routers DIR") {
		t.Errorf("%v", err)
	}
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return
	}
	l = lib(t, map[string]string{"keep.lua": ""})
	if err := os.Chmod(l.Dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(l.Dir, 0o755) })
	if _, err := l.CopyForEdit("r2r"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

// A router that is being copied is there as a whole or not at all, and nothing is
// left beside it.
func TestCopyIsWhole(t *testing.T) {
	for range 100 {
		l := lib(t, nil)
		done := make(chan error)
		go func() {
			_, err := l.CopyForEdit("r2r")
			done <- err
		}()
		for copied := false; !copied; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				copied = true
			default:
			}
			if b, err := os.ReadFile(filepath.Join(l.Dir, "r2r.lua")); err == nil && string(b) != "-- r2r" || err != nil && copied {
				t.Fatalf("the copy is %q, %v", b, err)
			}
		}
		if left, err := os.ReadDir(l.Dir); err != nil || len(left) != 1 {
			t.Fatalf("beside the copy: %v, %v", left, err)
		}
	}
}
