package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"tokenrouter/runtime/model/tensor"
)

// FuzzIndex: whatever an index says, only files of the same folder are named.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(weightMap("a", "1.safetensors", "b", "2.safetensors")))
	f.Add([]byte(weightMap("a", "../1.safetensors")))
	f.Add([]byte(`{"weight_map":{"a":"x.safetensors","a":"y.safetensors"}}`))
	f.Add([]byte(`{"weight_map":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		place, names, err := parseIndex(b)
		if err != nil {
			return
		}
		if !slices.IsSorted(names) || len(place) == 0 {
			t.Fatalf("files %q of %d tensors", names, len(place))
		}
		for _, n := range names {
			if filepath.Base(n) != n || !filepath.IsLocal(n) {
				t.Fatalf("%q leads out of the folder", n)
			}
		}
		for _, n := range place {
			if _, ok := slices.BinarySearch(names, n); !ok {
				t.Fatalf("file %q is not listed", n)
			}
		}
	})
}

// FuzzParse: what Parse accepts a Folder accepts, its tensors cover the data,
// and the file comes back the same when it is written again.
func FuzzParse(f *testing.F) {
	f.Add(build(sound, soundData()))
	f.Add(build(entry("F32", "[2]", "[0,8]"), make([]byte, 8)))
	f.Add(build(`{"__metadata__":{"a":"b"}}`, nil))
	f.Add([]byte{1, 2, 3})
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 1<<62), "{}"...))
	f.Add(append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "{}"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		folder, err2 := OpenFS(fstest.MapFS{Single: {Data: b}})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("Parse says %v, OpenFS %v", err, err2)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(b)) || !errors.As(err2, &e) {
				t.Fatalf("error without a place in the file: %v, %v", err, err2)
			}
			return
		}
		total := 0
		var sources []tensor.Source
		for _, name := range folder.Names() {
			x, ok := folder.Tensor(name)
			if !ok || len(x.Data) != x.Type.Bytes(x.Len()) {
				t.Fatalf("tensor %q: %v of %s in %d bytes", name, x.Shape, x.Type, len(x.Data))
			}
			total += len(x.Data)
			sources = append(sources, tensor.Source{Name: name, Type: x.Type, Shape: x.Shape, Write: func(w io.Writer) error {
				_, err := w.Write(x.Data)
				return err
			}})
		}
		if total != len(b)-int(file.data) {
			t.Fatalf("tensors cover %d of %d bytes", total, len(b)-int(file.data))
		}
		var out bytes.Buffer
		if err := Write(&out, file.Meta, sources); err != nil {
			t.Fatalf("an accepted file cannot be written: %v", err)
		}
		again, err := OpenFS(fstest.MapFS{Single: {Data: out.Bytes()}})
		if err != nil {
			t.Fatalf("a written file is refused: %v", err)
		}
		for _, name := range folder.Names() {
			x, _ := folder.Tensor(name)
			y, ok := again.Tensor(name)
			if !ok || x.Type != y.Type || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Data, y.Data) {
				t.Fatalf("tensor %q came back as %v, %s %v", name, ok, y.Type, y.Shape)
			}
		}
	})
}
