package kernels

// Tile is four values that are computed side by side.
type Tile = [Lanes]float32

// Page is how the keys and values of some positions and one KV head lie in
// memory, in the tiles of a Matrix: K as a matrix of positions x dim (four
// positions a tile, so scores are tiles over the head's values), behind it V as
// a matrix of dim x positions (four values a tile, so outputs are tiles over
// positions). A sequence is a list of pages, not necessarily neighbours in
// memory; a sum runs on from page to page, so no output knows where one ends.
type Page struct {
	dim, size int
	keys      int // tiles of K; those of V follow
}

// NewPage is the layout of pages of size positions, a multiple of Lanes, for
// heads of dim values.
func NewPage(dim, size int) Page {
	return Page{dim: dim, size: size, keys: size / Lanes * dim}
}

// Tiles is the number of tiles that a page takes.
func (g Page) Tiles() int { return g.keys + (g.dim+Lanes-1)/Lanes*g.size }

// Put stores the key and value of position at of a page (0..size-1), over what
// was there.
func (g Page) Put(page []Tile, at int, key, value []float32) {
	k := page[at/Lanes*g.dim:][:g.dim]
	lane := at % Lanes
	for i, x := range key[:g.dim] {
		k[i][lane] = x
	}
	v := page[g.keys+at:]
	for i, x := range value[:g.dim] {
		v[i/Lanes*g.size][i%Lanes] = x
	}
}

// ScratchLen is the number of float32 Attend needs beside its operands for n
// positions.
func (g Page) ScratchLen(n int) int { return 2 * (whole(n) + whole(g.dim)) }

// whole rounds n up to whole tiles.
func whole(n int) int { return (n + Lanes - 1) / Lanes * Lanes }

// Attend writes softmax(q . K[0..n-1]) . V[0..n-1] for each of the query heads
// that share a KV head (Vaswani et al. 2017, eq. 1; grouped-query attention,
// Ainslie et al. 2023). The KV head lies in pages, from tile at of each on:
// position p in pages[p/size], so a page's memory may hold many heads. q and
// out hold heads x dim values; q is already scaled by 1/sqrt(dim). Sums run
// over the head's values and over positions in order.
func (g Page) Attend(out, q []float32, pages [][]Tile, at, heads, n int, scratch []float32) {
	d, room, wide := g.dim, whole(n), whole(g.dim)
	s0, scratch := scratch[:room], scratch[room:]
	s1, scratch := scratch[:room], scratch[room:]
	y, z := scratch[:wide], scratch[wide:][:wide]
	h := 0
	for ; h+2 <= heads; h += 2 {
		g.scores2(s0, s1, pages, at, q[h*d:][:d], q[(h+1)*d:][:d])
		i0, i1 := softmax(s0[:n]), softmax(s1[:n])
		clear(y)
		clear(z)
		for p := 0; p < n; p += g.size {
			end := min(n, p+g.size)
			g.add2(y, z, pages[p/g.size][at+g.keys:], s0[p:end], s1[p:end])
		}
		o0, o1 := out[h*d:][:d], out[(h+1)*d:][:d]
		for i := range o0 {
			o0[i], o1[i] = y[i]*i0, z[i]*i1
		}
	}
	if h < heads {
		g.scores1(s0, pages, at, q[h*d:][:d])
		i0 := softmax(s0[:n])
		clear(y)
		for p := 0; p < n; p += g.size {
			g.add1(y, pages[p/g.size][at+g.keys:], s0[p:min(n, p+g.size)])
		}
		for i, o := 0, out[h*d:][:d]; i < d; i++ {
			o[i] = y[i] * i0
		}
	}
}

// scores1 writes q . K of the first len(s) positions, whole tiles.
func (g Page) scores1(s []float32, pages [][]Tile, at int, q []float32) {
	clear(s)
	for p := 0; p < len(s); p += g.size {
		k := pages[p/g.size][at:]
		for i := p; i < min(len(s), p+g.size); i += Lanes {
			tile1((*Tile)(s[i:]), k, q)
			k = k[g.dim:]
		}
	}
}

// scores2 is scores1 for two query heads.
func (g Page) scores2(s, r []float32, pages [][]Tile, at int, q, u []float32) {
	clear(s)
	clear(r)
	for p := 0; p < len(s); p += g.size {
		k := pages[p/g.size][at:]
		for i := p; i < min(len(s), p+g.size); i += Lanes {
			tile2((*Tile)(s[i:]), (*Tile)(r[i:]), k, q, u)
			k = k[g.dim:]
		}
	}
}

// add1 adds to y what the len(x) first positions of a page give: tile t of y
// gets the sum over positions of x times tile t of the page's values v. A sum
// goes on where y stands, so that pages one after the other are one sum.
func (g Page) add1(y []float32, v []Tile, x []float32) {
	for t := 0; t < len(y)/Lanes; t++ {
		tile1((*Tile)(y[t*Lanes:]), v[t*g.size:], x)
	}
}

// add2 is add1 for two rows of scores of one length.
func (g Page) add2(y, z []float32, v []Tile, x, u []float32) {
	for t := 0; t < len(y)/Lanes; t++ {
		tile2((*Tile)(y[t*Lanes:]), (*Tile)(z[t*Lanes:]), v[t*g.size:], x, u)
	}
}

// softmax replaces x by exp(x - max(x)) and returns 1 over their sum.
func softmax(x []float32) float32 {
	top := x[0]
	for _, v := range x[1:] {
		if v > top {
			top = v
		}
	}
	return float32(1 / expSum(x, top))
}
