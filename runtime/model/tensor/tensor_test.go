package tensor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTensor(t *testing.T) {
	m := Tensor{Type: Q8_0, Shape: []int{2, 3, 64}, Data: make([]byte, 6*68)}
	for i := range m.Data {
		m.Data[i] = byte(i / 68)
	}
	if m.Len() != 384 || m.Rows() != 6 || m.Cols() != 64 {
		t.Errorf("%d values, %d rows, %d columns", m.Len(), m.Rows(), m.Cols())
	}
	if r := m.Row(2, 4); len(r) != 136 || cap(r) != 136 || r[0] != 2 || r[135] != 3 {
		t.Errorf("rows 2 and 3: % x", r)
	}
	v := Tensor{Type: F32, Shape: []int{7}, Data: make([]byte, 28)}
	if v.Len() != 7 || v.Rows() != 1 || v.Cols() != 7 || len(v.Row(0, 1)) != 28 {
		t.Errorf("vector: %d values, %d rows, %d columns", v.Len(), v.Rows(), v.Cols())
	}
	s := Tensor{Type: F32, Data: make([]byte, 4)}
	if s.Len() != 1 || s.Rows() != 1 || s.Cols() != 1 {
		t.Errorf("number: %d values, %d rows, %d columns", s.Len(), s.Rows(), s.Cols())
	}
}

func TestCopyTo(t *testing.T) {
	full := errors.New("full")
	for _, c := range []struct {
		name  string
		write func(w io.Writer) error
		want  string // "" for success
	}{
		{"whole", func(w io.Writer) error { _, err := w.Write(make([]byte, 36)); return err }, ""},
		{"in parts", func(w io.Writer) error {
			for range 36 {
				if _, err := w.Write([]byte{1}); err != nil {
					return err
				}
			}
			return nil
		}, ""},
		{"short", func(w io.Writer) error { _, err := w.Write(make([]byte, 35)); return err }, `tensor "a": its source wrote 35 bytes, 36 are due`},
		{"long", func(w io.Writer) error { _, err := w.Write(make([]byte, 37)); return err }, "wrote 37 bytes"},
		{"failing", func(io.Writer) error { return full }, `tensor "a": full`},
	} {
		var b bytes.Buffer
		err := Source{Name: "a", Type: Q4_0, Shape: []int{2, 32}, Write: c.write}.CopyTo(&b)
		if c.want == "" && (err != nil || b.Len() != 36) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A mapping shows the file, and shows it again after its pages were let go.
func TestMap(t *testing.T) {
	want := make([]byte, 5<<20+123) // three spans or four
	for i := range want {
		want[i] = byte(i*7 + i>>12)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Map(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Data, want) {
		t.Fatal("the mapping differs from the file")
	}
	page := os.Getpagesize()
	for _, b := range [][]byte{m.Data, m.Data[1:], m.Data[:page-1], m.Data[page : 2*page], m.Data[3*page+5:], m.Data[4<<20 : 4<<20+1], m.Data[:0], nil, want, want[2*page:]} {
		m.Release(b)
		if !bytes.Equal(m.Data, want) {
			t.Fatalf("after %d bytes were released, the mapping differs from the file", len(b))
		}
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	m.Release(want) // of a closed mapping: nothing
}

func TestMapRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Map(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Map(dir); err == nil {
		t.Error("a folder is mapped")
	}
	path := filepath.Join(dir, "empty")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Map(path)
	if err != nil || len(m.Data) != 0 {
		t.Fatalf("an empty file: %d bytes, %v", len(m.Data), err)
	}
	m.Release(nil)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// The order of Readable is that of messages; it has each type once.
func TestReadable(t *testing.T) {
	all := Readable()
	slices.Sort(all)
	if len(slices.Compact(all)) != len(Readable()) {
		t.Errorf("a type twice in %v", Readable())
	}
}

// A file has its name only when it is complete, and nothing is left of a failure.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second, over the first"} {
		if err := Create(path, func(w io.Writer) error {
			if b, err := os.ReadFile(path); err == nil && string(b) == text {
				t.Error("the file is there before it is written")
			}
			_, err := io.WriteString(w, text)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		b, err2 := os.ReadFile(path)
		if err := errors.Join(err, err2); err != nil || string(b) != text || info.Mode().Perm()&0o444 != 0o444 {
			t.Errorf("%q of mode %v, %v", b, info.Mode(), err)
		}
	}
	full := errors.New("full")
	if err := Create(path, func(io.Writer) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "second, over the first" {
		t.Errorf("%q after a failure, %v", b, err)
	}
	if err := Create(filepath.Join(dir, "nothing", "file"), func(io.Writer) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := Create(dir, func(io.Writer) error { return nil }); err == nil {
		t.Error("a folder is replaced by a file")
	}
	left, err := os.ReadDir(dir)
	parts, err2 := filepath.Glob(dir + "*.part")
	if err := errors.Join(err, err2); err != nil || len(left) != 1 || len(parts) != 0 {
		t.Errorf("%v and %v are left, %v", left, parts, err)
	}
}
