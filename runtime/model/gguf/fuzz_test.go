package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"unsafe"

	"tokenrouter/runtime/model/tensor"
)

// FuzzParse: whatever is accepted keeps the promises of the package, and comes
// back the same when it is written again.
func FuzzParse(f *testing.F) {
	for _, c := range hostileFiles() {
		if len(c.file) < 1<<12 {
			f.Add([]byte(c.file))
		}
	}
	f.Add(sample(f, 0))
	f.Add(sample(f, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(b)) || e.Reason == "" {
				t.Fatalf("error without a place in the file: %v", err)
			}
			return
		}
		checkFile(t, file, b)
	})
}

// checkFile holds a parsed file against the invariant of the package.
func checkFile(t *testing.T, file *File, b []byte) {
	t.Helper()
	if a := file.Alignment; a < 1 || a > MaxAlignment || a&(a-1) != 0 {
		t.Fatalf("alignment %d", a)
	}
	type span struct{ from, to int }
	var spans []span
	var sources []tensor.Source
	for _, x := range file.Tensors() {
		if len(x.Data) == 0 || len(x.Data) != x.Type.Bytes(x.Len()) || len(x.Row(0, x.Rows())) != len(x.Data) {
			t.Fatalf("tensor %q: %v of %s in %d bytes", x.Name, x.Shape, x.Type, len(x.Data))
		}
		from := int(uintptr(unsafe.Pointer(&x.Data[0])) - uintptr(unsafe.Pointer(&b[0])))
		if from%file.Alignment != 0 || from+len(x.Data) > len(b) {
			t.Fatalf("tensor %q: bytes %d..%d of %d", x.Name, from, from+len(x.Data), len(b))
		}
		spans = append(spans, span{from, from + len(x.Data)})
		if got, ok := file.Tensor(x.Name); !ok || &got.Data[0] != &x.Data[0] {
			t.Fatalf("tensor %q is not found", x.Name)
		}
		if len(x.Shape) > 0 { // Write makes no single numbers without a dimension
			sources = append(sources, tensor.Source{Name: x.Name, Type: x.Type, Shape: x.Shape, Write: func(w io.Writer) error {
				_, err := w.Write(x.Data)
				return err
			}})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			t.Fatalf("tensors overlap: %v", spans)
		}
	}
	var meta []Entry
	for _, k := range file.Keys() {
		meta = append(meta, Entry{k, file.meta[k].value()})
	}
	i := slices.IndexFunc(meta, func(e Entry) bool { return e.Key == "general.alignment" })
	if i >= 0 {
		meta[i].Value = uint32(file.Alignment) // any integer kind is read
	}
	var out bytes.Buffer
	if err := Write(&out, meta, sources); err != nil {
		t.Fatalf("an accepted file cannot be written: %v", err)
	}
	again, err := Parse(out.Bytes())
	if err != nil {
		t.Fatalf("a written file is refused: %v", err)
	}
	for _, k := range file.Keys() {
		v, w := file.meta[k], again.meta[k]
		if k != "general.alignment" && (v.kind != w.kind || v.array != w.array || v.n != w.n || !bytes.Equal(v.data, w.data)) {
			t.Fatalf("%q was %s of % x and came back as %s of % x", k, v.describe(), v.data, w.describe(), w.data)
		}
	}
	for _, s := range sources {
		x, _ := file.Tensor(s.Name)
		y, ok := again.Tensor(s.Name)
		if !ok || x.Type != y.Type || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Data, y.Data) {
			t.Fatalf("tensor %q came back as %v, %s %v", s.Name, ok, y.Type, y.Shape)
		}
	}
}

// value is a metadata value as Write takes it.
func (v value) value() any {
	switch v.kind {
	case kindUint8:
		return list(v, 1, func(b []byte) uint8 { return b[0] })
	case kindInt8:
		return list(v, 1, func(b []byte) int8 { return int8(b[0]) })
	case kindBool:
		return list(v, 1, func(b []byte) bool { return b[0] == 1 })
	case kindUint16:
		return list(v, 2, binary.LittleEndian.Uint16)
	case kindInt16:
		return list(v, 2, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case kindUint32:
		return list(v, 4, binary.LittleEndian.Uint32)
	case kindInt32:
		return list(v, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case kindFloat32:
		return list(v, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case kindUint64:
		return list(v, 8, binary.LittleEndian.Uint64)
	case kindInt64:
		return list(v, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case kindFloat64:
		return list(v, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	}
	var all []string
	for b := v.data; len(b) > 0; {
		n := binary.LittleEndian.Uint64(b)
		all = append(all, string(b[8:8+n]))
		b = b[8+n:]
	}
	if v.array {
		return all
	}
	return all[0]
}

func list[T any](v value, size int, read func([]byte) T) any {
	var all []T
	for i := range v.n {
		all = append(all, read(v.data[i*size:]))
	}
	if v.array {
		return all
	}
	return all[0]
}
