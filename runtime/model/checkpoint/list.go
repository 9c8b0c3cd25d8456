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
)

// List looks for checkpoints in folders and below them, in the order of their
// names, and opens each. The error names the folders that are not there; what
// was found in the others is returned all the same.
func List(dirs ...string) ([]Found, error) {
	var out []Found
	var errs []error
	for _, dir := range dirs {
		fsys := os.DirFS(dir)
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("models in %s: %w", dir, err))
			continue
		}
		places := 0
		_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			places++
			switch {
			case err != nil: // a folder that may not be read hides nothing else
				return fs.SkipDir
			case places > maxPlaces:
				return fs.SkipAll
			case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.Count(name, "/") >= maxDepth):
				return fs.SkipDir
			case d.IsDir():
				if layout(fsys, name) {
					out = append(out, look(dir, name, Safetensors))
				}
			case strings.HasSuffix(name, ".gguf"):
				out = append(out, look(dir, name, GGUF))
			}
			return nil
		})
	}
	return out, errors.Join(errs...)
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
