package vec

// fma is x*y + z rounded once. The compiler makes one fused instruction of it on
// arm64; TestFused fails should it not.
func fma(x, y, z float32) float32 { return x*y + z }

// rounded is fma; no case is odd where the sum is rounded once.
func rounded(x, y, z float32) (f float32, odd bool) { return x*y + z, false }

// fmaOdd is never called here: rounded finds no odd case.
func fmaOdd(x, y, z float32) float32 { return fma(x, y, z) }
