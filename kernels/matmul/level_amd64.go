//go:build !purego

package matmul

import (
	"unsafe"

	"tokenrouter/kernels/cpu"
)

// kernel computes a product with R groups of each band, which begin at w, x and y:
// rounds of its loop over units that lie step bytes apart, for count bands whose
// outputs lie next bytes apart, columns of outputs ldy bytes.
type kernel = func(w, x, y *byte, rounds, step, count, next, ldy int)

// tiles are the kernels of a level and format by the number of columns less one:
// for one group of rows, and where that pays for two and for four.
var tiles = [...][formats][8][3]kernel{
	cpu.AVX2: {
		F32: {
			{avx2F32R1C1, avx2F32R2C1},
			{avx2F32R1C2, avx2F32R2C2},
			{avx2F32R1C3, avx2F32R2C3},
		},
		F16: {
			{avx2F16R1C1, avx2F16R2C1},
			{avx2F16R1C2, avx2F16R2C2},
			{avx2F16R1C3, avx2F16R2C3},
		},
		BF16: {
			{avx2BF16R1C1, avx2BF16R2C1},
			{avx2BF16R1C2, avx2BF16R2C2},
			{avx2BF16R1C3, avx2BF16R2C3},
		},
		Q8: {
			{avx2Q8R1C1},
			{avx2Q8R1C2},
			{avx2Q8R1C3},
			{avx2Q8R1C4},
		},
		Q4: {
			{avx2Q4R1C1},
			{avx2Q4R1C2},
			{avx2Q4R1C3},
			{avx2Q4R1C4},
		},
	},
	cpu.AVX512: {
		F32: {
			{avx512F32R1C1, avx512F32R2C1, avx512F32R4C1},
			{avx512F32R1C2, avx512F32R2C2, avx512F32R4C2},
			{avx512F32R1C3, avx512F32R2C3, avx512F32R4C3},
			{avx512F32R1C4, nil, avx512F32R4C4},
			{avx512F32R1C5, nil, avx512F32R4C5},
			{avx512F32R1C6, nil, avx512F32R4C6},
		},
		F16: {
			{avx512F16R1C1, avx512F16R2C1, avx512F16R4C1},
			{avx512F16R1C2, avx512F16R2C2, avx512F16R4C2},
			{avx512F16R1C3, avx512F16R2C3, avx512F16R4C3},
			{avx512F16R1C4, nil, avx512F16R4C4},
			{avx512F16R1C5, nil, avx512F16R4C5},
			{avx512F16R1C6, nil, avx512F16R4C6},
		},
		BF16: {
			{avx512BF16R1C1, avx512BF16R2C1, avx512BF16R4C1},
			{avx512BF16R1C2, avx512BF16R2C2, avx512BF16R4C2},
			{avx512BF16R1C3, avx512BF16R2C3, avx512BF16R4C3},
			{avx512BF16R1C4, nil, avx512BF16R4C4},
			{avx512BF16R1C5, nil, avx512BF16R4C5},
			{avx512BF16R1C6, nil, avx512BF16R4C6},
		},
		Q8: {
			{avx512Q8R1C1},
			{avx512Q8R1C2},
			{avx512Q8R1C3},
			{avx512Q8R1C4},
			{avx512Q8R1C5},
			{avx512Q8R1C6},
			{avx512Q8R1C7},
			{avx512Q8R1C8},
		},
		Q4: {
			{avx512Q4R1C1},
			{avx512Q4R1C2},
			{avx512Q4R1C3},
			{avx512Q4R1C4},
			{avx512Q4R1C5},
			{avx512Q4R1C6},
			{avx512Q4R1C7},
			{avx512Q4R1C8},
		},
	},
}

// put packs values at.. of column col of a tile of width columns: whole blocks of
// 32, of floats whole fours.
func put(l cpu.Level, f Format, tile []byte, width, col, at int, x []float32) {
	if l == cpu.Go {
		f.put(tile, width, col, at, x)
		return
	}
	if len(x) == 0 {
		return
	}
	from, n := (*byte)(unsafe.Pointer(&x[0])), len(x)/block
	switch f {
	case Q8:
		to := tile[at/block*width*blockQ8x:][:n*width*blockQ8x]
		avx2PutQ8(&to[4*col], &to[headBytes*width+8*col], from, n, width*blockQ8x, 4*width, 8*width)
	case Q4:
		to := tile[at/block*width*blockQ4x:][:n*width*blockQ4x]
		avx2PutQ4(&to[4*col], &to[headBytes*width+4*col], from, n, width*blockQ4x, 4*width, 4*width)
	default:
		to := tile[4*(at*width+col):][:4*((len(x)-1)*width+1)]
		avx2PutFloats(&to[0], from, len(x), 4*width)
	}
}

// multiply computes a product with the kernels of a level.
func multiply(p *product, f Format, l cpu.Level) {
	if l == cpu.Go {
		p.run(f)
		return
	}
	t := &tiles[l][f][p.width-1]
	for g := 0; g < p.rows; {
		i := 2 // the largest kernel there is for what is left of the band
		for t[i] == nil || g+1<<i > p.rows {
			i--
		}
		t[i](&p.w[g*f.unitBytes()], &p.x[0], (*byte)(unsafe.Pointer(&p.y[g*lanes])),
			p.k/f.round(), p.step, p.count, 4*lanes*p.rows, 4*p.ldy)
		g += 1 << i
	}
}
