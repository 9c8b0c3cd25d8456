//go:build !purego

package gemm

import "tokenrouter/kernels/cpu"

// kernel computes a tile; a, b and c are its first elements.
type kernel = func(a, b, c *float32, ars, acs, ldb, ldc, k, add int)

// A tile is of 1, 2, 4 or 8 rows and of 1, 2 or 3 vectors.
var (
	wide = [4][3]kernel{
		{avx512R1V1, avx512R1V2, avx512R1V3},
		{avx512R2V1, avx512R2V2, avx512R2V3},
		{avx512R4V1, avx512R4V2, avx512R4V3},
		{avx512R8V1, avx512R8V2, avx512R8V3},
	}
	narrow = [4][3]kernel{
		{avx2R1V1, avx2R1V2, avx2R1V3},
		{avx2R2V1, avx2R2V2, avx2R2V3},
		{avx2R4V1, avx2R4V2, avx2R4V3},
		{avx2R8V1},
	}
)

// from computes the part: columns in groups of 16 where the level has vectors of
// 16, then in groups of 8, and the last few in Go.
func (p *part) from(level cpu.Level) {
	j := 0
	if level >= cpu.AVX512 {
		j = p.columns(&wide, 16, j)
	}
	if level >= cpu.AVX2 {
		j = p.columns(&narrow, 8, j)
	}
	if j < p.n {
		p.rest(0, j)
	}
}

// columns computes the columns from j on that fill vectors of size values, and
// gives the first one that is left. Panels of up to three vectors are made about
// equally wide.
func (p *part) columns(k *[4][3]kernel, size, j int) int {
	vecs := (p.n - j) / size
	for panels := (vecs + 2) / 3; panels > 0; panels-- {
		v := (vecs + panels - 1) / panels
		p.panel(k, v, j)
		vecs -= v
		j += v * size
	}
	return j
}

// panel computes v vectors of columns from j on.
func (p *part) panel(k *[4][3]kernel, v, j int) {
	add := 0
	if p.add {
		add = 1
	}
	for i := 0; i < p.m; {
		r := 3 // the largest tile that fits
		for k[r][v-1] == nil || i+1<<r > p.m {
			r--
		}
		k[r][v-1](&p.a[i*p.row], &p.b[j], &p.c[i*p.ldc+j], 4*p.row, 4*p.col, 4*p.ldb, 4*p.ldc, p.k, add)
		i += 1 << r
	}
}

// transpose does whole squares of 8 x 8 and says how many rows and columns they
// are.
func transpose(level cpu.Level, dst []float32, ldd int, src []float32, lds, rows, cols int) (r, c int) {
	r, c = rows&^7, cols&^7
	if level < cpu.AVX2 || r == 0 || c == 0 {
		return 0, 0
	}
	for i := 0; i < r; i += 8 {
		avx2Transpose(&dst[i], &src[i*lds], 4*ldd, 4*lds, c/8)
	}
	return r, c
}
