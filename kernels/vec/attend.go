package vec

import "math"

// A context is attended to in splits of splitLen positions, each with its own
// largest score, and the splits are merged in order (as in FlashAttention, Dao
// et al. 2022). The bounds are fixed, so that no result knows how much is
// attended to at once.
const splitLen = 256

// tile is how many heads at most are computed side by side: they share what is
// loaded of K and V.
const tile = 4

// scoreRoom is the scores of a split for one head, with room for the pages that
// a group of pages may run over.
const scoreRoom = splitLen + 3*PageLen

// Scratch is the number of float32 that Attend needs beside its operands for so
// many heads, AttendRows for heads times rows.
func (g Page) Scratch(heads int) int { return tile*(scoreRoom+g.wide) + 2*heads }

// Attend writes softmax(q . K[0..n-1]) . V[0..n-1] for each of the query heads
// that share a KV head (Vaswani et al. 2017, eq. 1; grouped-query attention,
// Ainslie et al. 2023), n >= 1. The KV head lies in pages, from byte at of each
// on: position p in pages[p/16]. q and out hold heads x dim values; q is already
// scaled by 1/sqrt(dim). What lies in pages at and after position n is not
// looked at.
func (g Page) Attend(out, q []float32, pages [][]byte, at, heads, n int, scratch []float32) {
	g.AttendRows(out, 0, q, 0, 1, pages, at, heads, n, scratch)
}

// AttendRows is Attend for rows consecutive positions of one sequence, the same
// bits: row r attends to the first n+r positions, its heads lie at q[r*ldq:] and
// out[r*ldo:]. Rows share what is loaded of K and V as heads do.
func (g Page) AttendRows(out []float32, ldo int, q []float32, ldq, rows int, pages [][]byte, at, heads, n int, scratch []float32) {
	pairs, last := rows*heads, n+rows-1
	a := attention{
		g: g, out: out, ldo: ldo, q: q, ldq: ldq, heads: heads, n: n, at: at,
		pages:   pages[:(last+PageLen-1)/PageLen],
		state:   scratch[:2*pairs],
		scores:  scratch[2*pairs:][:tile*scoreRoom],
		partial: scratch[2*pairs+tile*scoreRoom:][:tile*g.wide],
	}
	for _, p := range a.pages {
		_ = p[at:][:g.Bytes()]
	}
	_, _ = q[:(rows-1)*ldq+heads*g.dim], out[:(rows-1)*ldo+heads*g.dim]
	for base := 0; base < last; base += splitLen {
		for i := max(0, base-n+1) * heads; i < pairs; {
			t := wideAs(pairs - i)
			a.split(base, i, t)
			i += t
		}
	}
}

// wideAs is the widest tile for n heads.
func wideAs(n int) int {
	switch {
	case n >= 4:
		return 4
	case n >= 2:
		return 2
	}
	return 1
}

// attention is one call of AttendRows. Pair i is head i%heads of row i/heads.
type attention struct {
	g        Page
	out, q   []float32
	ldo, ldq int
	heads, n int
	at       int
	pages    [][]byte
	state    []float32 // of each pair the largest score so far and the sum of its weights
	scores   []float32 // [tile][scoreRoom], then the weights
	partial  []float32 // [tile][wide]
}

// place is where a pair's values lie in a matrix of rows that are ld apart.
func (a *attention) place(i, ld int) int { return i/a.heads*ld + i%a.heads*a.g.dim }

// sees is how many positions of the split from base on pair i attends to.
func (a *attention) sees(base, i int) int { return min(a.n+i/a.heads-base, splitLen) }

// split adds the positions from base on, up to splitLen, to the pairs i..i+t-1.
func (a *attention) split(base, i, t int) {
	least, most := a.sees(base, i), a.sees(base, i+t-1)
	pages := a.pages[base/PageLen:][:(most+PageLen-1)/PageLen]
	var q [tile][]float32
	for k := range q[:t] {
		q[k] = a.q[a.place(i+k, a.ldq):][:a.g.dim]
	}
	a.g.scores(a.scores, &q, t, pages, a.at)
	var peak, sum [tile]float32
	for k := range t {
		n := a.sees(base, i+k)
		s := a.scores[k*scoreRoom:][:(n+PageLen-1)&^(PageLen-1)]
		for p := n; p < len(s); p++ {
			s[p] = float32(math.Inf(-1))
		}
		peak[k], sum[k] = softmax(s)
	}
	clear(a.partial[:t*a.g.wide])
	a.g.addValues(a.partial, a.scores, t, pages, a.pages[base/PageLen+len(pages):], a.at, 0, least)
	for k := 0; k < t; { // rows of the tile that see more than its first
		n, same := a.sees(base, i+k), 1
		for k+same < t && a.sees(base, i+k+same) == n {
			same++
		}
		for same > 0 {
			w := wideAs(same)
			if n > least {
				a.g.addValues(a.partial[k*a.g.wide:], a.scores[k*scoreRoom:], w, pages, nil, a.at, least, n)
			}
			k, same = k+w, same-w
		}
	}
	for k := range t {
		a.merge(base, i+k, a.partial[k*a.g.wide:][:a.g.dim], peak[k], sum[k])
	}
}

// merge joins the split from base on with what pair i has so far.
func (a *attention) merge(base, i int, part []float32, peak, sum float32) {
	out := a.out[a.place(i, a.ldo):][:a.g.dim]
	last := a.n+i/a.heads <= base+splitLen
	if base == 0 {
		if last {
			scaled(out, part, 1/sum)
			return
		}
		copy(out, part)
		a.state[2*i], a.state[2*i+1] = peak, sum
		return
	}
	top := max(a.state[2*i], peak)
	x, y := exp(a.state[2*i]-top), exp(peak-top)
	all := fma(sum, y, float32(a.state[2*i+1]*x))
	blend(out, part, x, y)
	if last {
		scaled(out, out, 1/all)
	}
	a.state[2*i], a.state[2*i+1] = top, all
}

// Exps replaces x by exp(x - peak) for the largest of them, which it gives with
// their sum: the numerators and the denominator of a softmax. The length is a
// multiple of 16, at least 16; what is far below the peak, such as -1e30, becomes
// 0 within 1e-38. The sum is of element i in lane i%16.
func Exps(x []float32) (peak, sum float32) { return softmax(x) }

// softmaxGo replaces s by exp(s - max(s)) and returns max(s) and the sum, of
// element i in lane i%16. The length is a multiple of 16.
func softmaxGo(s []float32) (peak, sum float32) {
	var m, a [16]float32
	copy(m[:], s)
	for i, x := range s {
		if !(m[i&15] > x) {
			m[i&15] = x
		}
	}
	peak = largest(m[:])
	for i, x := range s {
		e := exp(x - peak)
		s[i] = e
		a[i&15] += e
	}
	return peak, joined(&a)
}
