package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tokenrouter/sessions/format"
)

// Latest is the name under which Find knows the newest session.
const Latest = "latest"

// DefaultDir is the folder of sessions if none is given: below the user's state
// folder ($XDG_STATE_HOME, ~/.local/state), ~/Library/Application Support on
// macOS, %LocalAppData% on Windows.
func DefaultDir() (string, error) {
	base, err := stateDir(runtime.GOOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "tokenrouter", "sessions"), nil
}

func stateDir(goos string, env func(string) string) (string, error) {
	if goos == "windows" {
		if d := env("LocalAppData"); d != "" {
			return d, nil
		}
		return "", errors.New("%LocalAppData% is not set: name a folder with --sessions DIR")
	}
	if d := env("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return d, nil
	}
	home := env("HOME")
	if home == "" {
		return "", errors.New("neither $XDG_STATE_HOME nor $HOME is set: name a folder with --sessions DIR")
	}
	if goos == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "state"), nil
}

// Entry is one session in a list.
type Entry struct {
	Name     string
	Path     string
	Bytes    int64 // of the tape
	Manifest Manifest
	Err      error // the manifest cannot be read; Manifest is then zero
}

// List returns the sessions of a folder, newest first. A folder that does not
// exist holds none.
func List(dir string) ([]Entry, error) {
	des, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the sessions in %s cannot be listed (%s): choose another folder with --sessions DIR", dir, reason(err))
	}
	var out []Entry
	for _, de := range des {
		e := Entry{Name: de.Name(), Path: filepath.Join(dir, de.Name())}
		if !isSession(e.Path) {
			continue
		}
		e.Manifest, e.Err = readManifest(filepath.Join(e.Path, manifestName), format.Options{})
		if st, err := os.Stat(filepath.Join(e.Path, tapeName)); err == nil {
			e.Bytes = st.Size()
		}
		out = append(out, e)
	}
	slices.SortFunc(out, newestFirst)
	return out, nil
}

// newestFirst goes by the manifest, and by the name where that cannot be read.
func newestFirst(a, b Entry) int {
	if c := b.started().Compare(a.started()); c != 0 {
		return c
	}
	return strings.Compare(b.Name, a.Name)
}

func (e *Entry) started() time.Time {
	if e.Err == nil {
		return e.Manifest.StartedAt
	}
	t, err := time.ParseInLocation(stamp, e.Name[:min(len(e.Name), len(stamp))], time.Local)
	if err != nil {
		return time.Time{}
	}
	return t
}

func isSession(path string) bool {
	st, err := os.Stat(filepath.Join(path, manifestName))
	return err == nil && st.Mode().IsRegular()
}

// Find turns what a person types into a session's folder: a path, the name of a
// folder in dirs, a beginning of it that no other has, or "latest".
func Find(dirs []string, name string) (string, error) {
	if isSession(name) {
		return filepath.Clean(name), nil
	}
	if base := filepath.Base(name); (base == tapeName || base == manifestName) && isSession(filepath.Dir(name)) {
		return filepath.Dir(name), nil
	}
	var all []Entry
	for _, d := range dirs {
		l, err := List(d)
		if err != nil {
			return "", err
		}
		all = append(all, l...)
	}
	slices.SortStableFunc(all, newestFirst)
	where := strings.Join(dirs, ", ")
	if len(all) == 0 {
		return "", fmt.Errorf("no session %q: there are none in %s; give a session's folder or --sessions DIR", name, where)
	}
	if name == Latest {
		return all[0].Path, nil
	}
	var hits []Entry
	for _, e := range all {
		if e.Name == name {
			return e.Path, nil
		}
		if name != "" && strings.HasPrefix(e.Name, name) {
			hits = append(hits, e)
		}
	}
	switch len(hits) {
	case 1:
		return hits[0].Path, nil
	case 0:
		return "", fmt.Errorf("no session %q in %s; the newest is %s", name, where, all[0].Name)
	}
	names := make([]string, min(len(hits), 5))
	for i := range names {
		names[i] = hits[i].Name
	}
	return "", fmt.Errorf("%q begins the names of %d sessions (%s): give more of the name", name, len(hits), strings.Join(names, ", "))
}
