package matmul

import (
	"fmt"

	"tokenrouter/kernels/cpu"
)

// Format is how the weights of a matrix are stored.
type Format uint8

const (
	F32  Format = iota
	F16         // IEEE 754 half precision
	BF16        // the upper half of a float32
	Q8          // blocks of 32: 8-bit integers and an F16 scale (Q8_0 of GGUF)
	Q4          // blocks of 32: 4-bit integers and an F16 scale (Q4_0 of GGUF)
	formats
)

var formatNames = [formats]string{"f32", "f16", "bf16", "q8", "q4"}

func (f Format) String() string {
	if f >= formats {
		return fmt.Sprintf("Format(%d)", uint8(f))
	}
	return formatNames[f]
}

// ParseFormat is the format that String calls name.
func ParseFormat(name string) (Format, error) {
	for f, s := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("%q is no format of weights; there are f32, f16, bf16, q8 and q4", name)
}

// quantised says that activations are quantised as well.
func (f Format) quantised() bool { return f >= Q8 }

// Rows lie in groups of 16. A group's weights lie in units, in the order in which
// kernels read them:
//
//	F32   one k: 16 rows
//	F16   one k: 16 rows
//	BF16  a pair of k: 16 rows of two
//	Q8    64 of k: scales of 2 blocks x 16 rows, then for each four of k: 16 rows
//	      of four bytes, each the weight + 128
//	Q4    64 of k: scales as Q8, then for each block four times 16 rows of four
//	      bytes: the i-th four bytes hold k = 4i.. in their lower halves and
//	      k = 16+4i.. in their upper halves, each the weight + 8
//
// Floats have one chain of additions for each row, so that a kernel needs several
// groups at once to be fast, but memory is fastest when it is read line by line
// as one stream: the units of two or four groups, a band, take turns. The last
// band may be smaller. A group of Q8 or Q4 is a band of its own. Columns are
// padded with zeros to a multiple of 4 for floats and of 64 for Q8 and Q4, rows
// to whole groups.
const (
	lanes    = 16 // rows of a group
	block    = 32 // values that share a scale
	unit     = 64 // columns of a unit of Q8 and Q4
	scales   = 64 // bytes of scales in a unit
	unitQ8   = scales + unit*lanes
	unitQ4   = scales + unit*lanes/2
	half     = unit / block // blocks of a unit
	maxBytes = 1 << 40      // of one matrix
	maxSide  = 1 << 30      // rows or columns of one: far from where Size overflows
)

// columns is the number of columns of a unit.
func (f Format) columns() int {
	switch f {
	case Q8, Q4:
		return unit
	case BF16:
		return 2
	}
	return 1
}

// round is the number of columns that a kernel takes in one round of its loop.
func (f Format) round() int {
	if f.quantised() {
		return unit
	}
	return 4
}

// width is the number of columns in memory.
func (f Format) width(cols int) int { return (cols + f.round() - 1) / f.round() * f.round() }

// unitBytes is the size of a unit.
func (f Format) unitBytes() int {
	switch f {
	case F16:
		return 2 * lanes
	case Q8:
		return unitQ8
	case Q4:
		return unitQ4
	}
	return 4 * lanes
}

// band is the number of groups whose units take turns, in a matrix made at a
// level: as many as its registers serve at once.
func (f Format) band(l cpu.Level) int {
	switch {
	case f.quantised():
		return 1
	case l == cpu.AVX512:
		return 4
	}
	return 2
}

// stride is the number of bytes of a group.
func (f Format) stride(cols int) int { return f.width(cols) / f.columns() * f.unitBytes() }

// Size is the number of bytes that a matrix takes in memory.
func Size(f Format, rows, cols int) int64 {
	return int64(padded(rows)/lanes) * int64(f.stride(cols))
}

func padded(rows int) int { return (rows + lanes - 1) / lanes * lanes }
