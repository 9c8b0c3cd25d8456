//go:build !unix

package tensor

import "os"

// Mapping is a file's bytes in memory.
type Mapping struct {
	Data []byte // not to be changed
}

// Map reads a file.
func Map(path string) (*Mapping, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &Mapping{Data: b}, nil
}

// Guard runs f. A file that was read into memory stays readable.
func Guard(f func() error) error { return f() }

// Release does nothing here.
func (m *Mapping) Release([]byte) {}

// Close drops the bytes; Data must not be used any more.
func (m *Mapping) Close() error {
	m.Data = nil
	return nil
}
