package mem

import (
	"fmt"
	"unsafe"
)

// number is an element that memory can be viewed as.
type number interface {
	~uint16 | ~float32
}

// view is b as numbers of another size, the same memory.
func view[T number](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b)%size != 0 {
		panic(fmt.Sprintf("mem: %d bytes are no whole number of %d-byte values", len(b), size))
	}
	if len(b) == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%uintptr(size) != 0 {
		panic(fmt.Sprintf("mem: the bytes do not start at a multiple of %d", size))
	}
	return unsafe.Slice((*T)(p), len(b)/size)
}

// Float32s is b as float32s in the machine's byte order: the same memory, not a
// copy. The length of b is a multiple of 4.
func Float32s(b []byte) []float32 { return view[float32](b) }

// Uint16s is b as uint16s in the machine's byte order: the same memory, not a
// copy. The length of b is a multiple of 2.
func Uint16s(b []byte) []uint16 { return view[uint16](b) }
