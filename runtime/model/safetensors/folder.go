package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/runtime/model/tensor"
)

// The names of a model's weights in Hugging Face's layout.
const (
	Single = "model.safetensors"
	Index  = "model.safetensors.index.json"
)

// Limits on an index.
const (
	maxIndex  = 16 << 20 // bytes
	maxShards = 1 << 10
)

// Shard is one file of a model's weights.
type Shard struct {
	Name string
	Data []byte // the whole file, a view, not to be changed
}

// Folder is the weights of a model: one file, or shards that an index lists.
type Folder struct {
	shards   []Shard
	mappings []*tensor.Mapping // of each shard, nil for a file system in memory
	tensors  map[string]tensor.Tensor
	where    map[string]int // the shard of each tensor
	names    []string
}

func newFolder() *Folder {
	return &Folder{tensors: map[string]tensor.Tensor{}, where: map[string]int{}}
}

// source is where a folder's files come from.
type source struct {
	read func(name string, limit int64) ([]byte, error) // the whole of a small file
	view func(name string) ([]byte, *tensor.Mapping, error)
}

// OpenDir maps the weights in a folder: model.safetensors or, if there is
// none, the files of model.safetensors.index.json.
func OpenDir(dir string) (*Folder, error) {
	return openFolder(source{
		read: func(name string, limit int64) ([]byte, error) {
			return tensor.ReadFile(os.DirFS(dir), name, limit)
		},
		view: func(name string) ([]byte, *tensor.Mapping, error) {
			m, err := tensor.Map(filepath.Join(dir, name))
			if err != nil {
				return nil, nil, err
			}
			return m.Data, m, nil
		},
	})
}

// OpenFS reads the weights in the root of a file system into memory, as OpenDir
// does those of a folder. It is for models that are embedded in a program.
func OpenFS(fsys fs.FS) (*Folder, error) {
	return openFolder(source{
		read: func(name string, limit int64) ([]byte, error) { return tensor.ReadFile(fsys, name, limit) },
		view: func(name string) ([]byte, *tensor.Mapping, error) {
			b, err := fs.ReadFile(fsys, name)
			return b, nil, err
		},
	})
}

// OpenFile maps a single weight file, whatever its name.
func OpenFile(path string) (*Folder, error) {
	m, err := tensor.Map(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f := newFolder()
	if err := f.add(filepath.Base(path), m.Data, m); err != nil {
		_ = f.Close()
		return nil, err
	}
	f.sort()
	return f, nil
}

func openFolder(src source) (*Folder, error) {
	f := newFolder()
	if err := f.open(src); err != nil {
		_ = f.Close()
		return nil, err
	}
	f.sort()
	return f, nil
}

func (f *Folder) open(src source) error {
	b, m, err := src.view(Single)
	if err == nil {
		return f.add(Single, b, m)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("safetensors: %w", err)
	}
	b, err = src.read(Index, maxIndex)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("safetensors: %w: there is neither %s nor %s; give the folder of a model in Hugging Face's layout", fs.ErrNotExist, Single, Index)
	case err != nil:
		return fmt.Errorf("safetensors: %w", err)
	}
	place, files, err := parseIndex(b)
	if err != nil {
		return fmt.Errorf("safetensors: %s: %w", Index, err)
	}
	for _, name := range files {
		b, m, err := src.view(name)
		if err != nil {
			return fmt.Errorf("safetensors: %s lists a file that cannot be read: %w", Index, err)
		}
		if err := f.add(name, b, m); err != nil {
			return err
		}
	}
	return f.checkIndex(place)
}

// parseIndex reads an index: the file of each tensor, and the files in the
// order of their names.
func parseIndex(b []byte) (place map[string]string, files []string, err error) {
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, nil, fmt.Errorf("the file is damaged: %w; fetch it again", err)
	}
	if len(index.Map) == 0 {
		return nil, nil, errors.New("weight_map is missing or empty; fetch the file again")
	}
	seen := map[string]bool{}
	for _, name := range index.Map {
		if seen[name] {
			continue
		}
		seen[name] = true
		// An index must not lead out of its folder.
		if !fs.ValidPath(name) || strings.ContainsAny(name, `/\:`) || !strings.HasSuffix(name, ".safetensors") {
			return nil, nil, fmt.Errorf("weight_map names %.80q, which is not a safetensors file in the same folder", name)
		}
		if len(seen) > maxShards {
			return nil, nil, fmt.Errorf("weight_map names more than %d files", maxShards)
		}
		files = append(files, name)
	}
	slices.Sort(files)
	return index.Map, files, nil
}

// checkIndex holds the index against the files: every tensor of the one stands
// in the file of the other that it names.
func (f *Folder) checkIndex(place map[string]string) error {
	names := make([]string, 0, len(place))
	for name := range place {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if i, ok := f.where[name]; !ok || f.shards[i].Name != place[name] {
			return fmt.Errorf("safetensors: %s places tensor %.80q in %s, which does not have it: the files are of different downloads, fetch all again", Index, name, place[name])
		}
	}
	return nil
}

// add takes the tensors of one file in. The mapping is the folder's from here
// on, whatever comes out.
func (f *Folder) add(name string, b []byte, m *tensor.Mapping) error {
	f.shards = append(f.shards, Shard{name, b})
	f.mappings = append(f.mappings, m)
	var file *File
	err := tensor.Guard(func() (err error) {
		file, err = Parse(b)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, n := range file.Names() {
		if i, ok := f.where[n]; ok {
			return fmt.Errorf("safetensors: tensor %.80q stands in %s and in %s: the files are of different models", n, f.shards[i].Name, name)
		}
		f.where[n] = len(f.shards) - 1
		f.tensors[n], _ = file.Tensor(n)
	}
	return nil
}

func (f *Folder) sort() {
	f.names = make([]string, 0, len(f.tensors))
	for n := range f.tensors {
		f.names = append(f.names, n)
	}
	slices.Sort(f.names)
}

// Shards lists the files, in the order of their names.
func (f *Folder) Shards() []Shard { return f.shards }

// Tensor finds a tensor by its name.
func (f *Folder) Tensor(name string) (tensor.Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Names lists the tensors in the order of their names; not to be changed.
func (f *Folder) Names() []string { return f.names }

// Release lets the pages of a tensor, or of a part of its Data, go.
func (f *Folder) Release(t tensor.Tensor) {
	for _, m := range f.mappings {
		if m != nil {
			m.Release(t.Data)
		}
	}
}

// Close ends the mappings: no tensor may be used any more.
func (f *Folder) Close() error {
	var errs []error
	for _, m := range f.mappings {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	*f = Folder{}
	return errors.Join(errs...)
}

var _ tensor.Store = (*Folder)(nil)
