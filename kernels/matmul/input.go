package matmul

import (
	"fmt"
	"unsafe"

	"tokenrouter/kernels/cpu"
)

// Input is columns of activations, packed for matrices of one format and number
// of columns. The zero value is ready; memory grows and is used again. After
// Reset, different parts may be put by several goroutines at once.
type Input struct {
	format Format
	k, n   int
	level  cpu.Level // that the columns are laid out for
	wide   int       // columns in memory of a column of k values
	column int       // bytes of a column
	tiles  int
	least  int // columns of the narrower tiles; the first more of them have one more
	more   int
	data   []byte
}

// Columns lie in tiles, a tile's in the order in which kernels read it:
//
//	floats  for each k: a float32 of each column
//	Q8      for each 32 of k: a float32 scale of each column, an int32 correction
//	        of each (-128 times the sum of its integers: the weights are stored
//	        +128), then for each four of k: four int16 of each column, in the
//	        order k, k+2, k+1, k+3, so that one shift and one mask take apart the
//	        four weights that they meet
//	Q4      as Q8, the correction -8 times the sum, int8 in order of k
const (
	headBytes = 8 // of a block and column: scale, correction
	blockQ8x  = headBytes + 2*block
	blockQ4x  = headBytes + block
)

// widest is the number of columns in a tile of each level, for formats of floats
// and for Q8 and Q4.
var widest = [...][2]int{cpu.Go: {1, 1}, cpu.AVX2: {3, 4}, cpu.AVX512: {6, 8}}

// columnBytes is the memory of a column of k values.
func (f Format) columnBytes(k int) int {
	switch n := f.width(k); f {
	case Q8:
		return n / block * blockQ8x
	case Q4:
		return n / block * blockQ4x
	default:
		return 4 * n
	}
}

// Reset makes room for n columns of k values, for matrices of format f with k
// columns; Put fills it.
func (in *Input) Reset(f Format, k, n int) {
	if f >= formats || k < 0 || n < 0 {
		panic(fmt.Sprintf("matmul: input of %d columns of %d values for %v", n, k, f))
	}
	in.reset(f, k, n, cpu.Current())
}

func (in *Input) reset(f Format, k, n int, level cpu.Level) {
	in.format, in.k, in.n, in.level = f, k, n, level
	in.wide, in.column = f.width(k), f.columnBytes(k)
	in.tiles, in.least, in.more = 0, 0, 0
	if n > 0 {
		most := widest[level][0]
		if f.quantised() {
			most = widest[level][1]
		}
		in.tiles = (n + most - 1) / most
		in.least, in.more = n/in.tiles, n%in.tiles
	}
	if size := n * in.column; cap(in.data) < size {
		b := make([]byte, size+size/4+64)
		in.data = b[-uintptr(unsafe.Pointer(&b[0]))&63:]
	}
	in.data = in.data[:n*in.column]
}

// Columns is the number of columns.
func (in *Input) Columns() int { return in.n }

// tile is the first column and the width of the t-th tile.
func (in *Input) tile(t int) (first, width int) {
	if t < in.more {
		return t * (in.least + 1), in.least + 1
	}
	return t*in.least + in.more, in.least
}

// Put quantises and packs values at.. of a column: at is a multiple of 32, and so
// is the number of values, unless they reach to the column's end. A block of 32
// whose values are all below 1e-30 counts as zeros; one with a value that is not
// finite makes every output of its column NaN.
func (in *Input) Put(col, at int, x []float32) {
	if col < 0 || col >= in.n || at < 0 || at%block != 0 || at+len(x) > in.k || len(x)%block != 0 && at+len(x) != in.k {
		panic(fmt.Sprintf("matmul: values %d to %d of column %d; there are %d columns of %d", at, at+len(x), col, in.n, in.k))
	}
	t := 0
	if wider := in.more * (in.least + 1); col < wider {
		t = col / (in.least + 1)
	} else {
		t = in.more + (col-wider)/in.least
	}
	first, width := in.tile(t)
	tile := in.data[first*in.column:][:width*in.column]
	whole := len(x) / block * block
	put(in.level, in.format, tile, width, col-first, at, x[:whole])
	if at+len(x) < in.k || at+whole == in.wide {
		return
	}
	var rest [2 * block]float32 // the last values and zeros
	copy(rest[:], x[whole:])
	put(in.level, in.format, tile, width, col-first, at+whole, rest[:in.wide-at-whole])
}
