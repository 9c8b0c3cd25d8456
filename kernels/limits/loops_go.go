package limits

import (
	"encoding/binary"
	"sync/atomic"

	"tokenrouter/kernels/cpu"
)

// The loops of plain Go keep eight sums: enough to hide the latency of one.
var (
	goPeaks = []peak{
		{"go, float32", cpu.Go, Float, 2 * goChains, func(n int) {
			s := [goChains]float32{}
			x, y := float32(1), float32(1e-9)
			for range n {
				s[0] += x * y
				s[1] += x * y
				s[2] += x * y
				s[3] += x * y
				s[4] += x * y
				s[5] += x * y
				s[6] += x * y
				s[7] += x * y
			}
			keep(uint64(s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]))
		}},
		{"go, int16", cpu.Go, Int16, 2 * goChains, goIntegers},
		{"go, int8", cpu.Go, Int8, 2 * goChains, goIntegers},
	}
	goReaders = []reader{{"go, 8 bytes at a time", cpu.Go, func(b []byte) {
		var s, t, u, v uint64
		for ; len(b) >= 32; b = b[32:] {
			s ^= binary.LittleEndian.Uint64(b)
			t ^= binary.LittleEndian.Uint64(b[8:])
			u ^= binary.LittleEndian.Uint64(b[16:])
			v ^= binary.LittleEndian.Uint64(b[24:])
		}
		keep(s ^ t ^ u ^ v)
	}}}
)

const goChains = 8

// goIntegers multiplies as wide as Go does: there is no instruction of two int16.
func goIntegers(n int) {
	var s [goChains]int32
	x := int32(n)
	for i := range n {
		y := int32(i)
		s[0] += x * y
		s[1] += x * (y + 1)
		s[2] += x * (y + 2)
		s[3] += x * (y + 3)
		s[4] += x * (y + 4)
		s[5] += x * (y + 5)
		s[6] += x * (y + 6)
		s[7] += x * (y + 7)
	}
	keep(uint64(s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]))
}

var kept atomic.Uint64

// keep uses a result, so that the compiler computes it.
func keep(v uint64) {
	if v == 1<<63+12345 { // hardly ever: a store would be shared by all cores
		kept.Store(v)
	}
}
