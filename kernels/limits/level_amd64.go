//go:build !purego

package limits

import (
	"fmt"
	"slices"

	"tokenrouter/kernels/cpu"
)

const chains = 12 // steps of a turn of the loops

var peaks = slices.Concat(goPeaks, []peak{
	{"vfmadd231ps, 256 bits", cpu.AVX2, Float, 2 * 8 * chains, peakFMA256},
	{"vfmadd231ps, 512 bits", cpu.AVX512, Float, 2 * 16 * chains, peakFMA512},
	{"vpmaddwd + vpaddd, 256 bits", cpu.AVX2, Int16, 2 * 16 * chains, peakWords256},
	{"vpmaddwd + vpaddd, 512 bits", cpu.AVX512, Int16, 2 * 32 * chains, peakWords512},
	{"vpdpwssd, 256 bits", cpu.AVX512, Int16, 2 * 16 * chains, peakDotWords256},
	{"vpdpwssd, 512 bits", cpu.AVX512, Int16, 2 * 32 * chains, peakDotWords512},
	{"vpmaddubsw + vpaddw, 256 bits", cpu.AVX2, Int8, 2 * 32 * chains, peakBytes256},
	{"vpmaddubsw + vpaddw, 512 bits", cpu.AVX512, Int8, 2 * 64 * chains, peakBytes512},
	{"vpdpbusd, 256 bits", cpu.AVX512, Int8, 2 * 32 * chains, peakDotBytes256},
	{"vpdpbusd, 512 bits", cpu.AVX512, Int8, 2 * 64 * chains, peakDotBytes512},
})

var readers = allReaders()

// allReaders are the loops that read: a number of streams, with prefetching some
// bytes ahead.
func allReaders() []reader {
	out := slices.Clone(goReaders)
	for _, l := range []struct {
		level   cpu.Level
		bits    int
		streams int
		loop    func(p *byte, stride, n, ahead int)
	}{
		{cpu.AVX2, 256, 1, read256x1},
		{cpu.AVX2, 256, 2, read256x2},
		{cpu.AVX2, 256, 4, read256x4},
		{cpu.AVX512, 512, 1, read512x1},
		{cpu.AVX512, 512, 2, read512x2},
		{cpu.AVX512, 512, 4, read512x4},
	} {
		for _, ahead := range []int{0, 512, 1024, 2048, 4096} {
			out = append(out, reader{
				fmt.Sprintf("%d bits, streams %d, prefetch %d", l.bits, l.streams, ahead), l.level,
				func(b []byte) {
					const piece = 256
					stride := len(b) / l.streams
					l.loop(&b[0], stride, stride/piece, ahead)
				},
			})
		}
	}
	return out
}
