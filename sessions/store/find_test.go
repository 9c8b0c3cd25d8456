package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFindAndList(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	var names []string
	for i, router := range []string{"r2r.lua", "me.lua", "/x/My Router!.lua"} {
		m := manifest()
		m.StartedAt = m.StartedAt.Add(time.Duration(i) * time.Hour)
		m.Router.File = router
		in := dir
		if i == 2 {
			in = other
		}
		s, err := Create(in, m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close("done"); err != nil {
			t.Fatal(err)
		}
		names = append(names, s.Name())
	}
	if !strings.HasPrefix(names[2], "20260304-070607-My_Router-") {
		t.Errorf("the third is called %s", names[2])
	}
	if err := os.Mkdir(filepath.Join(dir, "20990101-000000-no-session"), 0o755); err != nil {
		t.Fatal(err)
	}
	dirs := []string{dir, other, filepath.Join(dir, "does-not-exist")}
	in := func(i int) string { return filepath.Join([]string{dir, dir, other}[i], names[i]) }
	t.Chdir(dir)
	for name, want := range map[string]string{
		"latest":                       in(2),
		names[0]:                       names[0], // a path below the working folder
		names[1][:17]:                  in(1),
		"20260304-06":                  in(1),
		in(2):                          in(2),
		in(2) + "/":                    in(2),
		filepath.Join(in(0), tapeName): in(0),
		filepath.Join(in(0), "x", "..", manifestName): in(0),
	} {
		if got, err := Find(dirs, name); err != nil || got != want {
			t.Errorf("Find(%q) = %s, %v; want %s", name, got, err, want)
		}
	}
	for name, want := range map[string][]string{
		"2026":    {"begins the names of 3 sessions", names[0], names[2]},
		"nothing": {`no session "nothing"`, dir, "the newest is " + names[2]},
		"":        {`no session ""`},
	} {
		_, err := Find(dirs, name)
		if err == nil {
			t.Errorf("Find(%q) finds something", name)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Find(%q): %v does not say %q", name, err, part)
			}
		}
	}
	if _, err := Find([]string{t.TempDir()}, Latest); err == nil || !strings.Contains(err.Error(), "--sessions DIR") {
		t.Errorf("an empty folder: %v", err)
	}
	l, err := List(dir)
	if err != nil || len(l) != 2 || l[0].Name != names[1] || l[1].Name != names[0] || l[0].Bytes == 0 || l[0].Manifest.Closed == nil {
		t.Errorf("list %+v, %v", l, err)
	}
	if l, err := List(filepath.Join(dir, "does-not-exist")); err != nil || len(l) != 0 {
		t.Errorf("list of nothing: %v, %v", l, err)
	}
	if _, err := List(in(0) + "/" + manifestName); err == nil || !strings.Contains(err.Error(), "--sessions DIR") {
		t.Errorf("list of a file: %v", err)
	}
}

// A session with a damaged manifest is listed with its error, by its name's time.
func TestListWithDamagedManifest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"20250101-000000-r2r-0001", "20990101-000000-r2r-0002", "x"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, manifestName), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Create(dir, manifest(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	l, err := List(dir)
	if err != nil || len(l) != 4 {
		t.Fatalf("%d, %v", len(l), err)
	}
	for i, want := range []string{"20990101-000000-r2r-0002", s.Name(), "20250101-000000-r2r-0001", "x"} {
		if l[i].Name != want || (l[i].Err == nil) != (i == 1) {
			t.Errorf("place %d: %s, %v; want %s", i, l[i].Name, l[i].Err, want)
		}
	}
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s"},
		{"linux", map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state"},
		{"linux", map[string]string{"HOME": "/h"}, "/h/.local/state"},
		{"darwin", map[string]string{"HOME": "/h"}, "/h/Library/Application Support"},
		{"darwin", map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s"},
		{"windows", map[string]string{"LocalAppData": `C:\l`}, `C:\l`},
		{"linux", nil, ""},
		{"windows", nil, ""},
	} {
		got, err := stateDir(c.goos, func(k string) string { return c.env[k] })
		if got != filepath.FromSlash(c.want) || (err == nil) != (c.want != "") {
			t.Errorf("%s %v: %s, %v; want %s", c.goos, c.env, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "--sessions DIR") {
			t.Errorf("%s: %v names no cure", c.goos, err)
		}
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d, err := DefaultDir()
	if err != nil || !strings.HasSuffix(filepath.ToSlash(d), "/tokenrouter/sessions") {
		t.Errorf("DefaultDir %s, %v", d, err)
	}
}
