// Package gemm multiplies matrices of float32 that lie in memory as they are, row
// by row or column by column, without packing: what training does, whose operands
// change at every step. Weights that stay are multiplied by kernels/matmul.
//
// The invariant that matters: an output is one chain of fused multiply-adds over
// its terms in order, whatever the tile, the block of terms and its neighbours.
// The levels of assembly agree bit for bit, and so does Go on arm64; elsewhere Go
// rounds twice (float64, then float32), one unit of the last place off in about
// one of 2^29 steps.
//
// Read mul.go.
package gemm

//go:generate go -C ../gen run ./gemm -out ../gemm/kernels_amd64.s -stubs ../gemm/kernels_amd64.go -pkg gemm
