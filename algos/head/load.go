package head

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
	"tokenrouter/scripting/near"
)

// The files of a head.
const (
	weightsExt  = ".safetensors"
	manifestExt = ".json"
)

// pickles are what torch.save writes. Reading one runs what it says, so they are
// never read.
var pickles = []string{".pt", ".pth", ".bin", ".ckpt", ".pkl"}

// base is the path of a head without the ending of one of its two files.
func base(path string) (string, error) {
	ext := filepath.Ext(path)
	if slices.Contains(pickles, strings.ToLower(ext)) {
		return "", fmt.Errorf("%s: files of torch.save run code when they are read, so they are not; convert it to safetensors with the few lines of Python in docs/heads.md", path)
	}
	if ext == weightsExt || ext == manifestExt {
		path = strings.TrimSuffix(path, ext)
	}
	return path, nil
}

// Load reads NAME.safetensors and NAME.json; path is NAME with its folder, or
// either of the two files. The name of the files is the name of the head.
func Load(path string) (*Head, error) { return LoadWith(path, Options{}) }

// LoadWith is Load with options.
func LoadWith(path string, o Options) (*Head, error) {
	at, err := base(path)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(os.DirFS(filepath.Dir(at)), filepath.Base(at))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at+manifestExt, err)
	}
	f, err := safetensors.OpenFile(at + weightsExt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at+weightsExt, missing(err, m.Name))
	}
	defer func() { _ = f.Close() }()
	var h *Head
	err = tensor.Guard(func() (err error) {
		h, err = read(m, o, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at+weightsExt, err)
	}
	return h, nil
}

// loadFS is Load from a file system in memory.
func loadFS(fsys fs.FS, name string, o Options) (*Head, error) {
	m, err := readManifest(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name+manifestExt, err)
	}
	b, err := tensor.ReadFile(fsys, name+weightsExt, 4*maxParams+safetensors.MaxHeader)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name+weightsExt, err)
	}
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name+weightsExt, err)
	}
	h, err := read(m, o, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name+weightsExt, err)
	}
	return h, nil
}

// readManifest reads the manifest of a head and holds its name against the file's.
func readManifest(fsys fs.FS, name string) (Manifest, error) {
	b, err := tensor.ReadFile(fsys, name+manifestExt, maxManifest)
	if err != nil {
		return Manifest{}, missing(err, name)
	}
	m, err := ParseManifest(b)
	if err != nil {
		return m, err
	}
	if m.Name != name {
		return m, fmt.Errorf("the manifest names the head %q, the file is %q; a head has the name of its files", m.Name, name)
	}
	return m, nil
}

func missing(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; a head is two files, %s%s with its weights and %s%s with its manifest (docs/heads.md)", fs.ErrNotExist, name, weightsExt, name, manifestExt)
	}
	return err
}

// store is what reads safetensors.
type store interface {
	Names() []string
	Tensor(name string) (tensor.Tensor, bool)
}

// read builds a head from an open file. Names and sizes are held against the
// manifest's spec before memory is taken for any of them.
func read(m Manifest, o Options, f store) (*Head, error) {
	for _, name := range f.Names() {
		if !m.Spec.has(name) && !counter(&m.Spec, name) {
			return nil, unknownTensor(&m.Spec, name)
		}
	}
	for _, want := range m.Spec.Tensors() {
		t, ok := f.Tensor(want.Name)
		if ok && !sameShape(t.Shape, want.Shape) {
			return nil, fmt.Errorf("the tensor %s has the shape %v, the manifest's spec makes it %v", want.Name, t.Shape, want.Shape)
		}
		if ok && t.Type != tensor.F32 && t.Type != tensor.F16 && t.Type != tensor.BF16 {
			return nil, fmt.Errorf("the tensor %s is of type %s; heads are stored in F32, F16 or BF16", want.Name, t.Type)
		}
	}
	var buf []float32
	return assemble(m, o, func(want *Tensor) ([]float32, error) {
		t, ok := f.Tensor(want.Name)
		if !ok {
			return nil, errMissing
		}
		buf = sized(buf, t.Len())
		tensor.Dequantize(t.Type, buf, t.Data)
		return buf, nil
	})
}

// counter says that a tensor is the number of batches that BatchNorm has seen in
// training: part of a state dict, of no use here.
func counter(s *Spec, name string) bool {
	return s.Kind == "citer" && name == "mlp.1.num_batches_tracked"
}

func unknownTensor(s *Spec, name string) error {
	if name == "token_embeddings.weight" {
		return errors.New("the tensor token_embeddings.weight is the model's own table, which is read from the model; leave it out when the file is converted (docs/heads.md)")
	}
	var names []string
	for _, t := range s.Tensors() {
		names = append(names, t.Name)
	}
	return fmt.Errorf("the tensor %.80q is none of a head of kind %s%s; docs/heads.md lists them", name, s.Kind, near.Hint(name, names))
}

// sameShape compares shapes, but for ones in front: a single row may be stored as
// [h] or [1, h].
func sameShape(a, b []int) bool {
	for len(a) > 1 && a[0] == 1 {
		a = a[1:]
	}
	for len(b) > 1 && b[0] == 1 {
		b = b[1:]
	}
	return slices.Equal(a, b)
}

// Save writes NAME.safetensors and NAME.json, the latter last; path is as for Load
// and its last part is the name that the head gets. Each file has its name only
// when it is complete, and the manifest names the weights by their hash: a head
// whose writing was cut off is not taken for a whole one.
func (h *Head) Save(path string) error {
	at, err := base(path)
	if err != nil {
		return err
	}
	m := h.m
	m.Name = filepath.Base(at)
	if err := m.Check(); err != nil {
		return err
	}
	var sources []tensor.Source
	for _, t := range m.Spec.Tensors() {
		w, v := h.parts.matrices[t.Name], h.parts.vectors[t.Name]
		if w == nil && v == nil {
			continue // the bias that a linear head may be without
		}
		if w != nil && w.Format != matmul.F32 {
			return fmt.Errorf("the head %s is held in %s: what it was read from is no longer there to be saved", m.Name, w.Format)
		}
		sources = append(sources, tensor.Source{Name: t.Name, Type: tensor.F32, Shape: t.Shape, Write: func(out io.Writer) error {
			if v != nil {
				_, err := out.Write(appendFloats(nil, v))
				return err
			}
			row, bytes := make([]float32, w.Cols), []byte(nil)
			for r := range w.Rows {
				w.Row(row, r)
				bytes = appendFloats(bytes[:0], row)
				if _, err := out.Write(bytes); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	b, err := json.MarshalIndent(&m, "", "  ")
	if err != nil {
		return err
	}
	if err := tensor.Create(at+weightsExt, func(out io.Writer) error {
		return safetensors.Write(out, map[string]string{"format": "pt"}, sources)
	}); err != nil {
		return err
	}
	return tensor.Create(at+manifestExt, func(out io.Writer) error {
		_, err := io.Copy(out, bytes.NewReader(append(b, '\n')))
		return err
	})
}
