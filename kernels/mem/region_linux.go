package mem

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// hugePage is the size of a huge page on amd64, and on arm64 with 4 KiB
	// pages.
	hugePage = 2 << 20
	// regionSize is the address space that small blocks share. It costs memory
	// only where it is touched.
	regionSize = 64 << 20
	// own is the size from which a block has a region of its own.
	own = regionSize / 4
)

// region is a mapping that starts on a huge page. Blocks are cut from it in
// order and never again from the same place, so a block is always fresh and
// zero.
type region struct {
	base unsafe.Pointer
	size int
	used int // bytes cut off so far
	live int // blocks not yet freed
}

// block is what Alloc gave.
type block struct {
	in   *region
	size int // whole pages
}

// heap is the blocks of the process.
var heap = struct {
	sync.Mutex
	cut    *region // where the next small block comes from
	blocks map[unsafe.Pointer]block
}{blocks: map[unsafe.Pointer]block{}}

var pageSize = os.Getpagesize()

// pages is n rounded up to whole pages.
func pages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// Alloc gives n zeroed bytes that start on a page, outside the Go heap, in huge
// pages where the system grants them. Give them back with Free. An error says
// that the system refused the memory.
func Alloc(n int) ([]byte, error) {
	if n < 0 || n > 1<<46 {
		return nil, fmt.Errorf("mem: %d bytes asked for", n)
	}
	if n == 0 {
		return nil, nil
	}
	size := pages(n)
	heap.Lock()
	defer heap.Unlock()
	r := heap.cut
	switch {
	case size >= own:
		var err error
		if r, err = openRegion(size); err != nil {
			return nil, fmt.Errorf("mem: %d bytes: %w", n, err)
		}
	case r == nil || r.size-r.used < size:
		fresh, err := openRegion(regionSize)
		if err != nil {
			return nil, fmt.Errorf("mem: %d bytes: %w", n, err)
		}
		heap.cut = fresh
		if r != nil && r.live == 0 {
			_ = unix.MunmapPtr(r.base, uintptr(r.size)) // it holds nothing
		}
		r = fresh
	}
	p := unsafe.Add(r.base, r.used)
	r.used += size
	r.live++
	heap.blocks[p] = block{r, size}
	return unsafe.Slice((*byte)(p), n), nil
}

// Free gives the memory of b back to the system; b is what Alloc returned, or a
// slice that starts with it. Nothing may use the memory afterwards. Freeing
// what is not allocated is an error and changes nothing.
func Free(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	heap.Lock()
	defer heap.Unlock()
	k, ok := heap.blocks[p]
	if !ok {
		return fmt.Errorf("mem: the memory at %p is not allocated", p)
	}
	delete(heap.blocks, p)
	r := k.in
	r.live--
	if r.live == 0 && r != heap.cut {
		if err := unix.MunmapPtr(r.base, uintptr(r.size)); err != nil {
			return fmt.Errorf("mem: unmapping %d bytes: %w", r.size, err)
		}
		return nil
	}
	if err := unix.Madvise(unsafe.Slice((*byte)(p), k.size), unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("mem: releasing %d bytes: %w", k.size, err)
	}
	return nil
}

// openRegion maps size bytes from the start of a huge page.
func openRegion(size int) (*region, error) {
	size = pages(size)
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
	all, err := unix.MmapPtr(-1, 0, nil, uintptr(size+hugePage), prot, flags)
	if err != nil {
		return nil, err
	}
	// What lies before the first huge page and behind the region goes back.
	before := int(-uintptr(all) & (hugePage - 1))
	base := unsafe.Add(all, before)
	if before > 0 {
		_ = unix.MunmapPtr(all, uintptr(before)) // only address space is lost
	}
	if behind := hugePage - before; behind > 0 {
		_ = unix.MunmapPtr(unsafe.Add(base, size), uintptr(behind))
	}
	if size >= hugePage {
		// A kernel without huge pages refuses; the memory is good all the same.
		_ = unix.Madvise(unsafe.Slice((*byte)(base), size), unix.MADV_HUGEPAGE)
	}
	return &region{base: base, size: size}, nil
}
