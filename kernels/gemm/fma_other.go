//go:build !arm64

package gemm

// fma rounds twice, to float64 and to float32: within a unit of the last place
// of the fused instruction, and nearly always its bits. The product of two
// float32s is exact in float64.
func fma(x, y, z float32) float32 { return float32(float64(x)*float64(y) + float64(z)) }
