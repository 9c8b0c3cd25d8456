//go:build !linux

package mem

import (
	"fmt"
	"os"
	"unsafe"
)

// Alloc gives n zeroed bytes that start on a page. Here they are part of the Go
// heap, which does not move them.
func Alloc(n int) ([]byte, error) {
	if n < 0 || n > 1<<46 {
		return nil, fmt.Errorf("mem: %d bytes asked for", n)
	}
	if n == 0 {
		return nil, nil
	}
	page := os.Getpagesize()
	b := make([]byte, n+page)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	return b[skip : skip+n : skip+n], nil
}

// Free lets go of b; the garbage collector takes it when nothing else holds it.
func Free([]byte) error { return nil }
