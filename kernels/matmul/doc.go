// Package matmul multiplies weight matrices with a few columns of activations:
// weights of five formats in memory outside the Go heap, packed for the kernels,
// and kernels in Go and in assembly for two levels of amd64 (kernels/cpu).
//
// The invariant that matters: an output is one chain of operations in one order,
// whatever the number of columns, their neighbours, the rows asked for and the
// thread. Formats of floats: a fused multiply-add per k = 0.. in order. Q8 and
// Q4: activations are quantised per 32 values (to 16 and to 8 bits), a block's
// products are summed as integers, the sum becomes a float, is multiplied by the
// scale of the activations and fused onto the accumulator with the scale of the
// weights, blocks in order. The levels of assembly agree bit for bit, and so does
// Go on arm64, which has a fused multiply-add; elsewhere Go rounds twice (float64,
// then float32), one unit of the last place off in about one of 2^29 steps.
//
// Read next: format.go for how weights lie in memory, input.go for how columns
// do, mul.go for the walk over tiles, generic.go for the arithmetic in Go.
package matmul

//go:generate go -C ../gen run ./matmul -out ../matmul/kernels_amd64.s -stubs ../matmul/kernels_amd64.go -pkg matmul
