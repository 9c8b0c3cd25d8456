package kernels

// Cache is the KV cache of one layer and one KV head, in the tiles of a
// Matrix: K as a matrix of positions x Dim (four positions a tile, so scores
// are tiles over the head's values), V as a matrix of Dim x positions (four
// values a tile, so outputs are tiles over positions). Neighbours in a batch
// never share one.
type Cache struct {
	dim  int
	room int // positions there is room for, a multiple of Lanes
	k    [][Lanes]float32
	v    [][Lanes]float32
}

// NewCache makes an empty cache for heads of dim values.
func NewCache(dim int) Cache { return Cache{dim: dim} }

// Room is the number of positions that fit.
func (c *Cache) Room() int { return c.room }

// Grow makes room for n positions and keeps what is stored.
func (c *Cache) Grow(n int) {
	n = (n + Lanes - 1) / Lanes * Lanes
	if n <= c.room {
		return
	}
	tiles := (c.dim + Lanes - 1) / Lanes
	k := make([][Lanes]float32, n/Lanes*c.dim)
	v := make([][Lanes]float32, tiles*n)
	copy(k, c.k)
	for t := range tiles {
		copy(v[t*n:], c.v[t*c.room:(t+1)*c.room])
	}
	c.k, c.v, c.room = k, v, n
}

// Put stores the key and value of one position, over what was there.
func (c *Cache) Put(pos int, key, value []float32) {
	kt := c.k[pos/Lanes*c.dim:][:c.dim]
	lane := pos % Lanes
	for i, x := range key[:c.dim] {
		kt[i][lane] = x
	}
	for i, x := range value[:c.dim] {
		c.v[i/Lanes*c.room+pos][i%Lanes] = x
	}
}

// ScratchLen is the number of float32 Attend needs beside its operands.
func (c *Cache) ScratchLen() int { return 2*c.room + 2*Lanes }

// Attend writes softmax(q . K[0..n-1]) . V[0..n-1] for each of the query heads
// that share this cache (Vaswani et al. 2017, eq. 1; grouped-query attention,
// Ainslie et al. 2023). q and out hold heads x Dim values; q is already scaled
// by 1/sqrt(Dim). Sums run over the head's values and over positions in order.
func (c *Cache) Attend(out, q []float32, heads, n int, scratch []float32) {
	d := c.dim
	s0 := scratch[:c.room]
	s1 := scratch[c.room:][:c.room]
	t0 := (*[Lanes]float32)(scratch[2*c.room:])
	t1 := (*[Lanes]float32)(scratch[2*c.room+Lanes:])
	h := 0
	for ; h+2 <= heads; h += 2 {
		q0, q1 := q[h*d:][:d], q[(h+1)*d:][:d]
		for p := 0; p < n; p += Lanes {
			tile2((*[Lanes]float32)(s0[p:]), (*[Lanes]float32)(s1[p:]), c.k[p/Lanes*d:][:d], q0, q1)
		}
		i0, i1 := softmax(s0[:n]), softmax(s1[:n])
		o0, o1 := out[h*d:][:d], out[(h+1)*d:][:d]
		for i := 0; i < d; i += Lanes {
			tile2(t0, t1, c.v[i/Lanes*c.room:][:n], s0[:n], s1[:n])
			for j := 0; j < Lanes && i+j < d; j++ {
				o0[i+j], o1[i+j] = t0[j]*i0, t1[j]*i1
			}
		}
	}
	if h < heads {
		q0 := q[h*d:][:d]
		for p := 0; p < n; p += Lanes {
			tile1((*[Lanes]float32)(s0[p:]), c.k[p/Lanes*d:][:d], q0)
		}
		i0 := softmax(s0[:n])
		o0 := out[h*d:][:d]
		for i := 0; i < d; i += Lanes {
			tile1(t0, c.v[i/Lanes*c.room:][:n], s0[:n])
			for j := 0; j < Lanes && i+j < d; j++ {
				o0[i+j] = t0[j] * i0
			}
		}
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
	var sum float64
	for i, v := range x {
		e := exp(float64(v - top))
		x[i] = float32(e)
		sum += e
	}
	return float32(1 / sum)
}
