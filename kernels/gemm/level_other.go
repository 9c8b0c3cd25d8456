//go:build !amd64 || purego

package gemm

import "tokenrouter/kernels/cpu"

func (p *part) from(cpu.Level) { p.rest(0, 0) }

func transpose(_ cpu.Level, dst []float32, ldd int, src []float32, lds, rows, cols int) (r, c int) {
	return 0, 0
}
