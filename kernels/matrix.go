package kernels

// Lanes is the number of rows of a weight tile.
const Lanes = 4

// Matrix is a weight matrix of Rows x Cols in tiles of four rows: element
// (r, k) lies at tiles[r/4*Cols+k][r%4]. Four neighbouring rows then stream
// through one pointer, and a tile's four sums are independent chains. The last
// tile is padded with zero rows.
type Matrix struct {
	Rows, Cols int
	tiles      [][Lanes]float32
}

// NewMatrix tiles a row-major matrix; it copies w, which holds rows*cols values.
func NewMatrix(rows, cols int, w []float32) Matrix {
	n := (rows + Lanes - 1) / Lanes
	m := Matrix{Rows: rows, Cols: cols, tiles: make([][Lanes]float32, n*cols)}
	for r := range rows {
		row := w[r*cols : (r+1)*cols]
		t := m.tiles[r/Lanes*cols:][:cols]
		for k, v := range row {
			t[k][r%Lanes] = v
		}
	}
	return m
}

// Row copies row r into dst, which holds Cols values.
func (m *Matrix) Row(dst []float32, r int) {
	t := m.tiles[r/Lanes*m.Cols:][:m.Cols]
	dst = dst[:len(t)]
	lane := r % Lanes
	for k := range t {
		dst[k] = t[k][lane]
	}
}

// MatMul writes y = x * transpose(m) for n columns: column c of the input is
// x[c*Cols:], its output y[c*Rows:]. Each output is one sum over k = 0..Cols-1
// in that order.
func MatMul(y []float32, m *Matrix, x []float32, n int) { MatMulRows(y, m, x, n, 0, m.Rows) }

// MatMulRows is MatMul for rows from to to-1 of the matrix, from a multiple of
// Lanes on: parts of one product may be computed by several threads, and no
// output knows which.
func MatMulRows(y []float32, m *Matrix, x []float32, n, from, to int) {
	rows, cols := m.Rows, m.Cols
	if cols == 0 {
		for c := range n {
			clear(y[c*rows+from : c*rows+to])
		}
		return
	}
	for r := from; r < to; r += Lanes {
		w := m.tiles[r/Lanes*cols:][:cols]
		c := 0
		if r+Lanes <= rows {
			for ; c+2 <= n; c += 2 {
				a := (*[Lanes]float32)(y[c*rows+r:])
				b := (*[Lanes]float32)(y[(c+1)*rows+r:])
				*a, *b = Tile{}, Tile{}
				tile2(a, b, w, x[c*cols:][:cols], x[(c+1)*cols:][:cols])
			}
			if c < n {
				a := (*Tile)(y[c*rows+r:])
				*a = Tile{}
				tile1(a, w, x[c*cols:][:cols])
			}
			continue
		}
		for ; c < n; c++ {
			var a [Lanes]float32
			tile1(&a, w, x[c*cols:][:cols])
			copy(y[c*rows+r:(c+1)*rows], a[:])
		}
	}
}

// tile1 adds four rows against one column to y: y[i] += w[k][i]*x[k] for k = 0..
// in order. The sum goes on where y stands, so that parts one after the other are
// one sum.
// Unrolling by four keeps the loop out of the way of the adders; elements are
// indexed as their bounds are proven once, those of sub-slices are not.
func tile1(y *[Lanes]float32, w [][Lanes]float32, x []float32) {
	a0, a1, a2, a3 := y[0], y[1], y[2], y[3]
	w = w[:len(x)]
	k := 0
	for ; k <= len(x)-4; k += 4 {
		r, v := &w[k], x[k]
		a0 += float32(r[0] * v)
		a1 += float32(r[1] * v)
		a2 += float32(r[2] * v)
		a3 += float32(r[3] * v)
		r, v = &w[k+1], x[k+1]
		a0 += float32(r[0] * v)
		a1 += float32(r[1] * v)
		a2 += float32(r[2] * v)
		a3 += float32(r[3] * v)
		r, v = &w[k+2], x[k+2]
		a0 += float32(r[0] * v)
		a1 += float32(r[1] * v)
		a2 += float32(r[2] * v)
		a3 += float32(r[3] * v)
		r, v = &w[k+3], x[k+3]
		a0 += float32(r[0] * v)
		a1 += float32(r[1] * v)
		a2 += float32(r[2] * v)
		a3 += float32(r[3] * v)
	}
	for ; k < len(x); k++ {
		r, v := &w[k], x[k]
		a0 += float32(r[0] * v)
		a1 += float32(r[1] * v)
		a2 += float32(r[2] * v)
		a3 += float32(r[3] * v)
	}
	y[0], y[1], y[2], y[3] = a0, a1, a2, a3
}

// tile2 is tile1 for two columns, each output in the order of tile1: a weight is loaded once for both, and eight chains fill the adders.
func tile2(y, z *[Lanes]float32, w [][Lanes]float32, x, u []float32) {
	a0, a1, a2, a3 := y[0], y[1], y[2], y[3]
	b0, b1, b2, b3 := z[0], z[1], z[2], z[3]
	w, u = w[:len(x)], u[:len(x)]
	k := 0
	for ; k <= len(x)-4; k += 4 {
		r, v, s := &w[k], x[k], u[k]
		a0 += float32(r[0] * v)
		b0 += float32(r[0] * s)
		a1 += float32(r[1] * v)
		b1 += float32(r[1] * s)
		a2 += float32(r[2] * v)
		b2 += float32(r[2] * s)
		a3 += float32(r[3] * v)
		b3 += float32(r[3] * s)
		r, v, s = &w[k+1], x[k+1], u[k+1]
		a0 += float32(r[0] * v)
		b0 += float32(r[0] * s)
		a1 += float32(r[1] * v)
		b1 += float32(r[1] * s)
		a2 += float32(r[2] * v)
		b2 += float32(r[2] * s)
		a3 += float32(r[3] * v)
		b3 += float32(r[3] * s)
		r, v, s = &w[k+2], x[k+2], u[k+2]
		a0 += float32(r[0] * v)
		b0 += float32(r[0] * s)
		a1 += float32(r[1] * v)
		b1 += float32(r[1] * s)
		a2 += float32(r[2] * v)
		b2 += float32(r[2] * s)
		a3 += float32(r[3] * v)
		b3 += float32(r[3] * s)
		r, v, s = &w[k+3], x[k+3], u[k+3]
		a0 += float32(r[0] * v)
		b0 += float32(r[0] * s)
		a1 += float32(r[1] * v)
		b1 += float32(r[1] * s)
		a2 += float32(r[2] * v)
		b2 += float32(r[2] * s)
		a3 += float32(r[3] * v)
		b3 += float32(r[3] * s)
	}
	for ; k < len(x); k++ {
		r, v, s := &w[k], x[k], u[k]
		a0 += float32(r[0] * v)
		b0 += float32(r[0] * s)
		a1 += float32(r[1] * v)
		b1 += float32(r[1] * s)
		a2 += float32(r[2] * v)
		b2 += float32(r[2] * s)
		a3 += float32(r[3] * v)
		b3 += float32(r[3] * s)
	}
	y[0], y[1], y[2], y[3] = a0, a1, a2, a3
	z[0], z[1], z[2], z[3] = b0, b1, b2, b3
}
