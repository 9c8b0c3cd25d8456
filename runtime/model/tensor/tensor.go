package tensor

import (
	"fmt"
	"io"
)

// Tensor is a named array of numbers in a file.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // row-major: the last is the length of a row; not to be changed
	Data  []byte
}

// Len is the number of values.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Cols is the length of a row, 1 for a single number.
func (t Tensor) Cols() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// Rows is the number of rows; a vector is one row.
func (t Tensor) Rows() int {
	n := 1
	for _, d := range t.Shape[:max(len(t.Shape)-1, 0)] {
		n *= d
	}
	return n
}

// Row is the bytes of rows from..to-1.
func (t Tensor) Row(from, to int) []byte {
	size := t.Type.Bytes(t.Cols())
	return t.Data[from*size : to*size : to*size]
}

// Store is a set of tensors by name, such as an open weight file.
//
// Tensors, and slices of their Data, are valid until Close. A Store is safe for
// concurrent use but for Close. Where it maps a file, code that reads Data runs
// in Guard: a file that is shortened while it is open, or whose disk fails, has
// pages that cannot be read.
type Store interface {
	// Tensor finds a tensor; Data is a view of the file, not to be changed.
	Tensor(name string) (Tensor, bool)
	// Names lists the tensors in an order that is the same for the same file.
	Names() []string
	// Release says that t.Data, or any part of it that t.Data was cut down to,
	// will not be read soon: its pages in memory may go. They come back from the
	// file when they are read again.
	Release(t Tensor)
	Close() error
}

// Source is a tensor on its way into a file.
type Source struct {
	Name  string
	Type  Type
	Shape []int // row-major
	// Write writes the tensor's bytes, exactly Size of them.
	Write func(w io.Writer) error
}

// Size is the number of bytes of the source's tensor.
func (s Source) Size() int64 {
	n := int64(1)
	for _, d := range s.Shape {
		n *= int64(d)
	}
	l := layouts[s.Type]
	return n / int64(l.values) * int64(l.bytes)
}

// CopyTo writes the tensor's bytes and fails where the source gives another
// number of them than Size.
func (s Source) CopyTo(w io.Writer) error {
	c := &counter{w: w}
	if err := s.Write(c); err != nil {
		return fmt.Errorf("tensor %q: %w", s.Name, err)
	}
	if c.n != s.Size() {
		return fmt.Errorf("tensor %q: its source wrote %d bytes, %d are due", s.Name, c.n, s.Size())
	}
	return nil
}

// counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
