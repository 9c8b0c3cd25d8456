package gemm

// fma is x*y + z. The compiler makes one fused instruction of it on arm64, whose
// bits are those of the kernels in assembly; TestFused fails should it not.
func fma(x, y, z float32) float32 { return x*y + z }
