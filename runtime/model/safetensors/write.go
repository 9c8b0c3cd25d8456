package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tokenrouter/runtime/model/tensor"
)

// Write writes a file with the tensors in the given order. The header is padded
// with spaces to a multiple of eight bytes, so that values are aligned where
// wider types come first.
func Write(w io.Writer, meta map[string]string, tensors []tensor.Source) error {
	return prefixed(write(w, meta, tensors))
}

func prefixed(err error) error {
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

func write(w io.Writer, meta map[string]string, tensors []tensor.Source) error {
	head, err := header(meta, tensors)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := t.CopyTo(out); err != nil {
			return err
		}
	}
	return out.Flush()
}

// header is the JSON header, with the tensors in the given order.
func header(meta map[string]string, tensors []tensor.Source) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	add := func(name string, v any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		val, err := json.Marshal(v)
		b.Write(key)
		b.WriteByte(':')
		b.Write(val)
		return err
	}
	if meta != nil {
		if err := add("__metadata__", meta); err != nil {
			return nil, err
		}
	}
	var offset int64
	seen := map[string]bool{"__metadata__": true}
	for _, t := range tensors {
		dtype := t.Type.String()
		if _, ok := dtypes[dtype]; !ok {
			return nil, fmt.Errorf("tensor %q: %s cannot stand in a safetensors file", t.Name, t.Type)
		}
		if seen[t.Name] || len(t.Shape) > MaxDims {
			return nil, fmt.Errorf("tensor %q: a name of its own and at most %d dimensions are needed", t.Name, MaxDims)
		}
		seen[t.Name] = true
		shape := append([]int{}, t.Shape...)
		err := add(t.Name, struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{dtype, shape, [2]int64{offset, offset + t.Size()}})
		if err != nil {
			return nil, err
		}
		offset += t.Size()
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), nil
}

// WriteDir writes a model's weights into a folder that exists: one file, or the
// given number of shards of about the same size with their index. They take the
// place of weights that the folder had.
func WriteDir(dir string, shards int, tensors []tensor.Source) error {
	return prefixed(writeDir(dir, shards, tensors))
}

func writeDir(dir string, shards int, tensors []tensor.Source) error {
	shards = min(max(shards, 1), max(len(tensors), 1))
	meta := map[string]string{"format": "pt"}
	if shards == 1 {
		if err := writeFile(filepath.Join(dir, Single), meta, tensors); err != nil {
			return err
		}
		return remove(filepath.Join(dir, Index))
	}
	var total int64
	for _, t := range tensors {
		total += t.Size()
	}
	var index struct {
		Meta struct {
			Size int64 `json:"total_size"`
		} `json:"metadata"`
		Map map[string]string `json:"weight_map"`
	}
	index.Meta.Size, index.Map = total, map[string]string{}
	var done int64
	for i := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		// A shard takes tensors up to its share, at least one, and leaves at
		// least one for each that follows.
		n := 0
		for n < len(tensors)-(shards-1-i) && (n == 0 || i == shards-1 || done < total*int64(i+1)/int64(shards)) {
			done += tensors[n].Size()
			index.Map[tensors[n].Name] = name
			n++
		}
		if err := writeFile(filepath.Join(dir, name), meta, tensors[:n]); err != nil {
			return err
		}
		tensors = tensors[n:]
	}
	b, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	err = tensor.Create(filepath.Join(dir, Index), func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return remove(filepath.Join(dir, Single))
}

// remove removes what would hide, or mislead about, the weights just written.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func writeFile(path string, meta map[string]string, tensors []tensor.Source) error {
	return tensor.Create(path, func(w io.Writer) error { return write(w, meta, tensors) })
}
