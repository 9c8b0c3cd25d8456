//go:build !amd64 || purego

package matmul

import "tokenrouter/kernels/cpu"

func put(_ cpu.Level, f Format, tile []byte, width, col, at int, x []float32) {
	f.put(tile, width, col, at, x)
}

func multiply(p *product, f Format, _ cpu.Level) { p.run(f) }
