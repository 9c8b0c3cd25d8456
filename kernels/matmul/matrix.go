package matmul

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/mem"
)

// Matrix is rows x cols weights, packed for the kernels. Rows may be set by
// several goroutines at once, each row by one; a matrix that is no longer
// written may be multiplied by any number of them.
type Matrix struct {
	Rows, Cols int
	Format     Format

	data   []byte
	stride int // bytes of a group of rows
	unit   int // bytes of a unit of a group
	band   int // groups whose units take turns
	free   runtime.Cleanup
}

// New is a matrix of zeros, its memory outside the Go heap.
func New(f Format, rows, cols int) (*Matrix, error) {
	switch {
	case f >= formats:
		return nil, fmt.Errorf("a matrix of %v: there is no such format", f)
	case rows < 0 || cols < 0 || rows > maxSide || cols > maxSide || Size(f, rows, cols) > maxBytes:
		return nil, fmt.Errorf("a matrix of %d x %d is out of range", rows, cols)
	}
	data, err := mem.Alloc(int(Size(f, rows, cols)))
	if err != nil {
		return nil, fmt.Errorf("a matrix of %d x %d in %v: %w", rows, cols, f, err)
	}
	m := &Matrix{
		Rows: rows, Cols: cols, Format: f, data: data,
		stride: f.stride(cols), unit: min(f.unitBytes(), f.stride(cols)), band: f.band(cpu.Current()),
	}
	m.free = runtime.AddCleanup(m, func(b []byte) { _ = mem.Free(b) }, data)
	return m, nil
}

// Free gives the memory back; the matrix is not to be used any more. A matrix
// that nothing refers to frees itself in time.
func (m *Matrix) Free() {
	if m.data == nil {
		return
	}
	m.free.Stop()
	_ = mem.Free(m.data)
	m.data = nil
}

// Bytes is the memory that the weights take.
func (m *Matrix) Bytes() int64 { return int64(len(m.data)) }

// Padded is the number of rows in memory, a multiple of 16. Mul writes outputs
// for all of them.
func (m *Matrix) Padded() int { return padded(m.Rows) }

const (
	// chunkBytes bounds the weights that one call of a kernel goes over: they stay
	// in the cache of the core while the tiles of columns take turns, and the
	// collector of garbage, which cannot interrupt a call, waits microseconds.
	chunkBytes = 128 << 10
	claims     = 3 // parts of a product for each worker, so that a late one costs little
)

// Chunk is a number of rows that a worker may claim of a product: a multiple of
// 16, whole bands, small enough that each of so many workers gets a few.
func (m *Matrix) Chunk(workers int) int {
	bands := (padded(m.Rows)/lanes + m.band - 1) / m.band
	return lanes * m.band * max(1, min(m.call(), bands/(claims*max(workers, 1))))
}

// call is the number of bands that one call of a kernel goes over.
func (m *Matrix) call() int {
	return max(1, chunkBytes/max(1, m.stride*m.band))
}

// place is the memory from the first unit of a row's group on, how far apart its
// units are, and the place of the row in the group.
func (m *Matrix) place(row int) (g []byte, step, lane int) {
	if row < 0 || row >= m.Rows {
		panic(fmt.Sprintf("matmul: row %d of %d", row, m.Rows))
	}
	at, step := m.group(row / lanes)
	return m.data[at:], step, row % lanes
}

// group is where a group of rows begins, and how far apart its units are.
func (m *Matrix) group(i int) (at, step int) {
	first := i / m.band * m.band
	turns := min(m.band, padded(m.Rows)/lanes-first)
	return first*m.stride + (i-first)*m.unit, turns * m.unit
}

// Row writes the weights of a row to dst, Cols values, exactly as they are
// multiplied.
func (m *Matrix) Row(dst []float32, row int) {
	g, step, lane := m.place(row)
	dst = dst[:m.Cols:len(dst)]
	switch m.Format {
	case F32:
		for k := range dst {
			dst[k] = math.Float32frombits(binary.LittleEndian.Uint32(g[k*step+4*lane:]))
		}
	case F16:
		for k := range dst {
			dst[k] = kernels.F16(binary.LittleEndian.Uint16(g[k*step+2*lane:]))
		}
	case BF16:
		for k := range dst {
			dst[k] = kernels.BF16(binary.LittleEndian.Uint16(g[k/2*step+4*lane+k%2*2:]))
		}
	case Q8:
		for k := 0; k < len(dst); k += block {
			u, b := g[k/unit*step:], k/block%half
			d, q := scale(u, b, lane), u[scales+b*block*lanes+4*lane:]
			for i := range min(block, len(dst)-k) {
				dst[k+i] = float32(int(q[i/4*4*lanes+i%4])-128) * d
			}
		}
	case Q4:
		for k := 0; k < len(dst); k += block {
			u, b := g[k/unit*step:], k/block%half
			d, q := scale(u, b, lane), u[scales+b*block*lanes/2+4*lane:]
			for i := range min(block, len(dst)-k) {
				v := q[i%16/4*4*lanes+i%4] >> (i / 16 * 4) & 15
				dst[k+i] = float32(int(v)-8) * d
			}
		}
	}
	runtime.KeepAlive(m)
}

// scale is the scale of a block of a unit for one row.
func scale(u []byte, b, lane int) float32 {
	return kernels.F16(binary.LittleEndian.Uint16(u[b*2*lanes+2*lane:]))
}
