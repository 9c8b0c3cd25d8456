package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/safetensors"
)

// Found is a place that looks like a checkpoint.
type Found struct {
	Path   string // for Open
	Name   string
	Kind   Kind
	Config family.Config
	Bytes  int64 // of the weight files
	Err    error // why Open refuses it: then Config and Bytes say nothing
}

// Bounds of a search: a folder of models may hold more than models. Hugging
// Face's cache has its files three folders deep (models--x/snapshots/y).
const (
	maxDepth  = 4
	maxPlaces = 1 << 14
	maxLinks  = 1 << 8 // to folders elsewhere; each is held against those before
)

// List looks for checkpoints in folders and below them, also where links lead, in
// the order of their names, and opens each. The error names the folders that are
// not there, or that hold too much to look at all of it; what was found is
// returned all the same.
func List(dirs ...string) ([]Found, error) {
	var out []Found
	var errs []error
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("models in %s: %w", dir, err))
			continue
		}
		s := search{fsys: os.DirFS(dir), dir: dir}
		s.folder(".", 0)
		out = append(out, s.found...)
		switch {
		case s.places > maxPlaces:
			errs = append(errs, fmt.Errorf("models in %s: the search ended after %d files and folders: name a folder with fewer of them", dir, maxPlaces))
		case s.links > maxLinks:
			errs = append(errs, fmt.Errorf("models in %s: of the links to folders elsewhere %d were followed: name a folder with fewer of them", dir, maxLinks))
		}
	}
	return out, errors.Join(errs...)
}

// search is a search below a folder.
type search struct {
	fsys   fs.FS
	dir    string
	places int      // looked at
	links  int      // to folders
	linked []string // where links led to
	found  []Found
}

// folder looks at a folder, and at what is in it.
func (s *search) folder(name string, depth int) {
	if depth > maxDepth {
		return
	}
	if layout(s.fsys, name) {
		s.found = append(s.found, look(s.dir, name, Safetensors))
	}
	entries, _ := fs.ReadDir(s.fsys, name) // one that may not be read hides nothing else
	for _, e := range entries {
		if s.places++; s.places > maxPlaces {
			return // List tells
		}
		at := path.Join(name, e.Name())
		isDir := e.IsDir()
		link := e.Type()&fs.ModeSymlink != 0
		if link {
			info, err := fs.Stat(s.fsys, at)
			isDir = err == nil && info.IsDir()
		}
		switch {
		case isDir && strings.HasPrefix(e.Name(), "."):
		case isDir && link && layout(s.fsys, at): // another name of a model
			s.found = append(s.found, look(s.dir, at, Safetensors))
		case isDir && link && !s.leads(at):
		case isDir:
			s.folder(at, depth+1)
		case strings.HasSuffix(at, ".gguf"):
			s.found = append(s.found, look(s.dir, at, GGUF))
		}
	}
}

// leads says whether a link to a folder leads to what is not found without it:
// neither into, nor above the folder that is searched or where another link led.
func (s *search) leads(name string) bool {
	root, err := place(s.dir)
	to, err2 := place(filepath.Join(s.dir, filepath.FromSlash(name)))
	if err != nil || err2 != nil {
		return false
	}
	if s.links++; s.links > maxLinks {
		return false // List tells
	}
	for _, at := range append(s.linked, root) {
		if within(at, to) || within(to, at) {
			return false
		}
	}
	s.linked = append(s.linked, to)
	return true
}

// place is where a path leads.
func place(name string) (string, error) {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(name)
}

// within says that a path is that of a folder or of something in it.
func within(folder, name string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// layout says whether a folder has the files of Hugging Face's layout.
func layout(fsys fs.FS, name string) bool {
	has := func(file string) bool { return !isMissing(fsys, path.Join(name, file)) }
	return has("config.json") && (has(safetensors.Single) || has(safetensors.Index))
}

// look opens what was found, to say what it is.
func look(dir, name string, kind Kind) Found {
	f := Found{Path: filepath.Join(dir, filepath.FromSlash(name)), Kind: kind}
	f.Name = strings.TrimSuffix(filepath.Base(f.Path), ".gguf")
	c, err := Open(f.Path)
	if err != nil {
		f.Err = err
		return f
	}
	defer c.Close()
	f.Name, f.Config, f.Bytes = c.Name, c.Config, c.Bytes()
	return f
}
