//go:build unix

package tensor

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mapping is a file's bytes in memory, read when they are touched.
type Mapping struct {
	Data []byte // not to be changed: the memory is read-only
	path string
}

// Map maps a regular file. Where a system has no mappings, the file is read.
// Code that reads Data runs in Guard.
func Map(path string) (*Mapping, error) {
	// Looked at before it is opened: opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err = f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() == 0:
		return &Mapping{}, nil
	case int64(int(info.Size())) != info.Size():
		return nil, fmt.Errorf("%s has %d bytes, more than this machine can address", path, info.Size())
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s into memory: %w", path, err)
	}
	m := &Mapping{Data: b, path: path}
	m.register()
	return m, nil
}

// span is what one page table covers. Linux maps what it has cached around
// every page that is touched, at most to the bounds of the span.
const span = 2 << 20

// Release lets the pages of b go, where b is a part of Data, with those around
// it up to the bounds of their spans: else what was mapped around them would
// stay. They are read from the file again when they are used again. Any
// goroutine may call it at any time before Close.
func (m *Mapping) Release(b []byte) {
	if len(b) == 0 || len(m.Data) == 0 {
		return
	}
	start, size := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data))), uintptr(len(m.Data))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - start
	if at >= size || uintptr(len(b)) > size-at {
		return // no part of this file
	}
	from := max((start+at)&^(span-1), start) - start
	to := min((start+at+uintptr(len(b))+span-1)&^(span-1)-start, size)
	// Only a hint: where it fails, the pages stay.
	_ = unix.Madvise(m.Data[from:to], unix.MADV_DONTNEED)
}

// Close ends the mapping; Data must not be used any more.
func (m *Mapping) Close() error {
	if m.Data == nil {
		return nil
	}
	m.forget()
	b := m.Data
	m.Data = nil
	return unix.Munmap(b)
}
