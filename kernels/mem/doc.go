// Package mem gives large blocks of memory outside the Go heap, for weights and
// KV, and says how much memory the process has and may still take.
//
// The invariant that matters: Alloc's bytes are zero, start on a page and stay
// where they are until Free; the garbage collector neither sees nor scans them,
// so they must hold no Go pointers. Neighbouring blocks share regions in which
// the kernel is asked for huge pages: a core that streams weights through 4 KiB
// pages loses a third of the memory's bandwidth to address translation.
//
// Read next: region_linux.go for how blocks lie in regions, memory_linux.go for what
// counts as available.
package mem
