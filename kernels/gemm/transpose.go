package gemm

import (
	"fmt"

	"tokenrouter/kernels/cpu"
)

// Transpose writes the transpose of src, rows x cols values whose rows lie lds
// apart, to dst, whose rows lie ldd apart.
func Transpose(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	if rows < 0 || cols < 0 || rows > ldd || cols > lds {
		panic(fmt.Sprintf("gemm: the transpose of %d x %d, rows of %d and %d", rows, cols, lds, ldd))
	}
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = src[(rows-1)*lds+cols-1], dst[(cols-1)*ldd+rows-1]
	r, c := transpose(cpu.Current(), dst, ldd, src, lds, rows, cols)
	for i := range rows {
		from := c
		if i >= r {
			from = 0
		}
		for j, v := range src[i*lds:][:cols][from:] {
			dst[(from+j)*ldd+i] = v
		}
	}
}
