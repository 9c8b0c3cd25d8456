package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tokenrouter/scripting/near"
)

// Ext is the suffix of router files.
const Ext = ".lua"

// maxFile bounds what is read as a router; the compiler has a limit of its own.
const maxFile = 1 << 20

// Router is an embedded router.
type Router struct {
	Name string // without .lua
	Text string
}

// Library is the routers that a user can name.
type Library struct {
	Dir      string // of the user's routers; "" has none, and need not exist
	Embedded []Router
}

// Entry is one router of the list.
type Entry struct {
	Name     string
	Path     string // "" when embedded
	Embedded bool   // no file of that name is in Dir
}

// List returns the embedded routers in their order, shadowed or not, then the
// user's others by name.
func (l Library) List() []Entry {
	own := l.files()
	var out []Entry
	for _, r := range l.Embedded {
		e := Entry{Name: r.Name, Embedded: true}
		if i := slices.Index(own, r.Name); i >= 0 {
			own = slices.Delete(own, i, i+1)
			e = Entry{Name: r.Name, Path: l.path(r.Name)}
		}
		out = append(out, e)
	}
	for _, name := range own {
		out = append(out, Entry{Name: name, Path: l.path(name)})
	}
	return out
}

// files lists the names of the routers in Dir, sorted.
func (l Library) files() []string {
	if l.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(l.Dir) // sorted by name
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), Ext); ok && name != "" && !strings.HasPrefix(name, ".") && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}

func (l Library) path(name string) string { return filepath.Join(l.Dir, name+Ext) }

// Resolve finds a router by NAME, NAME.lua or the path of a file. A file in Dir
// comes before the embedded router of its name. The path is "" for an embedded
// router. The error lists the names there are.
func (l Library) Resolve(nameOrPath string) (path, text string, embedded bool, err error) {
	name := strings.TrimSuffix(nameOrPath, Ext)
	if plain := name == filepath.Base(name) && name != "." && name != ".."; plain {
		if l.Dir != "" {
			path = l.path(name)
			text, err = read(path)
			if !missing(err) {
				return path, text, false, err
			}
		}
		for _, r := range l.Embedded {
			if r.Name == name {
				return "", r.Text, true, nil
			}
		}
	}
	for _, p := range []string{nameOrPath, nameOrPath + Ext} {
		if !strings.ContainsRune(p, filepath.Separator) && !strings.HasSuffix(p, Ext) {
			continue
		}
		if text, err = read(p); !missing(err) {
			return p, text, false, err
		}
	}
	return "", "", false, l.unknown(nameOrPath, name)
}

func (l Library) unknown(asked, name string) error {
	var names []string
	for _, e := range l.List() {
		names = append(names, e.Name)
	}
	if strings.ContainsRune(asked, filepath.Separator) {
		return fmt.Errorf("no router file %s; give the path of a .lua file, or a name: %s", asked, strings.Join(names, ", "))
	}
	return fmt.Errorf("no router %q%s (or the path of a .lua file)", asked, near.List(name, "routers", names))
}

// missing says that nothing has the name: no file, or a folder of the path is none.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func read(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", worded(path, err)
	case info.IsDir():
		return "", fmt.Errorf("%s is a folder; a router is a .lua file", path)
	case !info.Mode().IsRegular(): // a pipe would block, a device never end
		return "", fmt.Errorf("%s is no regular file; a router is a .lua file", path)
	case info.Size() > maxFile:
		return "", fmt.Errorf("%s has %d bytes; a router is a small text file", path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", worded(path, err)
	}
	return string(b), nil
}

// worded words an error of the file system for the person who named the file.
func worded(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s may not be read; change its permissions (%w)", path, fs.ErrPermission)
	}
	return fmt.Errorf("router %s cannot be read: %w", path, err)
}

// CopyForEdit returns the path of the file to edit for a name: the one in Dir,
// or a fresh copy of the embedded router there. It never overwrites a file, and
// creates Dir when it has to.
func (l Library) CopyForEdit(name string) (string, error) {
	path, text, embedded, err := l.Resolve(name)
	if err != nil || !embedded {
		return path, err
	}
	if l.Dir == "" {
		return "", fmt.Errorf("router %s is embedded and there is no folder to copy it to; name one with --routers DIR", name)
	}
	name = strings.TrimSuffix(name, Ext)
	path = l.path(name)
	if err := write(l.Dir, path, text); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("router %s cannot be copied to %s for editing; name a writable folder with --routers DIR: %w", name, path, err)
	}
	return path, nil
}

// write creates path with all of text; a file that is there stays as it is. The
// file gets its name when it is whole: whoever looks in between, or if the program
// is killed, never finds half a router there, which would shadow the whole one.
func write(dir, path, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".copy-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// There are no links here.
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	return os.Rename(f.Name(), path)
}
