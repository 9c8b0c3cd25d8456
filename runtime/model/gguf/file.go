package gguf

import (
	"fmt"

	"tokenrouter/runtime/model/tensor"
)

// Limits on what a file may say. Files in use stay far below them.
const (
	MaxKeys      = 1 << 16
	MaxTensors   = 1 << 16
	MaxKeyBytes  = 1<<16 - 1 // of one key
	MaxNameBytes = 255       // of a tensor's name; llama.cpp writes at most 63
	MaxDims      = 4
	MaxArray     = 1 << 22 // elements of a metadata array
	MaxAlignment = 1 << 20
	maxAllKeys   = 16 << 20 // bytes of all keys
)

// DefaultAlignment holds where a file has no general.alignment.
const DefaultAlignment = 32

// File is an open GGUF file. It is safe for concurrent use but for Close.
type File struct {
	Version   int
	Alignment int

	raw     []byte
	mapping *tensor.Mapping // nil for Parse
	keys    []string
	meta    map[string]value
	tensors []tensor.Tensor // in the order of the file
	byName  map[string]int
}

// Error says where a file is damaged, or what in it is not supported, and why.
type Error struct {
	Offset int64 // bytes from the start of the file
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("gguf: at byte %d: %s", e.Offset, e.Reason)
}

// Open maps a file into memory and checks all of it but the tensors' values.
func Open(path string) (*File, error) {
	m, err := tensor.Map(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	var f *File
	err = tensor.Guard(func() (err error) {
		f, err = Parse(m.Data)
		return err
	})
	if err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.mapping = m
	return f, nil
}

// Bytes is the whole file, a view, not to be changed.
func (f *File) Bytes() []byte { return f.raw }

// Tensors lists the tensors in the order of the file; the list is not to be
// changed.
func (f *File) Tensors() []tensor.Tensor { return f.tensors }

// Names lists the names of the tensors in the order of the file.
func (f *File) Names() []string {
	names := make([]string, len(f.tensors))
	for i, t := range f.tensors {
		names[i] = t.Name
	}
	return names
}

// Tensor finds a tensor by its name.
func (f *File) Tensor(name string) (tensor.Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return tensor.Tensor{}, false
	}
	return f.tensors[i], true
}

// Release lets the pages of a tensor, or of a part of its Data, go.
func (f *File) Release(t tensor.Tensor) {
	if f.mapping != nil {
		f.mapping.Release(t.Data)
	}
}

// Close ends the mapping: no tensor may be used any more. Metadata stay
// readable only until then, too, but for values already taken.
func (f *File) Close() error {
	f.raw, f.tensors, f.byName, f.meta, f.keys = nil, nil, nil, nil, nil
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping = nil
	return m.Close()
}

var _ tensor.Store = (*File)(nil)
