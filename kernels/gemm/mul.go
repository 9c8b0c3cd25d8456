package gemm

import (
	"fmt"

	"tokenrouter/kernels/cpu"
)

// View is a matrix in memory: element (i, j) is Data[i*Row+j*Col]. Col is 1 for a
// matrix that lies row by row; Row is 1 for its transpose.
type View struct {
	Data     []float32
	Row, Col int
}

// Rows is a matrix that lies row by row, ld values apart.
func Rows(data []float32, ld int) View { return View{data, ld, 1} }

// Transposed is the transpose of a matrix that lies row by row, ld values apart.
func Transposed(data []float32, ld int) View { return View{data, 1, ld} }

// terms is how many terms of the sums are taken at a time, so that what is read
// of both operands stays near the core. Outputs go on from where they were.
const terms = 256

// Mul writes c = a b for a of m x k, b of k x n and c of m x n: element (i, j) of
// c is c[i*ldc+j], of b is b[i*ldb+j]. With add it does c += a b. c overlaps
// neither a nor b.
func Mul(m, n, k int, a View, b []float32, ldb int, c []float32, ldc int, add bool) {
	if m < 0 || n < 0 || k < 0 || n > ldb || n > ldc {
		panic(fmt.Sprintf("gemm: a product of %d x %d over %d terms, rows of %d and %d", m, n, k, ldb, ldc))
	}
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		for i := 0; i < m && !add; i++ {
			clear(c[i*ldc:][:n])
		}
		return
	}
	// The last elements are looked at, so that kernels stay inside the slices.
	_, _, _ = a.Data[(m-1)*a.Row+(k-1)*a.Col], b[(k-1)*ldb+n-1], c[(m-1)*ldc+n-1]
	level := cpu.Current()
	for at := 0; at < k; at += terms {
		p := part{m: m, n: n, k: min(terms, k-at), a: a.Data[at*a.Col:], row: a.Row, col: a.Col, b: b[at*ldb:], ldb: ldb, c: c, ldc: ldc, add: add || at > 0}
		p.from(level)
	}
}

// part is a product over some of the terms.
type part struct {
	m, n, k  int
	a, b, c  []float32
	row, col int
	ldb, ldc int
	add      bool
}

// rest computes rows i.. and columns j.. in Go.
func (p *part) rest(i, j int) {
	for ; i < p.m; i++ {
		out := p.c[i*p.ldc:][j:p.n]
		if !p.add {
			clear(out)
		}
		for t := range p.k {
			x, w := p.a[i*p.row+t*p.col], p.b[t*p.ldb:][j:p.n]
			for l := range out {
				out[l] = fma(x, w[l], out[l])
			}
		}
	}
}
